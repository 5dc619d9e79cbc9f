"""The interface to a sandbox's processes, whichever back end started them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

PORTS = {"shell": 1, "iopub": 2, "stdin": 3, "control": 4}
"""Number of each Jupyter channel: its unix socket is the kernel's `sockets` with ``-NUMBER`` appended."""

IDLE_SECONDS = 6.0
"""How long a session waits for its first code before it imports what code is likely to need; importing costs seconds of
a processor, which others may need more."""

_DATA_SHARE = 0.9

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS", "LOKY_MAX_CPU_COUNT")


@dataclass(frozen=True)
class Limits:
    """The limits of one session.

    Attributes
    ----------
    memory
        Data of one process, in bytes; beyond it, allocations raise ``MemoryError``. Where the back end can, all
        processes and files of the session together.
    scratch
        Size of each of its private temporary file systems and largest size of a file, in bytes.
    shared_memory
        Size of ``/dev/shm``, in bytes.
    processes
        Number of processes and threads together.
    open_files
        Number of open files of one process.
    processors
        Processor time per second of wall time, where the back end can limit it.
    """

    memory: int = 2 << 30
    scratch: int = 256 << 20
    shared_memory: int = 64 << 20
    processes: int = 256
    open_files: int = 1024
    processors: float = 1.0

    @property
    def data(self) -> int:
        """The part of `memory` that one process may fill with data before all of its session would have to end."""
        return int(self.memory * _DATA_SHARE)


@dataclass(frozen=True)
class Folders:
    """The folders of this machine that belong to one enclosure; they exist, and only this user can enter them.

    Attributes
    ----------
    private
        For whatever the back end needs; removed when the enclosure has been stopped.
    run
        Holds the control socket and the settings; an enclosure sees it read-only.
    data
        Will hold ``data.csv``; an enclosure sees it read-only.
    """

    private: Path
    run: Path
    data: Path

    @property
    def control(self) -> Path:
        """The control socket, on which the runner takes its orders."""
        return self.run / "control"

    def write_settings(self, settings: dict[str, Any]) -> Path:
        """Write the runner's settings and return the path of the file."""
        path = self.run / "settings.json"
        path.write_text(json.dumps({"ports": PORTS, "idle": IDLE_SECONDS, "address_space": False, **settings}))
        path.chmod(0o644)  # the runner may have another user id; the folders above are private
        return path


class Enclosure(Protocol):
    """A started process, container, … in which the runner is, or will soon be, ready for orders."""

    @property
    def replaces_kernels(self) -> bool:
        """Whether all processes of a lost kernel can be ended from inside, so that it need not be stopped for that."""
        ...

    @property
    def reach(self) -> str:
        """Where the kernels find the host's sockets, up to the kernel's number; empty if they are handed theirs."""
        ...

    async def ended(self) -> str:
        """Wait until it has ended by itself and say in a few words how, for the agent."""
        ...

    async def stop(self) -> None:
        """End it with all that is in it; may be called more than once."""
        ...


class Launcher(Protocol):
    """A back end's way of starting its enclosures: the only difference between back ends."""

    def prepare(self) -> None:
        """One-time preparation before the first start; blocks.

        Raises
        ------
        SandboxError
            If enclosures can't be started.
        """
        ...

    def close(self) -> None:
        """Let go of what `prepare` and the launcher itself have opened."""
        ...

    async def launch(self, folders: Folders) -> Enclosure:
        """Start an enclosure, whose runner connects to the control socket.

        Raises
        ------
        SandboxError
            If it can't be started.
        """
        ...


def kernel_environment(home: Path, temporary: Path) -> dict[str, str]:
    """The environment of all kernels; nothing of ours is passed on, as it may hold secrets."""
    return {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "MPLCONFIGDIR": str(home / ".matplotlib"),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "IPYTHONDIR": str(home / ".ipython"),
        "JUPYTER_PLATFORM_DIRS": "1",
        "USER": "agent",
        "LOGNAME": "agent",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "MALLOC_ARENA_MAX": "2",
        **dict.fromkeys(_THREADS, "1"),  # numerical libraries would start one for every processor of the machine
    }
