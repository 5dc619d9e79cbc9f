"""Re-execution of a run from its record, without models and without writes, and differences from the record."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labmates._version import __version__
from labmates.budgets.ledger import Ledger
from labmates.models.hub import ModelHub
from labmates.records.events import ToolCallEvent
from labmates.records.recorder import NewStepError, Recorder
from labmates.records.run import RunRecord
from labmates.sandboxes.base import Sandbox
from labmates.sandboxes.folders import own_folder
from labmates.sandboxes.pool import SandboxPool
from labmates.studies.execution import bound_of, shared_resources
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
            shared=shared_resources(RunSettings.model_validate(run.settings), stack)(run.kind),
            ledger=ledger or bound_of(run, recorder.events),
            past=past or recorder,
            repeated=repeated,
        )
        return await kind.execute(condition, services)


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


_SHOWN_BEFORE, _SHOWN_AFTER = 40, 120


@dataclass(frozen=True)
class Difference:
    """A difference of an event or a field of the run from the record."""

    step: str  # empty for the run as a whole
    type: str  # of the event; ``run`` for the end of the run
    field: str  # the first different field; empty if the event is missing on one side
    recorded: str | None  # the text from shortly before the difference; None for a missing event
    now: str | None

    def __str__(self) -> str:
        where = f"the {self.type} of the step {self.step}" if self.step else f"the {self.type}"
        recorded, now = ("nothing" if text is None else text for text in (self.recorded, self.now))
        return f"{where}{self.field and f', {self.field}'}: {recorded} in the record, {now} now"


def differences_of_run(recorded: RunRecord, now: RunRecord, *, metrics: bool = True) -> Iterator[Difference]:
    """Yield differences between two records of a run's end, with or without metrics."""
    before, after = _summary(recorded, metrics), _summary(now, metrics)
    for name in sorted({*before, *after}, key=[*before, *after].index):
        # Another version may lack the metric.
        is_older = recorded.made is None or recorded.version != __version__
        is_new = is_older and name.startswith("metrics.") and name not in before
        if not is_new and before.get(name) != after.get(name):
            yield Difference("", "run", name, *apart(before.get(name), after.get(name)))


def first_difference(
    where: str, kind: str, recorded: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[Difference]:
    """Yield the difference in the first field of an event that differs, if any."""
    for name in (*recorded, *(set(now) - set(recorded))):
        if recorded.get(name) != now.get(name):
            yield Difference(where, kind, name, *apart(recorded.get(name), now.get(name)))
            return


def _summary(run: RunRecord, metrics: bool) -> dict[str, Any]:
    numbers = {f"metrics.{name}": value for name, value in run.metrics.items()} if metrics else {}
    # Records of earlier versions lack the uncertain part, which follows from the charges.
    usage = {f"usage.{name}": value for name, value in asdict(run.usage).items() if name != "uncertain"}
    ended = {name: getattr(run, name) for name in ("status", "invalid", "key", "models", "budget")}
    return {**ended, **numbers, **usage}


def apart(recorded: Any, now: Any) -> tuple[str, str]:
    """Two values as texts, from shortly before their first difference."""
    before, after = _text(recorded), _text(now)
    pairs = enumerate(zip(before, after, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(len(before), len(after)))
    start = max(0, same - _SHOWN_BEFORE)
    return before[start : same + _SHOWN_AFTER], after[start : same + _SHOWN_AFTER]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=repr, ensure_ascii=False)
