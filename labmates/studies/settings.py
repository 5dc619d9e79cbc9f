"""Settings of a session beyond conditions: models, sandboxes, concurrency."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from labmates.judges.registry import JUDGES
from labmates.models.catalog import Catalog
from labmates.models.options import ModelOptions
from labmates.sandboxes.choose import SANDBOXES

APPROVAL: Final = {"approve_all": False, "approve_in_viewer": False}
"""The settings that choose who approves, without a choice; in old records with both, `approve_all` applies."""


def approval_fault(chosen: Mapping[str, Any], named: Callable[[str], str] = str) -> str:
    """What is wrong if new settings choose twice who approves; empty otherwise. `named` gives the user's names."""
    both = [named(name) for name in ("approve", *APPROVAL) if chosen.get(name)]
    return f"{' and '.join(both)} exclude each other; choose one" if len(both) > 1 else ""


class RunSettings(BaseModel):
    """Settings of a session. They are stored with each run, without secrets, for resuming."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: ModelOptions = Field(default_factory=ModelOptions, description="Connections to models.")
    sandbox: str = Field("auto", description=f"Where the agents' code runs: {', '.join(SANDBOXES)}.")
    max_sandboxes: int | None = Field(
        None,
        ge=1,
        le=1024,
        description="Maximum number of open sandboxes; by default limited by the machine's memory.",
    )
    judges: tuple[str, ...] = Field(
        (),
        description="Additional judge: a model (provider:name), or a judge by name (see: labmates judges); "
        "repeatable. The judges heuristic (rules) and "
        "verified (findings compared with the truth) always score.",
    )
    extractor: str | None = Field(
        None,
        description="Model that extracts findings from a report without a findings block; by default the first judge "
        "model.",
    )
    cache: bool = Field(
        False,
        description="Reuse stored replies to identical requests, and store new ones. A reused reply is charged to "
        "the run's budget, but costs nothing.",
    )
    processes: int | None = Field(
        None, ge=1, le=256, description="Worker processes for players' code; by default one per processor."
    )
    executor: str = Field(
        "local", description="Where workers run: on this machine, or on a cluster, as NAME or NAME:ADDRESS."
    )
    max_concurrent_runs: int = Field(8, ge=1, le=1024, description="Maximum number of concurrent runs.")
    approve_all: bool = Field(
        False,
        description="Approve automatically wherever the organisation asks a person; the record says so.",
    )
    approve_in_viewer: bool = Field(
        False,
        description="Ask for approval on the run's page in labmates view, not in the terminal.",
    )
    approval_timeout: float | None = Field(
        None,
        gt=0,
        description="Seconds until an unanswered request for approval counts as refused; by default no limit.",
    )
    allow_mixed: bool = Field(
        False,
        description="Continue runs that began with other prompts, rules or code.",
    )
    salt: str | None = Field(
        None,
        description="Fingerprint of the private salt (LABMATES_SALT) of the data sets; recorded, never set.",
        json_schema_extra={"recorded": True},
    )

    @model_validator(mode="before")
    @classmethod
    def _of_older_runs(cls, given: Any) -> Any:
        """Settings that were recorded with the address of a cluster beside its name."""
        if not isinstance(given, dict) or "ray_address" not in given:
            return given
        address, settings = given["ray_address"], {name: each for name, each in given.items() if name != "ray_address"}
        return settings | ({"executor": f"{given['executor']}:{address}"} if address else {})

    def resolved(self, catalog: Catalog) -> RunSettings:
        """The settings with judges by full name, and with the connections of `catalog`.

        Raises
        ------
        UsageError
            If a judge's settings are invalid.
        """
        judges = tuple(judge if judge in JUDGES else catalog.name_of(judge) for judge in self.judges)
        extractor = catalog.name_of(self.extractor) if self.extractor else None
        return self.model_copy(update={"judges": judges, "extractor": extractor, "models": catalog.options()})
