"""The sandbox protocol: the seam between an agent's code and the back end that runs it."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from labmates.errors import LabmatesError

CodeStatus = Literal["ok", "error", "timeout", "died"]
"""The end of a cell: normal, with an exception, cut off at its time limit, or with the end of its kernel."""


class SandboxError(LabmatesError):
    """A sandbox failed through no fault of the code that it was given: no agent is to be scored for it."""


@dataclass(frozen=True)
class OutputFile:
    """A file that code wrote to ``out/``.

    Attributes
    ----------
    name
        Path below ``out/``, with ``/`` between folders: no links, no ``..``, no control characters.
    content
        Its bytes, of which nothing is known: never to be opened with anything that may run what it holds.
    """

    name: str
    content: bytes


@dataclass(frozen=True)
class CodeResult:
    """The result of one piece of code.

    Attributes
    ----------
    status
        How it ended.
    text
        What it printed, the value of its last expression and its traceback, cut to the limit (head and tail kept).
    dropped_chars
        Number of characters that the cut left out.
    images
        Figures as PNG bytes.
    files
        New and changed files of ``out/``.
    state_lost
        True if variables of earlier calls are gone; ``df`` has been loaded again.
    note
        What the agent must know beyond `text` (time limit, lost state, figures or files left out), in plain words; may
        be empty. Cut text is told in `text` itself, where the cut is.
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
    """A running Python session for one agent: state is kept between calls; the data set is there as ``df``."""

    async def run(self, code: str, timeout: float = 30.0) -> CodeResult:
        """Run `code` for at most `timeout` seconds. Whatever it does comes back as a result, never as an exception.

        Raises
        ------
        SandboxError
            If the back end itself failed, which is not the agent's fault.
        """
        ...

    async def close(self) -> None:
        """End the session and remove its files; may be called more than once."""
        ...


class SandboxBackend(Protocol):
    """A source of sandboxes."""

    name: str

    async def open(self, data: Path | Awaitable[Path]) -> Sandbox:
        """Start a session whose ``df`` is read from the CSV file `data`, which may still be under way.

        Raises
        ------
        SandboxError
            If no session can be started.
        """
        ...

    async def close(self) -> None:
        """Close every session that is still open."""
        ...
