"""What was found out about files of strategies, in the user's cache: an unchanged file is read and checked once.

It depends on the file's text and on the rules: the source of the checks and of the engine, Python, numpy, and whether
there is a machine to prepare strategies for.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from labmates.games import base
from labmates.sandboxes.folders import cache_folder
from labmates.util import seeds


@dataclass(frozen=True)
class FileCache:
    """A folder of files by key; the oldest are deleted when all together exceed `most_bytes`."""

    name: str
    most_bytes: int

    def known(self, *key: str) -> bytes | None:
        """What is stored under a key, for these rules; None if it is damaged."""
        with contextlib.suppress(OSError):
            stored = self._path(key).read_bytes()
            data = stored[_DIGEST_SIZE:]
            return data if stored == _digest(data) + data else None
        return None

    def keep(self, data: bytes, *key: str) -> None:
        """Store data under a key, unless the folder can't be written: the cache only saves time."""
        path = self._path(key)
        new = path.with_name(f"{path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.write_bytes(_digest(data) + data)
            new.replace(path)
            self._delete_oldest(path)

    def _delete_oldest(self, kept: Path) -> None:
        files = [(file, file.stat()) for file in kept.parent.iterdir()]
        left = self.most_bytes
        for file, stat in sorted(files, key=lambda one: (one[0] == kept, one[1].st_mtime), reverse=True):
            left -= stat.st_size
            if left < 0 and file != kept:
                file.unlink(missing_ok=True)

    def _path(self, key: tuple[str, ...]) -> Path:
        digest = hashlib.sha256(_rules())
        for part in key:
            digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
        return cache_folder(self.name) / digest.hexdigest()


_DIGEST_SIZE = 32


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


@cache
def _rules() -> bytes:
    """The digest of the rules."""
    ours, games = Path(__file__).parents[1], Path(base.__file__).parent
    engine = (ours / "engine").rglob("*.py")
    sources = [*engine, *ours.glob("*.py"), *games.rglob("*.py"), Path(seeds.__file__)]
    digest = hashlib.sha256(f"{sys.version}\0{np.__version__}".encode())
    for source in sorted(sources):
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.digest()
