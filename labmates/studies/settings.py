"""What a session needs beyond conditions: how models are reached, where code runs, how much happens at once."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from labmates.models.options import ModelOptions
from labmates.sandboxes.choose import SANDBOXES


class RunSettings(BaseModel):
    """Settings of a session. They are kept with each run (they hold no secret), so that it can be taken up again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: ModelOptions = Field(default_factory=ModelOptions, description="How models are reached.")
    sandbox: str = Field("auto", description=f"Where the agents' code runs: {', '.join(SANDBOXES)}.")
    max_sandboxes: int | None = Field(
        None, ge=1, le=1024, description="Most sandboxes open at once; by default what the machine's memory holds."
    )
    judges: tuple[str, ...] = Field(
        (),
        description="A further judge: a model as provider:name, or a registered judge; can be repeated. Rules "
        "(heuristic) and findings compared with the truth (verified) always score.",
    )
    extractor: str | None = Field(
        None,
        description="Model that reads the findings out of a report that has no findings block; by default the first "
        "judge that is a model.",
    )
    judge_base_url: str | None = Field(
        None,
        description="Address of the server that is asked for judges named openai:…, if it is another one; for instance "
        "https://api.openai.com/v1.",
    )
    cache: bool = Field(
        False,
        description="Take the reply that a model gave to the very same request at an earlier time from the store, and "
        "keep new ones there. The run is charged for it as for any other, but it costs nothing.",
    )
    processes: int | None = Field(
        None, ge=1, le=256, description="Worker processes for strategies' code; by default one for each processor."
    )
    max_concurrent_runs: int = Field(8, ge=1, le=1024, description="Most runs going on at once.")
    salt: str | None = Field(
        None,
        description="Fingerprint of the private salt (LABMATES_SALT) of the data sets; recorded, never set.",
        json_schema_extra={"recorded": True},
    )

    @property
    def judge_models(self) -> ModelOptions:
        """How the models of judges are reached."""
        if self.judge_base_url is None:
            return self.models
        return self.models.model_copy(update={"base_url": self.judge_base_url})
