"""Confinement of a worker: a filter of system calls, and limits on resources. It needs no privileges.

After `confine`, the process can't open files or sockets, start processes, load libraries, send signals, or get random
numbers; it can compute, use open descriptors, and exit. A filter can't be removed, see seccomp(2).
"""

from __future__ import annotations

import platform
import resource
import sys
from functools import cache

from labmates.sandboxes.runner.filter import (
    ALLOW,
    EPERM,
    ERRNO,
    JUMP_EQUAL,
    JUMP_SET,
    KILL,
    LOAD,
    RETURN,
    install,
    step,
)

_EXECUTABLE = 4

# Allowed system calls by machine: (audit architecture, numbers, numbers of calls with a memory protection).
_CALLS = {
    "x86_64": (
        0xC000003E,
        {
            "read": 0, "write": 1, "munmap": 11, "brk": 12, "rt_sigprocmask": 14, "rt_sigreturn": 15, "sched_yield": 24,
            "mremap": 25, "madvise": 28, "getpid": 39, "sendto": 44, "recvfrom": 45, "exit": 60, "gettimeofday": 96,
            "getrusage": 98, "sigaltstack": 131, "gettid": 186, "futex": 202, "restart_syscall": 219,
            "clock_gettime": 228, "clock_getres": 229, "exit_group": 231, "rseq": 334,
        },
        {"mmap": 9, "mprotect": 10},
    ),
    "aarch64": (
        0xC00000B7,
        {
            "read": 63, "write": 64, "exit": 93, "exit_group": 94, "futex": 98, "clock_gettime": 113,
            "clock_getres": 114, "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132, "rt_sigprocmask": 135,
            "rt_sigreturn": 139, "getrusage": 165, "gettimeofday": 169, "getpid": 172, "gettid": 178, "sendto": 206,
            "recvfrom": 207, "brk": 214, "munmap": 215, "mremap": 216, "madvise": 233, "rseq": 293,
        },
        {"mmap": 222, "mprotect": 226},
    ),
}  # fmt: skip


class UnconfinedError(Exception):
    """The machine can't confine a process in this way."""


def confine(memory: int) -> None:
    """Confine this process, with a limit on additional `memory` in bytes; UnconfinedError if it is not possible."""
    limit(memory)
    program = filter_program()
    if program is None:
        raise UnconfinedError(f"there is no filter of system calls for {sys.platform} on {platform.machine()}")
    try:
        install(program)
    except OSError as error:
        raise UnconfinedError(error.strerror) from error


def limit(memory: int) -> None:
    """Limit this process's additional memory in bytes, and forbid files and core dumps."""
    with open("/proc/self/statm") as file:  # noqa: PTH123 - pathlib is not needed here for anything else
        now = int(file.read().split()[0]) * resource.getpagesize()
    for kind, most in (
        (resource.RLIMIT_AS, now + memory),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        resource.setrlimit(kind, (most, most))


@cache
def filter_program() -> bytes | None:
    """The filter as a program of the Berkeley packet filter; None if there is none for this system."""
    if not sys.platform.startswith("linux") or platform.machine() not in _CALLS:
        return None
    architecture, calls, protected = _CALLS[platform.machine()]
    steps = [step(LOAD, 4), step(JUMP_EQUAL, architecture, 1, 0), step(RETURN, KILL), step(LOAD, 0)]
    for number in sorted(calls.values()):
        steps += [step(JUMP_EQUAL, number, 0, 1), step(RETURN, ALLOW)]
    for number in sorted(protected.values()):
        # Only memory without execution is allowed: the third argument is the protection.
        denied = [step(JUMP_SET, _EXECUTABLE, 0, 1), step(RETURN, ERRNO | EPERM), step(RETURN, ALLOW)]
        steps += [step(JUMP_EQUAL, number, 0, 1 + len(denied)), step(LOAD, 16 + 2 * 8), *denied]
    return b"".join([*steps, step(RETURN, ERRNO | EPERM)])
