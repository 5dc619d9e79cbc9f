"""Private temporary folders that name their owner, so that what a killed process left can be found and removed."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

from labmates.process_ids import owner_state, this_owner

P = ParamSpec("P")
T = TypeVar("T")

_PREFIX = "labmates-sandbox-"


def new_folder() -> Path:
    """Make an empty folder that only this user can enter; its name identifies the process that owns it."""
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{this_owner()}-"))


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make such a folder, and remove it at the end."""
    folder = new_folder()
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove `folder` and all that is in it, as far as that can be."""
    shutil.rmtree(folder, ignore_errors=True)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of quick work on files, done in a thread; a cancelled caller waits for its end, too.

    Otherwise a folder that is being made could outlive its removal.
    """
    working = asyncio.create_task(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait({working})
        raise


def sweep_folders() -> list[Path]:
    """Remove this user's folders whose owner is no longer alive.

    Returns
    -------
    list of Path
        The folders that were removed.
    """
    dead = orphaned_folders()
    for folder in dead:
        remove_folder(folder)
    return dead


def orphaned_folders() -> list[Path]:
    """Folders of this user whose owner is no longer alive."""
    return [folder for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*") if _is_orphan(folder)]


def cache_folder(name: str) -> Path:
    """The folder of files made once per machine; it need not exist."""
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
