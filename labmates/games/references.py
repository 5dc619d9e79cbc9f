"""Reference plays of a game, computed exactly: its secure equilibrium and its social optimum.

By enumeration in rational numbers: every strategy is tried against every symmetric profile, and every candidate for the
optimum is evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from labmates.errors import LabmatesError
from labmates.games.base import Array, Decision, Game


class NoEquilibriumError(LabmatesError):
    """A game has no symmetric equilibrium in pure strategies."""


@dataclass(frozen=True)
class Play:
    """A reference play.

    Attributes
    ----------
    level
        The primary metric.
    payoff
        The mean expected payoff of players.
    profile
        The strategy of each player in the reduced game, by group and seat.
    """

    level: Fraction
    payoff: Fraction
    profile: tuple[tuple[Decision, ...], ...]


@dataclass(frozen=True)
class References:
    """The reference plays of a game.

    Attributes
    ----------
    nash
        The secure symmetric equilibrium: the one with the greatest guaranteed payoff.
    optimum
        The social optimum: the play with the greatest expected welfare.
    equilibria
        The levels of all symmetric equilibria.
    """

    nash: Play
    optimum: Play
    equilibria: tuple[Fraction, ...]


@lru_cache(maxsize=256)
def references(game: Game) -> References:
    """The reference plays of a game.

    Raises
    ------
    NoEquilibriumError
        If no symmetric profile of the reduced game is an equilibrium.
    """
    stable = equilibria(game)
    if not stable:
        raise NoEquilibriumError(f"the game '{game.name}' has no symmetric equilibrium with these rules")
    secure = max(stable, key=lambda strategy: guaranteed(game, strategy))
    return References(
        nash=_play(game, game.uniform(secure)),
        optimum=_play(game, max(game.candidates(), key=lambda profile: _total(game, profile))),
        equilibria=tuple(game.level_of(strategy) for strategy in stable),
    )


def references_or_none(game: Game) -> References | None:
    """The reference plays of a game; None without a symmetric equilibrium."""
    try:
        return references(game)
    except NoEquilibriumError:
        return None


def doubts(game: Game) -> list[str]:
    """Reasons why a game with these rules is degenerate; empty if it is not."""
    try:
        plays = references(game)
    except NoEquilibriumError as error:
        return [*game.doubts(), str(error)]
    if plays.nash.payoff < plays.optimum.payoff:
        return list(game.doubts())
    return [
        *game.doubts(),
        "no play is better for all than the equilibrium, so cooperation and efficiency are undefined",
    ]


def equilibria(game: Game) -> list[Decision]:
    """The strategies of all symmetric equilibria in pure strategies, in order."""
    stable: list[Decision] = []
    # A best reply to one strategy is often good against others, so it is tried first.
    tempting: list[Decision] = []
    for strategy in game.strategies():
        profile = game.uniform(strategy)
        stays = game.expected(profile)[0, 0]
        if any(_first(game, profile, other) > stays for other in tempting):
            continue
        gains, best = max((_first(game, profile, other), other) for other in game.strategies())
        if gains > stays:
            tempting.insert(0, best)
        else:
            stable.append(strategy)
    return stable


def guaranteed(game: Game, strategy: Decision) -> Fraction:
    """A player's minimum payoff under `strategy` while all others share one strategy."""
    return min(_first(game, game.uniform(other), strategy) for other in game.strategies())


def _first(game: Game, profile: Array, strategy: Decision) -> Fraction:
    """The payoff of the first player after its deviation from a profile to `strategy`."""
    changed = profile.copy()
    for place, value in enumerate(strategy):
        changed[0, 0, place] = Fraction(value)
    return Fraction(game.expected(changed)[0, 0])


def _total(game: Game, profile: Array) -> Fraction:
    """The total expected payoff of all players."""
    return Fraction(np.asarray(game.expected(profile), dtype=object).sum())


def _play(game: Game, profile: Array) -> Play:
    levels = [game.level_of(tuple(strategy)) for group in profile for strategy in group]
    return Play(
        sum(levels, Fraction(0)) / game.players,
        _total(game, profile) / game.players,
        tuple(tuple(tuple(map(int, strategy)) for strategy in group) for group in profile),
    )
