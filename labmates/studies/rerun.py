"""Executing a run from its record: its kind does what it did, with nothing written and nobody asked."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

from labmates.budgets.ledger import Ledger
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.records.recorder import NewStepError, Recorder
from labmates.records.run import RunRecord
from labmates.sandboxes.base import Sandbox
from labmates.sandboxes.folders import own_folder
from labmates.studies.execution import SharedResources, bound_of
from labmates.studies.settings import RunSettings
from labmates.workflows.experiment import EXPERIMENTS, Condition, Outcome
from labmates.workflows.judging import Judging
from labmates.workflows.sandbox_pool import SandboxPool
from labmates.workflows.services import Services


async def rerun(
    run: RunRecord,
    condition: Condition,
    recorder: Recorder,
    hub: ModelHub,
    sandbox_pool: SandboxPool | None,
    judging: Judging | None = None,
    *,
    ledger: Ledger | None = None,
    past: Recorder | None = None,
) -> Outcome:
    """Execute a run, without a trace, and return how it ended.

    Parameters
    ----------
    recorder
        One that keeps everything in memory; what it knows already is told again.
    hub
        Answers model calls instead of models.
    judging
        Who judges; None for the judges that need no model.
    ledger
        The money of the run; by default its bound.
    past
        The record of the whole run, which answers instead of servers and persons; by default `recorder`.
    """
    from langsmith import tracing_context

    kind = EXPERIMENTS.get(run.kind)
    with own_folder() as folder, tracing_context(enabled=False), ExitStack() as stack:
        services = Services(
            run_id=run.id,
            key=condition.key,
            seed=run.seed,
            hub=hub,
            recorder=recorder,
            sandbox_pool=sandbox_pool,
            folder=lambda: folder,
            judging=judging,
            shared=SharedResources(RunSettings.model_validate(run.settings), stack).of(kind),
            ledger=ledger or bound_of(run, recorder.events),
            past=past or recorder,
        )
        return await kind.execute(condition, services)


class NoModels(ModelHub):
    """Reaches no model."""

    def __init__(self) -> None:
        super().__init__(ModelOptions())

    def price(self, model: str) -> None:
        """No price: a rerun pays nobody."""

    async def call(self, *args: Any, config: Any = None, **arguments: Any) -> NoReturn:
        """Refuse a call."""
        raise NewStepError(str((config or {}).get("metadata", {}).get("step", "")) or "a model call")


class NoSandboxes:
    """Opens no sandbox."""

    name = "none"

    async def open(self, data: Path | Awaitable[Path]) -> Sandbox:
        """Refuse to open one."""
        raise NewStepError("code")

    async def close(self) -> None:
        """Close nothing."""
