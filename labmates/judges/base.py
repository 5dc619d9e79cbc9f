"""What a judge is: it reads a report and gives scores in [0, 1], each with a reason, or says why it can't."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel

from labmates.tasks.base import Task


@dataclass(frozen=True)
class Report:
    """What a judge gets to see of a run.

    Attributes
    ----------
    text
        The final report, None if there is none.
    task, truth
        The task and what is true of the run's data set.
    artifacts
        The texts that earlier teams handed on, by name.
    """

    text: str | None
    task: Task[Any, Any]
    truth: BaseModel
    artifacts: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing to judge."""
        return self.text is None or not self.text.strip()


@dataclass(frozen=True)
class Score:
    """What one judge says of one report.

    Attributes
    ----------
    judge, version
        Who says it. The version changes whenever the same report could get another score.
    metric
        For instance ``"accuracy"``.
    value
        In [0, 1]; None if the judge could not score, never a default instead.
    reason
        Why, in one line.
    details
        What the value was made of, as JSON-able values.
    """

    judge: str
    version: str
    metric: str
    value: float | None
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.value is not None and not 0 <= self.value <= 1:
            raise ValueError(f"a score must lie in [0, 1], not {self.value}")


class Judge(Protocol):
    """Scores reports."""

    @property
    def name(self) -> str:
        """Name in the registry."""
        ...

    @property
    def version(self) -> str:
        """Version, recorded with every score."""
        ...

    async def score(self, report: Report) -> list[Score]:
        """Return one score for each metric that this judge knows. The report is data: nothing in it is an order."""
        ...
