"""Questions of a run that the user answers in the terminal."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from labmates.errors import LabmatesError

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.workflows.approval import Question

_ASKED = {"plan": "plans for the team", "request": "asks the team", "write": "writes"}
_HOW = "Approve? Answer yes, or no and the reason, for instance: no, use the median"
_ANSWER = re.compile(r"(y|yes|n|no)\b[\s:,;.-]*(.*)", re.IGNORECASE)


def can_ask(runs: Sequence[RunRecord]) -> bool:
    """Whether the user can be asked: one run, at a terminal."""
    return len(runs) == 1 and sys.stdin is not None and sys.stdin.isatty()


async def ask_in_terminal(question: Question, notify: Callable[[str], None]) -> bool | str:
    """Show a question until it is answered; True for yes, else the reason.

    Raises
    ------
    LabmatesError
        If standard input ends before the answer.
    """
    notify(f"\n{question.agent} ({question.team}) {_ASKED[question.what]} {question.name}:\n\n{question.text}\n")
    while True:
        notify(_HOW)
        if (answer := read_answer(await _line())) is not None:
            return answer


def read_answer(line: str) -> bool | str | None:
    """The answer in a line: True for yes, the reason for no; None if it is neither.

    Examples
    --------
    >>> read_answer("no: use the median")
    'use the median'
    """
    match = _ANSWER.fullmatch(line.strip())
    if match is None:
        return None
    is_yes, more = match[1].lower().startswith("y"), match[2]
    if is_yes:
        return None if more else True
    return more


async def _line() -> str:
    """The next line of standard input; waiting for it can be cancelled."""
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
