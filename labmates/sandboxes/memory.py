"""The memory of a process tree without a control group."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def exceeds(pid: int, most: int) -> bool:
    """Whether a process and its descendants use more than `most` bytes, with shared pages counted once if possible."""
    tree = list(_tree(pid))
    # Exact sizes take milliseconds; resident sizes, which count shared pages repeatedly, are a quick upper bound.
    return sum(map(_resident, tree)) > most and sum(map(_part, tree)) > most


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text().split():
                yield from _tree(int(child))


def _resident(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return 0


def _part(pid: int) -> int:
    """The memory of a process with its share of shared pages, or with all of them if the share is unreadable."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return _resident(pid)
