"""How near a play is to what is best for all: by what was done, and by what came of it."""

from __future__ import annotations

from labmates.games.references import References


def pareto_proximity(level: float, plays: References) -> float | None:
    """Return how far the primary metric is from the play that is best for all, 0 there and 1 at the equilibrium.

    The distance from the optimum over that of the equilibrium, cut off at 1 (cooperative-profiles paper, section 3.1).
    None where both are the same.

    Parameters
    ----------
    level
        Mean of the primary quantity.
    plays
        The game's reference plays.

    Notes
    -----
    It measures actions, not what comes of them: who contributes twice what the target needs is as far from the optimum
    as who contributes nothing. `welfare_proximity` tells these apart.
    """
    optimum, nash = float(plays.optimum.level), float(plays.nash.level)
    if optimum == nash:
        return None
    return min(1.0, abs(level - optimum) / abs(nash - optimum))


def welfare_proximity(welfare: float, plays: References) -> float | None:
    """Return which share of what cooperation can bring is missing: 0 at the optimum, 1 at the equilibrium or below.

    (W* − W) / (W* − W_N) on expected welfare, cut off to [0, 1]. None where cooperation can bring nothing.

    Parameters
    ----------
    welfare
        What a player may expect, the mean over players, in the units of the reduced game.
    """
    optimum, nash = float(plays.optimum.payoff), float(plays.nash.payoff)
    if optimum == nash:
        return None
    return min(1.0, max(0.0, (optimum - welfare) / (optimum - nash)))
