"""Progress of runs as lines of text: each phase of a run, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from labmates.budgets.money import parse_dollars, show_dollars
from labmates.records.events import ChargeEvent, Event, PhaseEvent, ToolCallEvent
from labmates.records.run import RunRecord

MOST_RUNS = 20
"""Up to this number of runs, each end has a line; more runs share lines."""


@dataclass
class Count:
    """The usage of a run, or of a phase of it."""

    calls: int = 0
    tokens: int = 0
    tools: int = 0
    spent: int = 0
    started: float = field(default_factory=time.monotonic)
    seconds: float | None = None

    def add(self, event: Event) -> None:
        """Count an event."""
        if event.type == "llm_call":
            self.calls += 1
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
        """Seconds since the start, until the clock was stopped."""
        return self.seconds if self.seconds is not None else time.monotonic() - self.started


@dataclass
class RunProgress:
    """The progress of a run."""

    pool: int | None
    status: str = "waiting"
    whole: Count = field(default_factory=Count)
    phases: dict[str, Count] = field(default_factory=dict)

    @property
    def left(self) -> str:
        """The rest of the run's pool as text; empty without a pool."""
        return "" if self.pool is None else show_dollars(self.pool - self.whole.spent)

    def add(self, event: Event) -> None:
        """Take in what happened."""
        self.whole.add(event)
        if isinstance(event, PhaseEvent):
            name = f"{event.team} {event.number + 1}"
            if event.status == "started":
                self.phases[name] = Count()
            elif event.status in ("ended", "skipped") and name in self.phases:
                self.phases[name].stop()
        elif event.step and (count := self.phases.get(_phase_of(event))) is not None:
            count.add(event)


class Lines:
    """Follows runs, and tells of each phase and each end in a line.

    Parameters
    ----------
    runs
        Those that are known already; others are added when they begin.
    tell
        Takes a line.
    total
        How many runs there will be; by default those that are known.
    """

    def __init__(self, runs: Sequence[RunRecord], tell: Callable[[str], None], total: int | None = None) -> None:
        self.runs = {run.id: RunProgress(_pool(run)) for run in runs}
        self._tell = tell
        self._total = len(runs) if total is None else total
        self._over = 0
        self._started = time.monotonic()

    def watch(self, run: RunRecord, event: Event | None) -> None:
        """Take in what happened in a run."""
        state = self.runs.setdefault(run.id, RunProgress(_pool(run)))
        if event is not None:
            state.add(event)
            if isinstance(event, PhaseEvent):
                self.phase(run, event)
            return
        if run.status == "running":
            state.whole.started = time.monotonic()
        else:
            state.whole.stop()
            self.end(run)
        state.status = run.standing

    def phase(self, run: RunRecord, event: PhaseEvent) -> None:
        """Tell that a phase of a run began or ended."""
        state = self.runs[run.id]
        name = f"{event.team} {event.number + 1}"
        counts = "" if event.status == "started" else f", {_counts(state.phases.get(name, Count()))}"
        left = f", {state.left} left" if state.left else ""
        self._tell(f"run {run.id}: {team_title(event.team)}, phase {event.number + 1} {event.status}{counts}{left}")

    def end(self, run: RunRecord) -> None:
        """Tell that a run has ended; where there are many, one line stands for some of them together."""
        self._over += 1
        of = self._total
        if of <= MOST_RUNS:
            self._tell(f"run {run.id}: {run.standing}, {_counts(self.runs[run.id].whole)}")
        elif self._over == of or self._over % (of // MOST_RUNS) == 0:
            whole = Count(seconds=time.monotonic() - self._started)
            for state in self.runs.values():
                whole.calls += state.whole.calls
                whole.tokens += state.whole.tokens
                whole.spent += state.whole.spent
                whole.tools += state.whole.tools
            self._tell(f"{self._over} of {of} runs have ended: {_counts(whole)}")


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
    return (
        f"{count.calls} calls, {count.tokens:,} tokens, {f'{count.tools} tool calls, ' if count.tools else ''}"
        f"{show_dollars(count.spent)} spent, {count.elapsed:.1f} s"
    )
