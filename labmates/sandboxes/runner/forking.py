"""Processes that fork others: those of kernels, and those of strategies, share this.

A fork ends with the process that it is a fork of, and never returns to that one's code.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Iterator

_DIE_WITH_PARENT = 1


def fork(child: Callable[[], object]) -> int:
    """Fork a process that does one thing; its number."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
            if os.getppid() == parent:
                child()
        finally:
            os._exit(1)
    return pid


def reap() -> Iterator[tuple[int, int]]:
    """Numbers of children that have ended, with how: their processor time then counts as this process's children's."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended


def drop_streams() -> None:
    """Leave the standard streams to nobody."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    if nowhere > 2:
        os.close(nowhere)
