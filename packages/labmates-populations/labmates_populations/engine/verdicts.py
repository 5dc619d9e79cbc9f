"""Verdicts of earlier checks, in the user's cache: an unchanged file is checked only once for a game.

A verdict depends on the file's text and on the rules: the source of the checks and of the engine, Python and numpy.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from labmates.games import base
from labmates.sandboxes.folders import cache_folder
from labmates.util import seeds
from labmates_populations.engine.checks import Checked

_MOST_BYTES = 64 << 20
"""Size of the cache beyond which its oldest files are deleted."""
_VERDICTS = TypeAdapter(list[Checked])


def known_verdicts(text: str, game: str) -> list[Checked] | None:
    """The verdicts on the strategies of a file; None if it has not been checked for this game and these rules."""
    try:
        return _VERDICTS.validate_json(_path(text, game).read_bytes())
    except (OSError, ValidationError):  # a damaged file is checked again
        return None


def keep_verdicts(text: str, game: str, verdicts: Sequence[Checked]) -> None:
    """Store the verdicts on the strategies of a file, unless the folder can't be written: the cache only saves time."""
    path = _path(text, game)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.write_bytes(_VERDICTS.dump_json([*verdicts]))
        new.replace(path)
        left = _MOST_BYTES
        for file in sorted(path.parent.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True):
            left -= file.stat().st_size
            if left < 0 and file != path:
                file.unlink(missing_ok=True)


def _path(text: str, game: str) -> Path:
    digest = hashlib.sha256(_rules())
    for part in (game, text):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return cache_folder("verdicts") / digest.hexdigest()


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
