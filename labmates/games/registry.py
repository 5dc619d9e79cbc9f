"""Behavioural games by name; other packages add theirs through the entry-point group ``labmates.games``."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from labmates.errors import UsageError, explain
from labmates.games.base import Game
from labmates.registry import Registry

GAMES: Registry[type[Game]] = Registry(
    "game",
    "labmates.games",
    {
        "weakest-link": "labmates.games.weakest_link:WeakestLink",
        "common-pool": "labmates.games.common_pool:CommonPool",
        "common-pool-sanctions": "labmates.games.common_pool:CommonPoolWithSanctions",
        "collective-risk": "labmates.games.collective_risk:CollectiveRisk",
        "o-ring": "labmates.games.o_ring:ORing",
        "public-goods": "labmates.games.public_goods:PublicGoods",
    },
)


def make_game(name: str, rules: Mapping[str, Any] | None = None) -> Game:
    """The game called `name` with these rules, and its usual ones for the rest.

    Raises
    ------
    UsageError
        If there is none, a rule is unknown or out of bounds, or a plug-in's entry is no game.
    """
    with GAMES.guarded(name, "can't be used"):
        found = GAMES.get(name)
        if not (isinstance(found, type) and issubclass(found, Game)):
            raise UsageError(f"a game must be a subclass of labmates.games.base.Game, not {found!r}")
    rules = rules or {}
    try:
        if not all(isinstance(value, Hashable) for value in rules.values()):
            return found(**rules)
        return _made(found, tuple(rules.items()), tuple(map(type, rules.values())))
    except ValidationError as error:
        raise UsageError(explain(error)) from error


@lru_cache(maxsize=256)
def _made(game: type[Game], rules: tuple[tuple[str, Any], ...], types: tuple[type, ...]) -> Game:
    """A game, which is frozen: a study of many conditions has the same one many times.

    `types` tell 1 from 1.0 and True.
    """
    del types
    return game(**dict(rules))
