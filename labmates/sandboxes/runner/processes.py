"""The runner's requests to the system: limits, and facts about processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_HEADROOM = 64 << 20  # what a full kernel is still given, so that `del x` and a traceback work
_OVERRUN = 512 << 20  # how far beyond the limit all headroom together may go
_OOM_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def find_strays(spared: int) -> list[int]:
    """Living processes other than the first one, this one and the `spared` one."""
    return [int(name) for name in _names("/proc") if name.isdigit() and is_stray(int(name), spared)]


def is_stray(pid: int, spared: int) -> bool:
    """Whether the process `pid` lives and is neither the first one, nor this one, nor the `spared` one."""
    if pid in (1, os.getpid(), spared):
        return False
    try:
        state = _stat(pid)[0]
    except OSError:
        return False
    return state not in (b"Z", b"X")


def adopt_orphans() -> None:
    """Become the parent of the orphans among this process's descendants, so that no processor time gets lost."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def spent_seconds() -> float:
    """Processor time of all descendants of this process, living and ended ones."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = sum(map(_ticks, _descendants(os.getpid())))
    return ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def _descendants(pid: int) -> Iterator[int]:
    """Descendants of a process, each before its own: a child that ends meanwhile is missing, not counted twice."""
    for task in _names(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            for child in map(int, _read(f"/proc/{pid}/task/{task}/children").split()):
                yield child
                yield from _descendants(child)


def _ticks(pid: int) -> int:
    """Processor time of a process and its ended children, in ticks of the clock."""
    with contextlib.suppress(OSError):
        return sum(map(int, _stat(pid)[11:15]))
    return 0


def _stat(pid: int) -> list[bytes]:
    """What the system tells of a process, from its state on."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()  # its name may be no text


# Not with `pathlib`, which takes twice as long: beside a crowd of processes this one gets hardly any time.


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except FileNotFoundError:  # it has ended
        return []


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


def oom_kills() -> int:
    """Number of this container's processes that the kernel of the machine killed for lack of memory."""
    for path in _OOM_COUNTERS:
        with contextlib.suppress(OSError, ValueError):
            counters = dict(line.split() for line in Path(path).read_text().splitlines())
            return int(counters.get("oom_kill", 0))
    return 0


def set_dumpable(dumpable: bool) -> None:
    """Let other processes of this user look into this one, or not."""
    ctypes.CDLL(None).prctl(4, int(dumpable))  # PR_SET_DUMPABLE


def limit_resources(settings: dict[str, Any]) -> None:
    """Set the limits of this process and its children."""
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: settings["file_bytes"]}
    limits[resource.RLIMIT_NOFILE] = settings["open_files"]
    if settings["processes"] is not None:
        limits[resource.RLIMIT_NPROC] = settings["processes"]
    for what, most in limits.items():
        hard = resource.getrlimit(what)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (value, value))
    resource.setrlimit(resource.RLIMIT_DATA, (settings["memory"], settings["memory"] + _OVERRUN))
    if settings["address_space"]:
        resource.setrlimit(resource.RLIMIT_AS, (settings["memory"], settings["memory"] + _OVERRUN))


def give_headroom(memory: int) -> None:
    """Let a kernel that is full of data allocate a little more: a fixed limit would fail its every later cell."""
    status = Path("/proc/self/status").read_bytes()
    for limit, line in ((resource.RLIMIT_DATA, b"VmData:"), (resource.RLIMIT_AS, b"VmSize:")):
        hard = resource.getrlimit(limit)[1]
        if hard != resource.RLIM_INFINITY:
            used = int(status.partition(line)[2].split(None, 1)[0]) << 10
            resource.setrlimit(limit, (min(hard, max(memory, used + _HEADROOM)), hard))
