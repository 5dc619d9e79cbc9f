"""A behavioural game in one file.

Everybody talks louder to be heard, and all suffer from the noise. The reference plays (the secure equilibrium and what
is best for all) are computed, not told.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

import labmates
from labmates.games.base import Array, Game, Quantity
from labmates.games.references import references
from labmates.games.registry import GAMES
from labmates_author.games import check_game


class LoudParty(Game):
    """Everybody talks a little louder than the others to be heard, and in the end nobody understands a word."""

    name: ClassVar[str] = "loud-party"
    title: ClassVar[str] = "Loud party"
    summary: ClassVar[str] = "Who talks louder is heard better, and the noise is everybody's."
    formal: ClassVar[tuple[str, ...]] = (
        "Each of the $players players chooses how loud to talk: a whole number from 0 to $loudest.",
        "You receive $heard for each step of your own loudness.",
        "You pay $noise times the mean loudness of all $players players, whatever group they are in.",
    )
    prose: ClassVar[str] = (
        "There are $players players in one room, and each chooses how loud to talk, from 0 to $loudest. Every step "
        "louder earns you $heard, since you are heard better. The noise costs you $noise for each step of the mean "
        "loudness in the room, in which your own voice counts as much as any other."
    )
    primary: ClassVar[str] = "loudness"

    loudest: int = Field(10, ge=1, le=100, description="The greatest loudness.")
    heard: int = Field(2, ge=1, le=1000, description="What each step of one's own loudness brings.")
    noise: int = Field(5, ge=1, le=1000, description="What each step of the mean loudness costs everybody.")

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """How loud to talk."""
        return (Quantity("loudness", 0, self.loudest, "how loud you talk"),)

    def payoffs(self, decisions: Array) -> Array:
        """Return what being heard brings, less everybody's noise."""
        loudness = decisions[..., 0]
        total = loudness.sum(axis=(-2, -1), keepdims=True)
        return np.asarray(self.heard * loudness - self.noise * total / self.players)

    @property
    def default_decision(self) -> tuple[int, ...]:
        """As loud as possible, which pays whatever the others do."""
        return (self.loudest,)

    def public(self, history: Array) -> tuple[str, ...]:
        """Return what everybody hears of a round."""
        return (f"loudness of all players together: {history[-1].sum()}",)


game = LoudParty()
problems = check_game(game)
plays = references(game)
print(f"Problems: {problems or 'none'}")
print(f"Secure equilibrium: {plays.nash.level}   best for all: {plays.optimum.level}")

GAMES.register("loud-party", LoudParty)
print(f"\n{'players':<22}{'loudness':>10}{'payoff':>9}{'efficiency':>12}")
for model in ("scripted:cooperate", "scripted:conditional", "scripted:random", "scripted:defect"):
    [run] = labmates.run("game", game="loud-party", model=model, store="sqlite:///party.db")
    found = run.metrics
    print(f"{model:<22}{found['level']:>10.1f}{found['payoff']:>9.1f}{found['efficiency']:>12.2f}")
