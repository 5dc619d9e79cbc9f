"""Identifiers of processes, and whether they are still alive."""

from __future__ import annotations

import os
import platform
import uuid
from pathlib import Path
from typing import Literal

OwnerState = Literal["alive", "dead", "unknown"]
"""An owner is unknown if it belongs to another namespace or boot, or is hidden from us."""


def this_owner() -> str:
    """The identifier of this process on this machine: ``NAMESPACE-PID-STARTTIME``.

    A process id alone is reused, and is valid only within its namespace.
    """
    return f"{_pid_namespace()}-{os.getpid()}-{_start_time(os.getpid())}"


def this_worker() -> str:
    """The identifier of this process across machines: ``HOST/BOOT/OWNER``."""
    return f"{platform.node()}/{_boot()}/{this_owner()}"


def worker_state(worker: str) -> OwnerState:
    """The state of the process `worker` (format of `this_worker`)."""
    _, _, rest = worker.partition("/")
    boot, _, owner = rest.partition("/")
    return owner_state(owner) if boot == _boot() else "unknown"


def owner_state(owner: str) -> OwnerState:
    """The state of the process `owner` (format of `this_owner`)."""
    namespace, _, process = owner.partition("-")
    pid, _, started = process.partition("-")
    if namespace != _pid_namespace() or not pid.isdecimal() or not started.isdecimal():
        return "unknown"
    now = _start_time(int(pid))
    if now is not None:
        return "alive" if now == started else "dead"
    return "unknown" if _exists(int(pid)) else "dead"


def _boot() -> str:
    """A unique identifier of this machine's boot."""
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
    """The start time of process `pid` in clock ticks since boot; empty for a zombie, None if hidden from us."""
    try:
        # A process name may hold bytes that are not text.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()
    except OSError:
        return None
    return "" if fields[0] in "ZX" else fields[19]


def _exists(pid: int) -> bool:
    """Whether process `pid` exists; ``/proc`` may hide other users' processes."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
