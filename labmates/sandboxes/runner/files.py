"""The files that code has left in ``out/``; no link is followed to them."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Any

from .output import encodable

_FILES = 40  # files that are listed
_NAME_CHARS = 200
_DEPTH = 3  # folders below one another
_ENTRIES = 2_000  # entries that are looked at
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def list_files(folder: Path) -> tuple[list[list[Any]], int]:
    """Name, size and version of the files in `folder`, and the number of omitted entries."""
    files: list[list[Any]] = []
    looked_at = left_out = 0

    def walk(descriptor: int, prefix: str, depth: int) -> None:
        nonlocal looked_at, left_out
        with os.scandir(descriptor) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                looked_at += 1
                name = prefix + entry.name
                if looked_at > _ENTRIES:
                    return
                if entry.is_dir(follow_symlinks=False) and depth < _DEPTH:
                    inner = os.open(entry.name, _FOLDER, dir_fd=descriptor)
                    try:
                        walk(inner, f"{name}/", depth + 1)
                    finally:
                        os.close(inner)
                elif entry.is_file(follow_symlinks=False) and len(name) <= _NAME_CHARS and len(files) < _FILES:
                    about = entry.stat(follow_symlinks=False)
                    files.append([encodable(name), about.st_size, f"{about.st_mtime_ns}-{about.st_ino}"])
                else:
                    left_out += 1

    with contextlib.suppress(OSError):
        root = os.open(folder, _FOLDER)
        try:
            walk(root, "", 1)
        finally:
            os.close(root)
    return files, left_out


def open_file(folder: Path, name: str) -> int | None:
    """Descriptor of a regular file below `folder`; links are not followed."""
    *folders, last = name.split("/")
    opened = [-1]
    try:
        opened = [os.open(folder, _FOLDER)]
        for part in folders:
            opened.append(os.open(part, _FOLDER, dir_fd=opened[-1]))
        file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=opened[-1])
    except OSError:
        return None
    finally:
        for descriptor in opened:
            if descriptor >= 0:
                os.close(descriptor)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None
