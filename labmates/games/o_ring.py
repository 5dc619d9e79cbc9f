"""The O-ring: a group produces the product of its members' efforts, and every group must succeed."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import ClassVar

import numpy as np
from pydantic import Field

from labmates.games.base import Array, Decision, Game, Quantity, balanced


class ORing(Game):
    """A coordination game of complements, with a common resource that withdrawals deplete."""

    name: ClassVar[str] = "o-ring"
    title: ClassVar[str] = "O-ring"
    summary: ClassVar[str] = (
        "Each player withdraws units from a common resource to work with. A group's production is the product of its "
        "members' work and shrinks as all players withdraw more. If every group produces enough, all share a reward."
    )
    formal: ClassVar[tuple[str, ...]] = (
        "All $players players draw on a common resource of $resource units, refilled before each round. Each withdraws "
        "a whole number of units to work with, from 0 to $most_withdrawal, and pays 1 for each.",
        "A group's work is the product of (withdrawal / $most_withdrawal) over its $group_size members: one member who "
        "withdraws nothing makes it 0.",
        "A group produces $scale × (what is left of the resource / $resource) × its work; what is left depends on the "
        "withdrawals of all $players players.",
        "If every one of the $groups groups produces at least $threshold, a reward of $reward is divided equally "
        "among all $players players. If any group produces less, there is no reward.",
        "Your payoff in the round is your share of the reward, if there is one, minus your withdrawal.",
    )
    prose: ClassVar[str] = (
        "Each group of $group_size makes a product in which no part may fail, and all groups take their material from "
        "one store of $resource units, which is refilled at the start of every round. You withdraw from 0 to "
        "$most_withdrawal units and pay 1 for each of them. The quality of your part is your withdrawal divided by "
        "$most_withdrawal, and the parts of all members of a group are multiplied together, so a single member "
        "without material reduces the group's output to zero. But the emptier the store, the harder the work for "
        "everybody: the product is multiplied by $scale and by the share of the $resource units that all $players "
        "players have left. If each of the $groups groups reaches $threshold or more, $reward is divided equally "
        "among all $players players; if any group does not, nobody gets anything. Your withdrawal is subtracted "
        "either way."
    )
    remarks: ClassVar[tuple[str, ...]] = (
        "The qualities of all members multiply, as with the O-rings of the space shuttle Challenger: one that failed "
        "ended the mission.",
    )
    primary: ClassVar[str] = "withdrawal"
    source: ClassVar[str] = "Cooperative profiles, section 3 and appendix F"

    resource: int = Field(200, ge=1, le=1_000_000, description="Endowment that withdrawals come from.")
    most_withdrawal: int = Field(10, ge=1, le=100, description="Maximum withdrawal of a player.")
    scale: int = Field(
        1000, ge=1, le=1_000_000, description="Production of a group at full work and nothing withdrawn."
    )
    threshold: int = Field(50, ge=0, le=1_000_000, description="Production that every group needs.")
    reward: int = Field(200, ge=0, le=1_000_000, description="Bonus that all players share if every group succeeds.")

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The withdrawal."""
        return (Quantity("withdrawal", 0, self.most_withdrawal, "what you withdraw"),)

    def production(self, decisions: Array) -> Array:
        """The production of each group, ``(..., groups)``, in exact numbers."""
        withdrawn = decisions[..., 0].astype(object)  # exact, since success means to reach the threshold
        left = np.maximum(self.resource - withdrawn.sum(axis=(-2, -1), keepdims=True), 0)[..., 0]
        whole = self.resource * self.most_withdrawal**self.group_size
        return np.asarray(self.scale * left * withdrawn.prod(axis=-1) * Fraction(1, whole))

    def succeeds(self, decisions: Array) -> Array:
        """Whether every group produces at least the threshold."""
        return np.asarray((self.production(decisions) >= self.threshold).all(axis=-1))

    def payoffs(self, decisions: Array) -> Array:
        """The share of the reward, if any, minus the withdrawal."""
        exact = decisions.dtype == object
        share = np.asarray(Fraction(self.reward, self.players) if exact else self.reward / self.players)
        return np.where(self.succeeds(decisions)[..., None, None], share, 0) - decisions[..., 0]

    @property
    def default_decision(self) -> Decision:
        """No withdrawal."""
        return (0,)

    def public(self, history: Array) -> tuple[str, ...]:
        """The total withdrawal, and whether all groups have succeeded."""
        got = "every group produced enough" if self.succeeds(history[-1]) else "not every group produced enough"
        return (f"withdrawn by all {self.players} players: {int(history[-1].sum())} of {self.resource}", got)

    def group_facts(self, decisions: Array, group: int) -> tuple[str, ...]:
        """The group's production."""
        return (f"your group produced {float(self.production(decisions)[group]):.4g} (needed: {self.threshold})",)

    def cooperation(self, history: Array) -> float:
        """The share of rounds in which every group has succeeded."""
        return float(self.succeeds(history).mean())

    def outcome(self, history: Array) -> dict[str, float]:
        """The success rate."""
        return {"success_rate": self.cooperation(history)}

    def candidates(self) -> Iterable[Array]:
        """Profiles with the same total withdrawal in all groups, each divided as evenly as possible.

        For a given sum, the most even withdrawals of a group have the greatest product, and all groups need the same
        product.
        """
        for total in range(self.group_size * self.most_withdrawal + 1):
            group = list(map(Fraction, balanced(total, self.group_size)))
            yield np.array([group] * self.groups, dtype=object)[..., None]
