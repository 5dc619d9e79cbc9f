"""The interface between sessions and the back ends that start their processes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from labmates.sandboxes.base import SandboxError

PORTS = {"shell": 1, "iopub": 2, "stdin": 3, "control": 4}
"""Number of each Jupyter channel: its unix socket is the kernel's `sockets` with ``-NUMBER`` appended."""

RUNNER = Path(__file__).with_name("runner")
"""The folder of the code inside every enclosure."""

IDLE_SECONDS = 6.0
"""Idle time before a session without code imports likely modules, which takes seconds of a processor."""

_DATA_SHARE = 0.9

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS", "LOKY_MAX_CPU_COUNT")


@contextmanager
def starting() -> Iterator[None]:
    """Raise the system's errors in the block as `SandboxError`: no kernel could be started."""
    try:
        yield
    except OSError as error:
        raise SandboxError(f"the Python kernel could not be started: {error}") from error


@dataclass(frozen=True)
class Limits:
    """The limits of one session; sizes are in bytes."""

    # Data of one process, beyond which allocations raise MemoryError; if the back end supports it, of all processes and
    # files together.
    memory: int = 2 << 30
    scratch: int = 256 << 20  # of each private temporary file system and of a file
    shared_memory: int = 64 << 20  # of /dev/shm
    processes: int = 256  # processes and threads together
    open_files: int = 1024  # of one process
    processors: float = 1.0  # processor time per wall time, if the back end supports it

    @property
    def data(self) -> int:
        """The part of `memory` for the data of one process, so that the session survives a full process."""
        return int(self.memory * _DATA_SHARE)


@dataclass(frozen=True)
class Folders:
    """The existing folders of one enclosure on this machine, accessible to this user only."""

    private: Path  # for the back end; removed after the enclosure's end
    run: Path  # the control socket and the settings, read-only in the enclosure
    data: Path  # with ``data.csv`` later, read-only in the enclosure

    @property
    def control(self) -> Path:
        """The control socket, for orders to the runner."""
        return self.run / "control"

    def write_settings(self, settings: dict[str, Any]) -> Path:
        """Write the runner's settings and return the path of the file."""
        path = self.run / "settings.json"
        path.write_text(json.dumps({"ports": PORTS, "idle": IDLE_SECONDS, "address_space": False, **settings}))
        path.chmod(0o644)  # the runner may have another user id; the parent folders are private
        return path


class Enclosure(Protocol):
    """A started process, container, … with a runner that is, or soon will be, ready for orders."""

    @property
    def replaces_kernels(self) -> bool:
        """Whether all processes of a lost kernel can be killed from inside, without a stop of the enclosure."""

    @property
    def reach(self) -> str:
        """Prefix of the host's sockets inside, up to the kernel's number; empty if kernels inherit sockets."""

    async def ended(self) -> str:
        """Wait for the enclosure's end, and describe it briefly for the agent."""

    async def stop(self) -> None:
        """End the enclosure with all its processes; may be called repeatedly."""


class Launcher(Protocol):
    """A back end's start of enclosures, the only difference between back ends."""

    def prepare(self) -> None:
        """One-time preparation before the first start; blocks.

        Raises `SandboxError` if enclosures can't be started.
        """

    def libraries(self) -> Mapping[str, str]:
        """The versions of Python and of the libraries in an enclosure, by name."""

    def close(self) -> None:
        """Release the launcher's resources."""

    async def launch(self, folders: Folders) -> Enclosure:
        """Start an enclosure; its runner connects to the control socket.

        Raises `SandboxError` if it can't be started.
        """


def kernel_environment(home: Path, temporary: Path) -> dict[str, str]:
    """The environment of all kernels, without this process's variables, which may hold secrets."""
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
        "PYTHONUNBUFFERED": "1",  # the two streams of a child process in the order of writing
        "PYTHONHASHSEED": "0",
        "MALLOC_ARENA_MAX": "2",
        **dict.fromkeys(_THREADS, "1"),  # numerical libraries start one per processor by default
    }
