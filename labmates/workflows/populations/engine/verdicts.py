"""Verdicts of earlier checks, in the user's cache: an unchanged file is checked only once.

A verdict depends on a file's text, a game and the rules: the source of the checks and of the engine, Python and numpy.
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

from labmates.sandboxes.folders import cache_folder
from labmates.workflows.populations.engine.checks import Checked

_MOST_FILES = 128
_VERDICTS = TypeAdapter(list[Checked])


def known_verdicts(text: str, game: str) -> list[Checked] | None:
    """The verdicts on the strategies of a file; None if it has not been checked for this game and these rules."""
    try:
        return _VERDICTS.validate_json(_path(text, game).read_bytes())
    except (OSError, ValidationError):
        return None


def keep_verdicts(text: str, game: str, verdicts: Sequence[Checked]) -> None:
    """Store the verdicts on the strategies of a file, and delete the oldest ones."""
    path = _path(text, game)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):  # the cache only saves time
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.write_bytes(_VERDICTS.dump_json([*verdicts]))
        new.replace(path)
        files = sorted(path.parent.iterdir(), key=lambda file: (file == path, file.stat().st_mtime))
        for file in files[:-_MOST_FILES]:
            file.unlink(missing_ok=True)


def _path(text: str, game: str) -> Path:
    key = hashlib.sha256(_rules() + game.encode() + b"\0" + text.encode())
    return cache_folder("verdicts") / f"{key.hexdigest()}.json"


@cache
def _rules() -> bytes:
    """The digest of the rules."""
    engine, package = Path(__file__).parent, Path(__file__).parents[3]
    sources = [*engine.rglob("*.py"), *(package / "games").rglob("*.py"), package / "seeds.py"]
    digest = hashlib.sha256(f"{sys.version}\0{np.__version__}".encode())
    for source in sorted(sources):
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.digest()
