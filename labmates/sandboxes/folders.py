"""Private temporary folders that name their owner, so that what a killed process left can be found and removed."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "labmates-sandbox"


def new_folder() -> Path:
    """Make an empty folder that only this user can enter; its name tells which process owns it."""
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}-{_pid_namespace()}-{os.getpid()}-{_start_time(os.getpid())}-"))


def remove_folder(folder: Path) -> None:
    """Remove `folder` and all that is in it, as far as that can be."""
    shutil.rmtree(folder, ignore_errors=True)


def sweep_folders() -> list[Path]:
    """Remove this user's folders whose owner is no longer alive.

    Returns
    -------
    list of Path
        The folders that were removed.
    """
    dead = [folder for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}-*") if _is_orphan(folder)]
    for folder in dead:
        remove_folder(folder)
    return dead


def _is_orphan(folder: Path) -> bool:
    parts = folder.name.removeprefix(f"{_PREFIX}-").split("-")
    # Process ids mean something only within their namespace: a container that shares our /tmp is left alone.
    if len(parts) < 4 or parts[0] != _pid_namespace() or not parts[1].isdecimal():
        return False
    try:
        if folder.lstat().st_uid != os.geteuid() or folder.is_symlink():
            return False
    except OSError:
        return False
    # A process id may have been given to another process since; together with the start time it is unique.
    return _start_time(int(parts[1])) != parts[2]


def _pid_namespace() -> str:
    return "".join(filter(str.isdecimal, str(Path("/proc/self/ns/pid").readlink())))  # "pid:[4026531836]"


def _start_time(pid: int) -> str:
    """Return when process `pid` was started, in clock ticks since boot, or an empty text if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
