"""Correlated strategies: a device recommends an action to each player (Aumann 1974; CoopEval, section 3)."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from labmates.games.normal_form import NormalForm, Profile
from labmates.mechanisms.base import Insufficient, Play, Seats, Then
from labmates.util.seeds import derive

_LEAST = 1e-9
"""Plays with a smaller probability are treated as impossible."""


class Correlation(Insufficient):
    """Recommendations are drawn from the correlated equilibrium with the greatest sum of payoffs."""

    name: ClassVar[str] = "correlation"
    title: ClassVar[str] = "Correlated recommendations"
    summary: ClassVar[str] = (
        "A device draws a play and recommends to each player its part. Nobody gains by not following it alone."
    )

    def rules(self, game: NormalForm) -> str:
        """The distribution of the device."""
        plays = zip(game.profiles(), best_correlated(game), strict=True)
        drawn = "; ".join(
            f"{', '.join(_actions(game, profile))} with {100 * share:.3g} %" for profile, share in plays if share
        )
        return (
            "Before the game, a device draws one combination of actions (of player 1, player 2 and so on) and tells "
            f"each player its own action in it as a recommendation: {drawn}. Recommendations are not binding."
        )

    def play(self, game: NormalForm, seats: Seats, then: Then) -> Play:
        """Give recommendations, then play the game."""
        rng = random.Random(derive(seats.seed, self.name, seats.step))
        [profile] = rng.choices(list(game.profiles()), weights=best_correlated(game))
        recommended = _actions(game, profile)
        told = [f"## Your recommendation\n{action}" for action in recommended]
        return (yield from then(game, seats.telling(told, [{"recommended": action} for action in recommended])))


def _actions(game: NormalForm, profile: Profile) -> list[str]:
    return [labels[action] for labels, action in zip(game.labels, profile, strict=True)]


def best_correlated(game: NormalForm) -> list[float]:
    """The correlated equilibrium with the greatest sum of expected payoffs, as probabilities of the game's profiles."""
    from scipy.optimize import linprog

    total = game.table.sum(axis=-1).ravel()
    gains = np.array(_gains(game))
    solution = linprog(-total, A_ub=gains, b_ub=np.zeros(len(gains)), A_eq=np.ones((1, total.size)), b_eq=[1.0])
    shares = np.where(solution.x < _LEAST, 0.0, solution.x)
    return [float(share) for share in shares / shares.sum()]


def _gains(game: NormalForm) -> list[NDArray[Any]]:
    """Gains in each profile from deviating, for each player, recommended action and other action."""
    rows = []
    for player, labels in enumerate(game.labels):
        payoffs = np.moveaxis(game.table[..., player], player, 0)
        for followed in range(len(labels)):
            for taken in range(len(labels)):
                if taken != followed:
                    row = np.zeros_like(payoffs)
                    row[followed] = payoffs[taken] - payoffs[followed]
                    rows.append(np.moveaxis(row, 0, player).ravel())
    return rows
