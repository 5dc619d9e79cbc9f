"""Private temporary folders, named after their owner, so that leftovers of killed processes can be removed."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

from labmates.util.process_ids import owner_state, this_owner

P = ParamSpec("P")
T = TypeVar("T")

_PREFIX = "labmates-sandbox-"


def new_folder() -> Path:
    """Create an empty folder for this user only, named after this process."""
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{this_owner()}-"))


@contextmanager
def own_folder() -> Iterator[Path]:
    """Create a private folder for the block."""
    folder = new_folder()
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove `folder` with its content, ignoring errors."""
    shutil.rmtree(folder, ignore_errors=True)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do quick work on files in a thread; a cancelled caller waits for its end: no folder outlives its removal."""
    working = asyncio.create_task(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait({working})
        raise


def sweep_folders() -> list[Path]:
    """Remove this user's folders with dead owners, and return them."""
    dead = orphaned_folders()
    for folder in dead:
        remove_folder(folder)
    return dead


def orphaned_folders() -> list[Path]:
    """The user's folders with dead owners."""
    return [folder for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*") if _is_orphan(folder)]


def cache_folder(name: str) -> Path:
    """The folder of a per-user cache; it may not exist."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - never fails
    return Path(home) / "labmates" / name


def _is_orphan(folder: Path) -> bool:
    owner = folder.name.removeprefix(_PREFIX).rpartition("-")[0]
    try:
        if folder.lstat().st_uid != os.geteuid() or folder.is_symlink():
            return False
    except OSError:
        return False
    return owner_state(owner) == "dead"
