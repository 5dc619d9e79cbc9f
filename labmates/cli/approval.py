"""Requests for approval, answered in the terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from labmates.errors import LabmatesError

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.workflows.people.approval import Answer, Question


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
