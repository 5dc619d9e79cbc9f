"""The progress of runs, as lines or JSON, and requests for approval in the terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from labmates.cli.console import NO_ROOM, TOLD_SECONDS, clean, err, notify, print_json
from labmates.errors import LabmatesError
from labmates.records.view import run_json
from labmates.studies.progress import Lines, polled

if TYPE_CHECKING:
    from labmates.records.events import Event
    from labmates.records.run import RunRecord
    from labmates.records.store import Store
    from labmates.studies.spec import StudySpec
    from labmates.workflows.people.approval import Answer, Question


class Progress(Lines):
    """Follows runs by lines, with the state of all of them below; a context manager around their execution."""

    def __init__(self, store: Store, runs: list[RunRecord], *, as_json: bool) -> None:
        super().__init__(runs, self.notify)
        self._store = store
        self._as_json = as_json
        self._status: Any = None
        self.interrupted: list[str] = []

    def __enter__(self) -> Progress:
        if not self._as_json:
            self._status = err().status(self._shown())
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._status is not None:
            self._status.stop()

    def notify(self, text: str) -> None:
        """Show a line to the user."""
        try:
            err().print(clean(text))
        except OSError as error:
            # A full disk of the log must not end a run.
            if error.errno not in NO_ROOM:
                raise

    def watch(self, run: RunRecord, event: Event | None) -> None:
        """Process an event of a run; None at its start and end."""
        super().watch(run, event)
        if self._status is not None:
            self._status.update(self._shown())

    def _shown(self) -> Any:
        """The state of all runs for a terminal; elsewhere as a function, since time passes without events too."""
        return self.standing() if err().is_terminal else self.standing

    async def ask(self, question: Question) -> Answer:
        """Ask in the terminal, where the state would hide what is typed."""
        paused = self._status if err().is_terminal else None
        if paused is not None:
            paused.stop()
        try:
            return await ask_in_terminal(question, self.notify)
        finally:
            if paused is not None:
                paused.start()

    def end(self, run: RunRecord) -> None:
        """Report the end of a run."""
        if run.status == "interrupted":
            self.interrupted.append(run.id)
        if self._as_json:
            print_json(run_json(run, self._store.scores(run.id)))
        else:
            super().end(run)


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
