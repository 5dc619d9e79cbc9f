"""The progress of runs, as a live table, plain lines or JSON, and requests for approval in the terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from labmates.budgets.money import show_dollars
from labmates.cli.console import NO_ROOM, TOLD_SECONDS, Told, clean, err, notify, print_json
from labmates.errors import LabmatesError
from labmates.records.view import run_json
from labmates.studies.progress import MOST_RUNS, Count, Lines, polled

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from labmates.records.events import PhaseEvent
    from labmates.records.run import RunRecord
    from labmates.records.store import Store
    from labmates.studies.spec import StudySpec
    from labmates.workflows.people.approval import Answer, Question


class Progress(Lines):
    """Follows runs; a context manager around their execution."""

    def __init__(self, store: Store, runs: list[RunRecord], *, as_json: bool) -> None:
        super().__init__(runs, self.notify)
        self._store = store
        self._as_json = as_json
        self._live: Live | None = None
        self._told: Told | None = None
        self.interrupted: list[str] = []

    def __enter__(self) -> Progress:
        if err().is_terminal and not self._as_json:
            from rich.live import Live

            self._live = Live(console=err(), get_renderable=self._table, refresh_per_second=4, transient=False)
            self._live.start()
        elif not self._as_json:
            self._told = Told(self.standing)
            self._told.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        if self._told is not None:
            self._told.stop()

    def notify(self, text: str) -> None:
        """Show a line to the user."""
        try:
            err().print(clean(text))
        except OSError as error:
            # A full disk of the log must not end a run.
            if error.errno not in NO_ROOM:
                raise

    async def ask(self, question: Question) -> Answer:
        """Ask in the terminal, with the table paused."""
        if self._live is not None:
            self._live.stop()
        try:
            return await ask_in_terminal(question, self.notify)
        finally:
            if self._live is not None:
                self._live.start()

    def phase(self, run: RunRecord, event: PhaseEvent) -> None:
        """Report the start or end of a phase, unless the table shows it."""
        if self._live is None:
            super().phase(run, event)

    def end(self, run: RunRecord) -> None:
        """Report the end of a run."""
        if run.status == "interrupted":
            self.interrupted.append(run.id)
        if self._as_json:
            print_json(run_json(run, self._store.scores(run.id)))
        elif self._live is None:
            super().end(run)

    def _table(self) -> Table:
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        single = len(self.runs) == 1
        for heading in ("phase" if single else "run", "calls", "tokens", "tools", "spent", "left", "time"):
            table.add_column(heading, justify="left" if heading in ("phase", "run") else "right")
        if single:
            [state] = self.runs.values()
            for name, count in state.phases.items():
                table.add_row(name, *_cells(count), "", _seconds(count))
            table.add_row(
                f"run ({state.status})", *_cells(state.whole), state.left, _seconds(state.whole), style="bold"
            )
            return table
        order = sorted(self.runs.items(), key=lambda item: item[1].status != "running")
        for run_id, state in order[:MOST_RUNS]:
            now = next(reversed(state.phases), "") if state.status == "running" else state.status
            table.add_row(f"{run_id} {now}", *_cells(state.whole), state.left, _seconds(state.whole))
        if len(order) > MOST_RUNS:
            table.add_row(f"and {len(order) - MOST_RUNS} more")
        return table


def _cells(count: Count) -> tuple[str, str, str, str]:
    return str(count.calls), f"{count.tokens:,}", str(count.tools), show_dollars(count.spent)


def _seconds(count: Count) -> str:
    return f"{count.elapsed:.1f} s"


_LIVE_SECONDS = 1.0


@asynccontextmanager
async def following(store: Store, spec: StudySpec) -> AsyncIterator[Callable[[str], None]]:
    """Show the progress of a study, and yield a function that shows a line to the user."""
    if err().is_terminal:
        with err().status(f"{spec.name} …") as shown:
            async with polled(store, spec.name, _LIVE_SECONDS, shown.update):
                yield notify
    else:
        async with polled(store, spec.name, TOLD_SECONDS, notify):
            yield notify


def can_ask(runs: Sequence[RunRecord]) -> bool:
    """Whether the user can be asked: for one run, at a terminal."""
    return len(runs) == 1 and sys.stdin is not None and sys.stdin.isatty()


async def ask_in_terminal(question: Question, notify: Callable[[str], None]) -> Answer:
    """Show a question until it is answered.

    Raises `LabmatesError` if standard input ends before the answer.
    """
    from labmates.workflows.people.approval import read_reply

    notify(f"\n{question.heading}:\n\n{question.text}\n")
    while True:
        notify(question.how)
        if (answer := read_reply(question, await _line())) is not None:
            return answer


async def _line() -> str:
    """The next line of standard input; the wait can be cancelled."""
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    typed = os.read(sys.stdin.fileno(), 65_536)
    if not typed:
        raise LabmatesError("standard input ended before the answer")
    return typed.decode(errors="replace")
