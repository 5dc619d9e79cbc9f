"""Progress of runs: a line per phase and end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from labmates.budgets.money import parse_dollars, show_dollars
from labmates.errors import LabmatesError
from labmates.records.events import ChargeEvent, Event, PhaseEvent, ToolCallEvent
from labmates.records.run import ENDED, RunRecord
from labmates.records.studies import Counts, study_counts
from labmates.util.loops import running

if TYPE_CHECKING:
    from labmates.records.store import Store

MOST_RUNS = 20
"""Up to this number of runs, each phase and end gets a line; more runs share lines."""
_OVER = (*ENDED, "failed")


@dataclass
class Count:
    """The usage of a run or of a phase."""

    calls: int = 0
    tokens: int = 0
    tools: int = 0
    spent: int = 0
    started: float = field(default_factory=time.monotonic)
    seconds: float | None = None

    def add(self, event: Event) -> None:
        """Count an event."""
        if event.type == "llm_call":
            self.calls += not event.is_outside
            self.tokens += event.input_tokens + event.output_tokens
        elif isinstance(event, ToolCallEvent):
            self.tools += 1
        elif isinstance(event, ChargeEvent):
            self.spent += event.amount

    def stop(self) -> None:
        """Stop the clock."""
        self.seconds = time.monotonic() - self.started

    @property
    def elapsed(self) -> float:
        """Seconds from the start to the stop of the clock, or to now."""
        return self.seconds if self.seconds is not None else time.monotonic() - self.started


@dataclass
class RunProgress:
    """The progress of a run."""

    pool: int | None
    step: str = ""
    whole: Count = field(default_factory=Count)
    phases: dict[str, Count] = field(default_factory=dict)

    @property
    def left(self) -> str:
        """The remaining credits as text; empty without a pool."""
        return "" if self.pool is None else show_dollars(self.pool - self.whole.spent)

    def add(self, event: Event) -> None:
        """Process an event."""
        self.whole.add(event)
        self.step = event.step or self.step
        if isinstance(event, PhaseEvent):
            name = f"{event.team} {event.number + 1}"
            if event.status == "started":
                self.phases[name] = Count()
            elif event.status in ("ended", "skipped") and name in self.phases:
                self.phases[name].stop()
        elif event.step and (count := self.phases.get(_phase_of(event))) is not None:
            count.add(event)


class Lines:
    """Follows runs with a line per phase and end.

    More runs than the given ones may start later; `total` is the expected number, by default the given ones.
    """

    def __init__(self, runs: Sequence[RunRecord], tell: Callable[[str], None], total: int | None = None) -> None:
        self.runs = {run.id: RunProgress(_pool(run)) for run in runs}
        self._tell = tell
        self._total = len(runs) if total is None else total
        self._over = 0
        self._all = Count()

    def watch(self, run: RunRecord, event: Event | None) -> None:
        """Process an event of a run; None at its start and end."""
        state = self.runs.setdefault(run.id, RunProgress(_pool(run)))
        if event is not None:
            state.add(event)
            self._all.add(event)
            if isinstance(event, PhaseEvent) and self._total <= MOST_RUNS:
                self.phase(run, event)
            return
        if run.status == "running":
            state.whole.started = time.monotonic()
        else:
            state.whole.stop()
            self.end(run)

    def phase(self, run: RunRecord, event: PhaseEvent) -> None:
        """Report the start or end of a phase."""
        state = self.runs[run.id]
        name = f"{event.team} {event.number + 1}"
        counts = "" if event.status == "started" else f", {_counts(state.phases.get(name, Count()))}"
        left = f", {state.left} left" if state.left else ""
        self._tell(f"run {run.id}: {team_title(event.team)}, phase {event.number + 1} {event.status}{counts}{left}")

    def end(self, run: RunRecord) -> None:
        """Report the end of a run; many runs share lines."""
        self._over += 1
        of = self._total
        if of <= MOST_RUNS:
            self._tell(f"run {run.id}: {run.standing}, {_counts(self.runs[run.id].whole)}")
        elif self._over == of or self._over % (of // MOST_RUNS) == 0:
            self._tell(self.standing())

    def standing(self) -> str:
        """The progress of all runs as a line; that of one run begins with its step."""
        only = next(iter(self.runs.values())) if self._total == 1 else None
        left = f", {only.left} left" if only and only.left else ""
        where = f"step {only.step}" if only and only.step else f"{self._over} of {self._total} runs have ended"
        return f"{where}: {_counts(self._all)}{left}"


@asynccontextmanager
async def polled(store: Store, study: str, pause: float, show: Callable[[str], None]) -> AsyncIterator[None]:
    """Show the progress of a study as a line, every `pause` seconds and at the end of the block."""
    started, first = time.monotonic(), None

    async def look() -> None:
        nonlocal first
        with suppress(LabmatesError):  # The workers report an unreachable store.
            counts = await asyncio.to_thread(study_counts, store, study)
            ended = counts.of(*_OVER)
            first = ended if first is None else first
            show(f"{study}: {_line(counts, ended, ended - first, time.monotonic() - started)}")

    async def poll() -> None:
        while True:
            await look()
            await asyncio.sleep(pause)

    try:
        async with running(poll()):
            yield
    finally:
        await look()


def _line(counts: Counts, ended: int, new: int, seconds: float) -> str:
    parts = [f"{ended:,} of {counts.total:,} runs ended", f"{counts.of('running'):,} running"]
    if counts.of("failed"):
        parts.append(f"{counts.of('failed'):,} failed")
    parts.append(f"{show_dollars(counts.spent)} in credits")
    if new and counts.total > ended:
        parts.append(f"about {_duration((counts.total - ended) * seconds / new)} left")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def team_title(name: str) -> str:
    """A team's name for readers."""
    return "one agent alone" if name == "solo" else f"{name} team"


def _phase_of(event: Event) -> str:
    team, _, rest = event.step.partition("/")
    number = rest.partition("/")[0]
    return f"{team} {int(number) + 1}" if number.isdigit() else ""


def _pool(run: RunRecord) -> int | None:
    budget: Any = run.condition.get("budget")
    return parse_dollars(budget) if budget is not None else None


def _counts(count: Count) -> str:
    tools = f"{count.tools} tool call{'s' * (count.tools > 1)}, " if count.tools else ""
    calls = f"{count.calls} call{'s' * (count.calls != 1)}"
    return f"{calls}, {count.tokens:,} tokens, {tools}{show_dollars(count.spent)} spent, {count.elapsed:.1f} s"
