"""The condition of a self-play: the one place where its parameters are declared."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator, model_validator

from labmates.errors import UsageError
from labmates.workflows.populations.condition import PopulationCondition, fault


class SelfplayCondition(PopulationCondition):
    """One model's strategies in groups of every mixture of two attitudes (collective-behaviour paper, section 5)."""

    kind: ClassVar[str] = "selfplay"

    model: str | None = Field(None, description="Whose strategies play; by default the only ones that are there.")
    collective: str = Field("collective", description="The attitude of those who wish well to all.")
    selfish: str = Field("exploitative", description="The attitude of the others.")
    samples: int = Field(200, ge=2, le=100_000, description="Groups of each mixture.")
    step: int | None = Field(
        None, ge=1, le=4096, description="Look at every so-many-th mixture; by default at about 64 of them."
    )

    @field_validator("collective", "selfish")
    @classmethod
    def _as_files_have_it(cls, value: str) -> str:
        return value.lower()

    def check(self) -> None:
        """Check that there is one model's strategies, enough of each attitude for a group.

        Raises
        ------
        UsageError
            If not.
        """
        from labmates.workflows.populations.engine.library import files_for, written_counts

        files = files_for(Path(self.strategies), self.game, (self.model,) if self.model else ())
        if len(files) > 1:
            raise UsageError(f"--model: name whose strategies play: {', '.join(file.model for file in files)}")
        counts = written_counts(files[0])
        for attitude in (self.collective, self.selfish):
            # All sets with this attitude are counted (collective[prompt=brief]); the run itself takes one alone.
            written = counts[attitude.partition("[")[0]]
            if written < self.group_size:
                raise UsageError(
                    f"{files[0].model} has {written} strategies with the attitude '{attitude}'; mixtures of "
                    f"{self.group_size} players need {self.group_size} (a smaller --group-size, or more strategies)"
                )

    @model_validator(mode="after")
    def _two_attitudes(self) -> SelfplayCondition:
        if self.collective == self.selfish:
            raise fault(self, "selfish", f"must be another attitude than that of the others ('{self.collective}')")
        return self
