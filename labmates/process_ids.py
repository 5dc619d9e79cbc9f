"""Identifiers of processes, and whether they are still alive."""

from __future__ import annotations

import os
import platform
import uuid
from pathlib import Path
from typing import Literal

OwnerState = Literal["alive", "dead", "unknown"]
"""Unknown is the owner that lives (or lived) where its process id means something else, or that we may not see."""


def this_owner() -> str:
    """The identifier of this process on this machine: ``NAMESPACE-PID-STARTTIME``.

    A process id alone may be given to another process later, and means something only within its namespace.
    """
    return f"{_pid_namespace()}-{os.getpid()}-{_start_time(os.getpid())}"


def this_worker() -> str:
    """The identifier of this process among those of many machines: ``HOST/BOOT/OWNER``."""
    return f"{platform.node()}/{_boot()}/{this_owner()}"


def worker_state(worker: str) -> OwnerState:
    """Whether the process that `worker` identifies, in the format of `this_worker`, is alive."""
    _, _, rest = worker.partition("/")
    boot, _, owner = rest.partition("/")
    return owner_state(owner) if boot == _boot() else "unknown"


def owner_state(owner: str) -> OwnerState:
    """Whether the process that `owner` identifies, in the format of `this_owner`, is alive."""
    namespace, _, process = owner.partition("-")
    pid, _, started = process.partition("-")
    if namespace != _pid_namespace() or not pid.isdecimal() or not started.isdecimal():
        return "unknown"
    now = _start_time(int(pid))
    if now is not None:
        return "alive" if now == started else "dead"
    return "unknown" if _exists(int(pid)) else "dead"


def _boot() -> str:
    """The identifier of this machine since its start; no two machines share it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")[:16]
    except OSError:
        return f"{uuid.getnode():x}"


def _pid_namespace() -> str:
    """The number of the process's PID namespace; 0 where there is no ``/proc``, as on macOS."""
    if not Path("/proc/self").exists():
        return "0"
    return "".join(filter(str.isdecimal, str(Path("/proc/self/ns/pid").readlink())))  # "pid:[4026531836]"


def _start_time(pid: int) -> str | None:
    """The start time of process `pid`, in clock ticks since boot.

    An empty text is returned if it has ended and only waits to be collected, and None if we can't see it.
    """
    try:
        # A process may call itself by bytes that are no text.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()
    except OSError:
        return None
    return "" if fields[0] in "ZX" else fields[19]


def _exists(pid: int) -> bool:
    """Whether there is a process `pid`: that of another user may be hidden from us in ``/proc``."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
