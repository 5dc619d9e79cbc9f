"""Public goods: what is given to the group or to all grows, and is shared."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from pydantic import Field

from labmates.games.base import Array, Exact, Game, Quantity


class PublicGoods(Game):
    """A social dilemma of two levels: keeping is dominant, the group's good is best, that of all lies between."""

    name: ClassVar[str] = "public-goods"
    title: ClassVar[str] = "Public goods"
    summary: ClassVar[str] = (
        "Each player splits an endowment between keeping it, a pool of the own group and a pool of all groups. What is "
        "in a pool is multiplied and shared out evenly among those whose pool it is."
    )
    primary: ClassVar[str] = "group"
    source: ClassVar[str] = "Cooperative profiles, section 3 and appendix G"

    endowment: int = Field(10, ge=1, le=100, description="What each player has in each round.")
    group_multiplier: Exact = Field(Fraction(2), ge=0, description="What becomes of a unit in the group's pool.")
    global_multiplier: Exact = Field(Fraction(3, 2), ge=0, description="What becomes of a unit in the pool of all.")

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """What is kept and what goes into either pool."""
        return (
            Quantity("keep", 0, self.endowment, "what you keep"),
            Quantity("group", 0, self.endowment, "what you put into your group's pool"),
            Quantity("global", 0, self.endowment, "what you put into the pool of all groups"),
        )

    @property
    def total(self) -> int:
        """The endowment: all of it is split."""
        return self.endowment

    def payoffs(self, decisions: Array) -> Array:
        """Return what each keeps, and the shares of both pools."""
        exact = decisions.dtype == object
        group, whole = (one if exact else float(one) for one in (self.group_multiplier, self.global_multiplier))
        keep, own, common = (decisions[..., place] for place in range(3))
        return np.asarray(
            keep
            + group * own.sum(axis=-1, keepdims=True) / self.group_size
            + whole * common.sum(axis=(-2, -1), keepdims=True) / self.players
        )
