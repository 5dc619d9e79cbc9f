"""Measures of cooperation: by actions (cooperation, and the paper's proximity), and by welfare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from labmates.errors import UsageError
from labmates.games.registry import make_game
from labmates.stats.domains import COUNT, Domain

if TYPE_CHECKING:
    from labmates.games.base import Array, Game
    from labmates.games.references import References


def cooperation(game: Game, history: Array, proximity: float) -> float:
    """Cooperation in a game: 1 at the social optimum, 0 at the equilibrium.

    From what happened in games with a threshold or several pools (`Game.cooperation`); in others, one less the
    distance of the mean level from the optimum.

    Parameters
    ----------
    history
        The decisions of all rounds, shape ``(rounds, groups, group_size, quantities)``.
    proximity
        The paper's Pareto proximity (`pareto_proximity`), which is a distance.
    """
    happened = game.cooperation(history)
    return 1.0 - proximity if happened is None else happened


def pareto_proximity(level: float, plays: References) -> float | None:
    """The paper's Pareto proximity: 0 at the social optimum, 1 at the equilibrium.

    The distance from the optimum over that of the equilibrium, at most 1 (cooperative-profiles paper, section 3.1).
    None if both are equal.

    Parameters
    ----------
    level
        Mean of the primary quantity.
    plays
        The game's reference plays.

    Notes
    -----
    It measures mean actions and not their effect: a contribution of twice the need is as far from the optimum as none,
    and in games with a threshold uneven actions with the right mean miss it. `cooperation` and `efficiency` tell these
    apart.
    """
    optimum, nash = float(plays.optimum.level), float(plays.nash.level)
    if optimum == nash:
        return None
    return min(1.0, abs(level - optimum) / abs(nash - optimum))


def efficiency(welfare: float, plays: References) -> float | None:
    """The share of the possible gain from cooperation: 1 at the optimum, 0 at the equilibrium or below.

    1 − (W* − W) / (W* − W_N) on expected welfare, clipped to [0, 1]. None without a possible gain.

    Parameters
    ----------
    welfare
        Mean expected payoff of players, in the units of the reduced game.
    """
    optimum, nash = float(plays.optimum.payoff), float(plays.nash.payoff)
    if optimum == nash:
        return None
    return 1.0 - min(1.0, max(0.0, (optimum - welfare) / (optimum - nash)))


def game_of(condition: Mapping[str, Any]) -> Game:
    """The game with the rules of a condition, given as plain data."""
    sizes = {name: condition[name] for name in ("group_size", "groups", "rounds") if name in condition}
    return make_game(condition["game"], {**condition.get("rules", {}), **sizes})


def level_domain(condition: Mapping[str, Any]) -> Domain:
    """The domain of a game's primary metric under a condition; unbounded above if the game is unknown."""
    try:
        game = game_of(condition)
    except (KeyError, UsageError):
        return COUNT
    [primary] = [quantity for quantity in game.quantities if quantity.name == game.primary]
    return Domain(primary.low, primary.high)
