"""Verdicts of earlier checks, in the user's cache: an unchanged file is checked only once for a game."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import TypeAdapter, ValidationError

from labmates_populations.engine.checks import Checked
from labmates_populations.engine.file_cache import FileCache

_CACHE = FileCache("verdicts", 64 << 20)
_VERDICTS = TypeAdapter(list[Checked])


def known_verdicts(text: str, game: str) -> list[Checked] | None:
    """The verdicts on the strategies of a file; None if it has not been checked for this game and these rules."""
    try:
        return _VERDICTS.validate_json(_CACHE.known(game, text) or b"")
    except ValidationError:
        return None


def keep_verdicts(text: str, game: str, verdicts: Sequence[Checked]) -> None:
    """Store the verdicts on the strategies of a file."""
    _CACHE.keep(_VERDICTS.dump_json([*verdicts]), game, text)
