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
    max_concurrent_runs: int = Field(8, ge=1, le=1024, description="Most runs going on at once.")
