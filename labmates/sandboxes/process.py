"""What the rest of this package needs to know of a kernel's process, whatever started it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

PORTS = {"shell": 1, "iopub": 2, "stdin": 3, "control": 4}
"""Number of each Jupyter channel: its unix socket is the process's `sockets` with ``-NUMBER`` appended."""


@dataclass(frozen=True)
class Limits:
    """What one session may use.

    Attributes
    ----------
    memory
        Data of one process, in bytes; beyond it, allocations raise ``MemoryError``.
    scratch
        Size of each of its private temporary file systems and largest size of a file, in bytes.
    shared_memory
        Size of ``/dev/shm``, in bytes.
    processes
        Number of processes and threads together.
    open_files
        Number of open files of one process.
    """

    memory: int = 2 << 30
    scratch: int = 256 << 20
    shared_memory: int = 64 << 20
    processes: int = 256
    open_files: int = 1024


class KernelProcess(Protocol):
    """A started process that is, or will soon be, a Jupyter kernel."""

    @property
    def sockets(self) -> str:
        """Path of its unix sockets on this side, up to the number of the channel (see `PORTS`)."""
        ...

    @property
    def key(self) -> str:
        """Key that signs the messages."""
        ...

    @property
    def exited(self) -> asyncio.Event:
        """Is set as soon as the process has ended."""
        ...

    def ending(self) -> str:
        """Say in a few words how the process ended, for the agent."""
        ...

    def complaint(self) -> str:
        """Return what the process wrote when it could not start."""
        ...

    def started(self) -> None:
        """Take note that the kernel answers: from now on nothing is read from the process itself."""
        ...

    async def stop(self) -> None:
        """Kill the process and remove all that belongs to it; may be called more than once."""
        ...


class Launcher(Protocol):
    """How a back end starts a kernel: the only thing in which back ends differ."""

    async def launch(self, folder: Path, data: Path) -> KernelProcess:
        """Start a kernel whose ``df`` is read from `data`, with `folder` (new, empty, private) for its files.

        Raises
        ------
        SandboxError
            If the process can't be started.
        """
        ...
