"""What a user sees while runs go on: a live table on a terminal, plain lines elsewhere, JSON where a script listens."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from labmates.budgets.money import parse_dollars, show_dollars
from labmates.cli.console import NO_ROOM, clean, err, print_json
from labmates.cli.summary import team_title
from labmates.records.events import ChargeEvent, Event, LLMCallEvent, PhaseEvent, ToolCallEvent
from labmates.records.view import run_json

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from labmates.records.run import RunRecord
    from labmates.records.store import Store

MOST_RUNS = 20
"""Most runs in the live table; with more, those that go on come first."""


@dataclass
class _Count:
    calls: int = 0
    tokens: int = 0
    tools: int = 0
    spent: int = 0
    started: float = field(default_factory=time.monotonic)
    seconds: float | None = None

    def add(self, event: Event) -> None:
        if isinstance(event, LLMCallEvent):
            self.calls += 1
            self.tokens += event.input_tokens + event.output_tokens
        elif isinstance(event, ToolCallEvent):
            self.tools += 1
        elif isinstance(event, ChargeEvent):
            self.spent += event.amount

    def stop(self) -> None:
        self.seconds = time.monotonic() - self.started

    @property
    def elapsed(self) -> float:
        return self.seconds if self.seconds is not None else time.monotonic() - self.started


@dataclass
class _Run:
    pool: int | None
    status: str = "waiting"
    whole: _Count = field(default_factory=_Count)
    phases: dict[str, _Count] = field(default_factory=dict)

    @property
    def left(self) -> str:
        return "" if self.pool is None else show_dollars(self.pool - self.whole.spent)

    def add(self, event: Event) -> None:
        self.whole.add(event)
        if isinstance(event, PhaseEvent):
            name = f"{event.team} {event.number + 1}"
            if event.status == "started":
                self.phases[name] = _Count()
            elif event.status in ("ended", "skipped") and name in self.phases:
                self.phases[name].stop()
        elif event.step and (count := self.phases.get(_phase_of(event))) is not None:
            count.add(event)


class Progress:
    """Follows runs; a context manager around their execution."""

    def __init__(self, store: Store, runs: list[RunRecord], *, as_json: bool) -> None:
        self._store = store
        self._as_json = as_json
        self._runs = {run.id: _Run(_pool(run)) for run in runs}
        self._live: Live | None = None
        self._over = 0
        self._started = time.monotonic()
        self.interrupted: list[str] = []

    def __enter__(self) -> Progress:
        if err().is_terminal and not self._as_json:
            from rich.live import Live

            self._live = Live(console=err(), get_renderable=self._table, refresh_per_second=4, transient=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def notify(self, text: str) -> None:
        """Show a line that the user should know."""
        try:
            err().print(clean(text), markup=False)
        except OSError as error:
            # The log's disk may be full, which is no reason to end a run.
            if error.errno not in NO_ROOM:
                raise

    def watch(self, run: RunRecord, event: Event | None) -> None:
        """Take in what happened in a run."""
        state = self._runs[run.id]
        if event is not None:
            state.add(event)
            if self._live is None and isinstance(event, PhaseEvent):
                self._line(run, event)
            return
        if run.status == "running":
            state.whole.started = time.monotonic()
        else:
            state.whole.stop()
            self._ended(run)
        state.status = run.standing

    def _ended(self, run: RunRecord) -> None:
        if run.status == "interrupted":
            self.interrupted.append(run.id)
        if self._as_json:
            print_json(run_json(run, self._store.scores(run.id)))
        elif self._live is None:
            self._tell_end(run)

    def _tell_end(self, run: RunRecord) -> None:
        """Print a line for each run that has ended; where there are many, one for some of them together."""
        self._over += 1
        of = len(self._runs)
        if of <= MOST_RUNS:
            self.notify(f"run {run.id}: {run.standing}, {_counts(self._runs[run.id].whole)}")
        elif self._over == of or self._over % (of // MOST_RUNS) == 0:
            whole = _Count(seconds=time.monotonic() - self._started)
            for state in self._runs.values():
                whole.calls += state.whole.calls
                whole.tokens += state.whole.tokens
                whole.spent += state.whole.spent
                whole.tools += state.whole.tools
            self.notify(f"{self._over} of {of} runs have ended: {_counts(whole)}")

    def _line(self, run: RunRecord, event: PhaseEvent) -> None:
        state = self._runs[run.id]
        name = f"{event.team} {event.number + 1}"
        counts = "" if event.status == "started" else f", {_counts(state.phases.get(name, _Count()))}"
        left = f", {state.left} left" if state.left else ""
        self.notify(f"run {run.id}: {team_title(event.team)}, phase {event.number + 1} {event.status}{counts}{left}")

    def _table(self) -> Table:
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        single = len(self._runs) == 1
        for heading in ("phase" if single else "run", "calls", "tokens", "tools", "spent", "left", "time"):
            table.add_column(heading, justify="left" if heading in ("phase", "run") else "right")
        if single:
            [state] = self._runs.values()
            for name, count in state.phases.items():
                table.add_row(name, *_cells(count), "", _seconds(count))
            table.add_row(
                f"run ({state.status})", *_cells(state.whole), state.left, _seconds(state.whole), style="bold"
            )
            return table
        order = sorted(self._runs.items(), key=lambda item: item[1].status != "running")
        for run_id, state in order[:MOST_RUNS]:
            now = next(reversed(state.phases), "") if state.status == "running" else state.status
            table.add_row(f"{run_id} {now}", *_cells(state.whole), state.left, _seconds(state.whole))
        if len(order) > MOST_RUNS:
            table.add_row(f"and {len(order) - MOST_RUNS} more")
        return table


def _phase_of(event: Event) -> str:
    team, _, rest = event.step.partition("/")
    number = rest.partition("/")[0]
    return f"{team} {int(number) + 1}" if number.isdigit() else ""


def _pool(run: RunRecord) -> int | None:
    budget: Any = run.condition.get("budget")
    return parse_dollars(budget) if budget is not None else None


def _cells(count: _Count) -> tuple[str, str, str, str]:
    return str(count.calls), f"{count.tokens:,}", str(count.tools), show_dollars(count.spent)


def _seconds(count: _Count) -> str:
    return f"{count.elapsed:.1f} s"


def _counts(count: _Count) -> str:
    return (
        f"{count.calls} calls, {count.tokens:,} tokens, {f'{count.tools} tool calls, ' if count.tools else ''}"
        f"{show_dollars(count.spent)} spent, {count.elapsed:.1f} s"
    )
