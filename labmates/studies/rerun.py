"""Re-execution of a run from its record, without models and without writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

from labmates.budgets.ledger import Ledger
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.records.events import ToolCallEvent
from labmates.records.recorder import NewStepError, Recorder
from labmates.records.run import RunRecord
from labmates.sandboxes.base import Sandbox
from labmates.sandboxes.folders import own_folder
from labmates.sandboxes.pool import SandboxPool
from labmates.studies.execution import SharedResources, bound_of
from labmates.studies.settings import RunSettings
from labmates.workflows.calls.assessing import Judging
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, Outcome
from labmates.workflows.protocol.services import Services


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
    repeated: Callable[[ToolCallEvent, ToolCallEvent], None] | None = None,
) -> Outcome:
    """Execute a run without tracing and return its outcome.

    The `recorder` works in memory; its steps are replayed. The `hub` answers model calls. Without `judging`, only
    judges without models score. The `ledger` is by default the run's bound. `past`, by default the recorder, is the
    record of the whole run, which answers instead of servers and people. With `repeated`, code is executed again, and
    the run continues with its recorded results (see `labmates.workflows.protocol.services.Services`).
    """
    from langsmith import tracing_context

    kind = EXPERIMENTS.get(run.kind)
    with own_folder() as folder, tracing_context(enabled=False), ExitStack() as stack:
        services = Services(
            run_id=run.id,
            key=condition.key,
            seed=run.seed,
            reply_seed=run.reply_seed,
            hub=hub,
            recorder=recorder,
            sandbox_pool=sandbox_pool,
            folder=lambda: folder,
            judging=judging,
            shared=SharedResources(RunSettings.model_validate(run.settings), stack).of(kind),
            ledger=ledger or bound_of(run, recorder.events),
            past=past or recorder,
            repeated=repeated,
        )
        return await kind.execute(condition, services)


class NoModels(ModelHub):
    """A hub without models."""

    def __init__(self) -> None:
        super().__init__(ModelOptions())

    def price(self, model: str) -> None:
        """None: a rerun costs nothing."""

    async def call(self, *args: Any, config: Any = None, **arguments: Any) -> NoReturn:
        """Refuse a call."""
        raise NewStepError(str((config or {}).get("metadata", {}).get("step", "")) or "a model call")


class NoSandboxes:
    """A back end without sandboxes."""

    name = "none"

    async def open(self, data: Path | Awaitable[Path]) -> Sandbox:
        """Refuse to open a sandbox."""
        raise NewStepError("code")

    async def libraries(self) -> Mapping[str, str]:
        """None."""
        return {}

    async def close(self) -> None:
        """Close nothing."""
