"""The O-ring: a group produces the product of what its members put in, and every group has to succeed."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import ClassVar

import numpy as np
from pydantic import Field

from labmates.games.base import Array, Game, Quantity, balanced


class ORing(Game):
    """A coordination game of complements, with a resource that withdrawals use up."""

    name: ClassVar[str] = "o-ring"
    title: ClassVar[str] = "O-ring"
    summary: ClassVar[str] = (
        "Each player withdraws from a common resource to work with it. A group's production is the product of its "
        "members' work, less the more is withdrawn by all. If every group produces enough, a reward is shared by all."
    )
    primary: ClassVar[str] = "withdrawal"
    source: ClassVar[str] = "Cooperative profiles, section 3 and appendix F"

    resource: int = Field(200, ge=1, le=1_000_000, description="What is there to withdraw from.")
    most_withdrawal: int = Field(10, ge=1, le=100, description="The most that a player may withdraw.")
    scale: int = Field(
        1000, ge=1, le=1_000_000, description="Production of a group at full work and nothing withdrawn."
    )
    threshold: int = Field(50, ge=0, le=1_000_000, description="Production that every group needs.")
    reward: int = Field(200, ge=0, le=1_000_000, description="What all players share if every group succeeds.")

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The withdrawal."""
        return (Quantity("withdrawal", 0, self.most_withdrawal, "what you withdraw"),)

    def production(self, decisions: Array) -> Array:
        """Return the production of each group, ``(..., groups)``, in exact numbers."""
        withdrawn = decisions[..., 0].astype(object)  # numbers of any size: whoever comes to the threshold succeeds
        left = np.maximum(self.resource - withdrawn.sum(axis=(-2, -1), keepdims=True), 0)[..., 0]
        whole = self.resource * self.most_withdrawal**self.group_size
        return np.asarray(self.scale * left * withdrawn.prod(axis=-1) * Fraction(1, whole))

    def succeeds(self, decisions: Array) -> Array:
        """Tell whether every group produces at least the threshold."""
        return np.asarray((self.production(decisions) >= self.threshold).all(axis=-1))

    def payoffs(self, decisions: Array) -> Array:
        """Return the share of the reward, if there is one, less what each has withdrawn."""
        exact = decisions.dtype == object
        share = np.asarray(Fraction(self.reward, self.players) if exact else self.reward / self.players)
        return np.where(self.succeeds(decisions)[..., None, None], share, 0) - decisions[..., 0]

    def candidates(self) -> Iterable[Array]:
        """Return profiles in which all groups withdraw the same, each as evenly as it can.

        Of a group's withdrawals with a given sum the most even have the greatest product, and for a given sum of all
        groups each needs the same product.
        """
        for total in range(self.group_size * self.most_withdrawal + 1):
            group = [Fraction(one) for one in balanced(total, self.group_size)]
            yield np.array([group] * self.groups, dtype=object)[..., None]
