"""The weakest link: the payoff of all players depends on the lowest effort."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from labmates.games.base import Array, Game, People, Quantity


class WeakestLink(Game):
    """A coordination game with an equilibrium at every common effort; the secure one is zero effort."""

    name: ClassVar[str] = "weakest-link"
    title: ClassVar[str] = "Weakest link"
    summary: ClassVar[str] = (
        "Each player makes an effort. All get a multiple of the lowest effort of any player, minus their own effort."
    )
    formal: ClassVar[tuple[str, ...]] = (
        "Each of the $players players, across all groups, chooses an effort: a whole number from 0 to $most_effort.",
        "Let L be the lowest effort chosen by any of the $players players.",
        "Your payoff in the round is $multiplier × L minus your own effort.",
        "So effort beyond L earns you nothing, and L rises if and only if all who made the lowest effort make more.",
    )
    prose: ClassVar[str] = (
        "All $players players, across all groups, work on something that turns out only as well as the player who "
        "tries least makes it. You choose how much effort to make, from 0 to $most_effort. Everybody then receives "
        "$multiplier for each unit of the lowest effort made by anyone, and pays 1 for each unit of their own effort. "
        "Any effort beyond the lowest is wasted."
    )
    remarks: ClassVar[tuple[str, ...]] = (
        "High effort pays only if everybody else makes as much: a single low effort sets the lowest effort, "
        "and those who made a high effort lose.",
        "It is best for everybody if all choose $most_effort, which requires trust that nobody chooses less.",
    )
    primary: ClassVar[str] = "effort"
    source: ClassVar[str] = "Cooperative profiles, section 3 and appendix B"
    people: ClassVar[tuple[People, ...]] = (
        People(
            "fall to a mean effort of 3 to 4 within 5 to 10 rounds",
            "Van Huyck et al. (1990), Devetag and Ortmann (2007)",
            "level",
            3,
            4,
        ),
    )

    most_effort: int = Field(10, ge=1, le=1000, description="Maximum effort.")
    multiplier: int = Field(2, ge=1, le=1000, description="Payoff of each player per unit of the least effort.")

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The effort."""
        return (Quantity("effort", 0, self.most_effort, "your effort"),)

    def payoffs(self, decisions: Array) -> Array:
        """The multiple of the lowest effort in all groups, minus the player's own effort."""
        effort = decisions[..., 0]
        return np.asarray(self.multiplier * effort.min(axis=(-2, -1), keepdims=True) - effort)

    @property
    def default_decision(self) -> tuple[int, ...]:
        """No effort."""
        return (0,)

    def public(self, history: Array) -> tuple[str, ...]:
        """The lowest effort of all players."""
        return (f"lowest effort of all {self.players} players: {history[-1].min()}",)

    def cooperation(self, history: Array) -> float:
        """The lowest effort of a round as a share of the maximum effort, mean over rounds."""
        return self.outcome(history)["least_effort"] / self.most_effort

    def outcome(self, history: Array) -> dict[str, float]:
        """The mean over rounds of the lowest effort."""
        return {"least_effort": float(history[..., 0].min(axis=(-2, -1)).mean())}
