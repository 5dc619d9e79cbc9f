"""The sandbox protocol between agents' code and back ends."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from labmates.errors import LabmatesError

CodeStatus = Literal["ok", "error", "timeout", "died"]
"""The end of a cell: normal, by an exception, at its time limit, or with its kernel's death."""


PATIENCE = 10
"""Seconds by the clock that code may take for each second of its limit of processor time: it may have to wait."""


class SandboxError(LabmatesError):
    """A sandbox failed, through no fault of the agent's code: no agent may be scored for it."""


@dataclass(frozen=True)
class OutputFile:
    """A file that code wrote to ``out/``.

    Attributes
    ----------
    name
        Path below ``out/``, with ``/`` between folders: no links, no ``..``, no control characters.
    content
        The untrusted bytes: never open them with a program that may execute them.
    """

    name: str
    content: bytes


@dataclass(frozen=True)
class CodeResult:
    """The result of one piece of code.

    Attributes
    ----------
    status
        How the code ended.
    text
        Printed text, value of the last expression and traceback, cut to the limit (head and tail remain).
    dropped_chars
        Number of characters removed by the cut.
    images
        Figures as PNG bytes.
    files
        New and changed files of ``out/``.
    state_lost
        Whether variables of earlier calls are lost; ``df`` has been loaded again.
    note
        Note for the agent beyond `text` (time limit, lost state, omitted figures or files); may be empty. A cut is
        marked in `text`.
    seconds
        Wall time of the call, in seconds.
    """

    status: CodeStatus
    text: str
    dropped_chars: int = 0
    images: tuple[bytes, ...] = ()
    files: tuple[OutputFile, ...] = ()
    state_lost: bool = False
    note: str = ""
    seconds: float = 0.0


class Sandbox(Protocol):
    """A Python session of one agent: variables persist between calls, and the data set is ``df``."""

    async def run(self, code: str, timeout: float = 30.0) -> CodeResult:
        """Run `code` for at most `timeout` seconds of processor time, and `PATIENCE` times as long by the clock.

        The processor time is that of all its processes: beside others, code is not stopped earlier than alone. All
        behaviour of the code is a result, never an exception.

        Raises
        ------
        SandboxError
            If the back end failed, which is not the agent's fault.
        """

    async def close(self) -> None:
        """End the session and remove its files; may be called more than once."""


class SandboxBackend(Protocol):
    """A source of sandboxes."""

    name: str

    async def open(self, data: Path | Awaitable[Path]) -> Sandbox:
        """Start a session whose ``df`` is read from the CSV file `data`, which may still be in the making.

        Raises
        ------
        SandboxError
            If no session can be started.
        """

    async def libraries(self) -> Mapping[str, str]:
        """The versions of Python and of the libraries in a sandbox, by name, as agents are told."""

    async def close(self) -> None:
        """Close all open sessions."""
