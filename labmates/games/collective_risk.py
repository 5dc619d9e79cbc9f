"""Collective risk: unless all players together contribute enough, their savings may be lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np
from pydantic import Field

from labmates.games.base import Array, Decision, Exact, Game, People, Quantity, balanced, in_figures


class CollectiveRisk(Game):
    """A threshold public good over several rounds, with a probabilistic loss below the threshold.

    In the reduced game, a strategy is a player's contribution to all rounds together.
    """

    name: ClassVar[str] = "collective-risk"
    title: ClassVar[str] = "Collective risk"
    summary: ClassVar[str] = (
        "In each round each player contributes part of an allowance and saves the rest. If the total contribution "
        "misses a target, everybody loses all savings with a given probability."
    )
    formal: ClassVar[tuple[str, ...]] = (
        "The $players players of all groups have a common target: to contribute $target units in total, over $length.",
        "In each round each player gets $allowance units, contributes a whole number of them, from 0 to $allowance, "
        "and saves the rest.",
        "If the target is reached by the end of round $rounds, every player keeps all of its savings.",
        "If it is missed, either all players lose all their savings, with a probability of $loss_probability, or "
        "nobody loses any.",
    )
    prose: ClassVar[str] = (
        "A danger threatens all $players players, in your group and in the others. It is averted if everybody together "
        "sets aside $target units within $length. Every round you receive $allowance units and decide how "
        "many of them go to the common cause; the rest are your savings. If enough was set aside by the end of the "
        "last round, you keep your savings. If not, chance decides for all players at once: with a probability of "
        "$loss_probability, everybody's savings are lost."
    )
    remarks: ClassVar[tuple[str, ...]] = (
        "Reaching the target averts a catastrophe, such as dangerous climate change. The challenge is to contribute "
        "enough together without any player giving up too much.",
    )
    primary: ClassVar[str] = "contribution"
    span: ClassVar[str] = "in all rounds together"
    source: ClassVar[str] = "Cooperative profiles, section 3 and appendix E"
    people: ClassVar[tuple[People, ...]] = (
        People(
            "reach the target in 50 to 60 % of groups where the risk is high",
            "Milinski et al. (2008), Tavoni et al. (2011)",
            "target_reached",
            0.5,
            0.6,
        ),
    )

    rounds: int = Field(10, ge=1, le=200, description="Rounds of decisions.")
    allowance: int = Field(10, ge=1, le=1000, description="Endowment of each player per round.")
    target: int = Field(100, ge=0, le=1_000_000, description="Target: the sum of all contributions over all rounds.")
    loss_probability: Exact = Field(
        Fraction(1, 2), ge=0, le=1, description="Probability of losing all savings below the target."
    )

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The contribution."""
        return (Quantity("contribution", 0, self.allowance, "what you contribute to the target"),)

    def payoffs(self, decisions: Array) -> Array:
        """The savings of a round, before a possible loss at the end."""
        return self.allowance - decisions[..., 0]

    def reached(self, contributed: Array) -> Array:
        """Whether the contributions of all players, shape ``(..., groups, group_size)``, reach the target."""
        return np.asarray(contributed.sum(axis=(-2, -1)) >= self.target)

    @property
    def default_decision(self) -> Decision:
        """No contribution."""
        return (0,)

    def public(self, history: Array) -> tuple[str, ...]:
        """The contributions, and the amount still missing."""
        total = int(history.sum())
        return (
            f"contributed by all {self.players} players in this round: {int(history[-1].sum())}",
            f"contributed so far: {total} of {self.target}; missing: {max(0, self.target - total)}",
        )

    def payoff_fact(self, payoff: float, so_far: float) -> str:
        """A player's savings; payoffs are settled only at the end."""
        return f"you saved in this round: {in_figures(payoff)}; your savings so far: {in_figures(so_far)}"

    def keeps(self, history: Array) -> Fraction:
        """1 if the target is reached, else the probability of no loss."""
        reached = bool(self.reached(history[..., 0].sum(axis=0)))
        return Fraction(1) if reached else 1 - self.loss_probability

    def cooperation(self, history: Array) -> float:
        """Whether the target was reached."""
        return float(self.reached(history[..., 0].sum(axis=0)))

    def doubts(self) -> tuple[str, ...]:
        """A target out of reach."""
        most = self.players * self.rounds * self.allowance
        return (f"the target is {self.target}, but all players together have {most}",) if most < self.target else ()

    def status(self, history: Array) -> tuple[str, ...]:
        """The contributed share of the target, the missing amount, and a warning in the last round."""
        contributed = int(history[..., 0].sum())
        share = f" ({contributed / self.target:.0%})" if self.target else ""
        lines = [
            f"contributed by all so far: {contributed} of {self.target}{share}",
            f"still needed from all players together: {max(0, self.target - contributed)}",
        ]
        if len(history) == self.rounds - 1:
            lines.append(
                "this is the last round: if the target is missed, all savings are lost with a probability of "
                f"{self.figures()['loss_probability']}"
            )
        return tuple(lines)

    def outcome(self, history: Array) -> dict[str, float]:
        """Whether the target was reached."""
        return {"target_reached": self.cooperation(history)}

    def decision_in(self, strategy: Decision, round_: int) -> Decision:
        """The contribution of a round, with the sum spread evenly over the rounds."""
        return (balanced(strategy[0], self.rounds)[round_],)

    def strategies(self) -> Iterable[Decision]:
        """Every possible contribution of a player to all rounds together."""
        return ((total,) for total in range(self.rounds * self.allowance + 1))

    def expected(self, profile: Array) -> Array:
        """The expected savings at the end."""
        contributed = profile[..., 0]
        savings = self.rounds * self.allowance - contributed
        kept = np.asarray(1 - self.loss_probability)
        return np.asarray(savings * np.where(self.reached(contributed)[..., None, None], 1, kept))

    def level_of(self, strategy: Sequence[int | Fraction]) -> Fraction:
        """The mean contribution of a round."""
        return Fraction(strategy[0], self.rounds)

    def candidates(self) -> Iterable[Array]:
        """A profile without contributions, and one that just reaches the target.

        Only the sum affects welfare, and contributions beyond the target are a loss.
        """
        for total in {0: None, min(self.target, self.players * self.rounds * self.allowance): None}:
            contributed = list(map(Fraction, balanced(total, self.players)))
            yield np.array(contributed, dtype=object).reshape(self.groups, self.group_size, 1)
