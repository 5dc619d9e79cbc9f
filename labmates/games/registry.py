"""Behavioural games by name; other packages add theirs through the entry-point group ``labmates.games``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from labmates.errors import UsageError, explaining
from labmates.games.base import Game
from labmates.registry import Registry

GAMES: Registry[type[Game]] = Registry("game", "labmates.games")


def make_game(name: str, rules: Mapping[str, Any] | None = None) -> Game:
    """The game called `name` with these rules, and defaults for other rules.

    Raises `UsageError` if the game or a rule is unknown, a rule is out of bounds, or a plug-in's entry is not a game.
    """
    game = GAMES.get(name)
    if not (isinstance(game, type) and issubclass(game, Game)):
        with GAMES.guarded(name, "can't be used"):
            raise UsageError(f"a game must be a subclass of labmates.games.base.Game, not {game!r}")
    with explaining(known=game.model_fields):
        return _game(game, **(rules or {}))


def _game(game: type[Game], /, **rules: Any) -> Game:
    """A cached game: many conditions of a study have the same one."""
    try:
        return _cached(game, **rules)
    except TypeError:  # an unhashable rule
        return game(**rules)


@lru_cache(maxsize=256, typed=True)
def _cached(game: type[Game], /, **rules: Any) -> Game:
    return game(**rules)


def own_games() -> list[str]:
    """The names of the games of this project, without those of other packages."""
    return [name for name in GAMES.names() if GAMES.is_own(name)]
