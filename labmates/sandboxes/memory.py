"""The memory of a process tree without a control group."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def exceeds(pid: int, most: int) -> bool:
    """Whether a process and its descendants use more than `most` bytes, with shared pages counted once if possible.

    Counts memory files (``memfd_create``) too, which belong to no process; not System V segments and full sockets.
    """
    tree = list(_tree(pid))
    left = most - _memory_files(tree)
    # Exact sizes take milliseconds; resident sizes, which count shared pages repeatedly, are a quick upper bound.
    return sum(map(_resident, tree)) > left and sum(map(_part, tree)) > left


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text().split():
                yield from _tree(int(child))


def _memory_files(tree: Iterable[int]) -> int:
    sizes: dict[tuple[int, int], int] = {}
    for pid in tree:
        with suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if str(link.readlink()).startswith("/memfd:"):
                        status = link.stat()
                        sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())


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
