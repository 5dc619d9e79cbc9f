"""Public goods: what is given to the group or to all grows, and is shared."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from pydantic import Field

from labmates.games.base import Array, Decision, Exact, Game, People, Quantity


class PublicGoods(Game):
    """A social dilemma of two levels: keeping is dominant, the group's good is best, that of all lies between."""

    name: ClassVar[str] = "public-goods"
    title: ClassVar[str] = "Public goods"
    summary: ClassVar[str] = (
        "Each player splits an endowment between keeping it, a pool of the own group and a pool of all groups. What is "
        "in a pool is multiplied and shared out evenly among those whose pool it is."
    )
    formal: ClassVar[tuple[str, ...]] = (
        "In each round each player has $endowment units and splits all of them into three parts, whole numbers that "
        "add up to $endowment: keep, group and global.",
        "What you keep is yours.",
        "What the $group_size members of your group put into the group's pool is multiplied by $group_multiplier and "
        "shared out evenly among these $group_size.",
        "What the $players players of all groups put into the global pool is multiplied by $global_multiplier and "
        "shared out evenly among all $players.",
        "Your payoff of the round is what you keep plus both shares.",
    )
    prose: ClassVar[str] = (
        "Every round you are given $endowment units and find a place for each of them. They may stay with you, at "
        "their plain value. They may go to your group: its pool is worth $group_multiplier times what is in it and is "
        "divided equally among the $group_size members, whoever filled it. Or they may go to a global pool for "
        "everybody, which is worth $global_multiplier times its content and is divided equally among all $players "
        "players. You receive your part of both pools whether or not you have given anything to them."
    )
    primary: ClassVar[str] = "group"
    source: ClassVar[str] = "Cooperative profiles, section 3 and appendix G"
    people: ClassVar[tuple[People, ...]] = (
        People(
            "give 40 to 60 % of their endowment in early rounds, and less later",
            "Ledyard (1995), Chaudhuri (2011)",
            "kept_share",
            0.4,
            0.6,
        ),
    )

    endowment: int = Field(10, ge=1, le=100, description="Endowment of each player per round.")
    group_multiplier: Exact = Field(Fraction(2), ge=0, description="Multiplier of a unit in the group's pool.")
    global_multiplier: Exact = Field(Fraction(3, 2), ge=0, description="Multiplier of a unit in the pool of all.")

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The amounts kept and put into either pool."""
        return (
            Quantity("keep", 0, self.endowment, "what you keep"),
            Quantity("group", 0, self.endowment, "what you put into your group's pool"),
            Quantity("global", 0, self.endowment, "what you put into the pool of all groups"),
        )

    @property
    def total(self) -> int:
        """The endowment: all of it is split."""
        return self.endowment

    @property
    def default_decision(self) -> Decision:
        """Everything kept."""
        return (self.endowment, 0, 0)

    def public(self, history: Array) -> tuple[str, ...]:
        """The content of the global pool."""
        return (f"in the global pool, by all {self.players} players: {int(history[-1][..., 2].sum())}",)

    def group_facts(self, decisions: Array, group: int) -> tuple[str, ...]:
        """The content of the group's pool."""
        return (f"in your group's pool: {int(decisions[group, :, 1].sum())}",)

    def outcome(self, history: Array) -> dict[str, float]:
        """The mean shares of the endowment that are kept and that go to the pool of all."""
        keep, _, common = (float(history[..., place].mean()) / self.endowment for place in range(3))
        return {"kept_share": keep, "global_share": common}

    def payoffs(self, decisions: Array) -> Array:
        """Each player's kept amount plus the shares of both pools."""
        exact = decisions.dtype == object
        group, whole = (one if exact else float(one) for one in (self.group_multiplier, self.global_multiplier))
        keep, own, common = (decisions[..., place] for place in range(3))
        return np.asarray(
            keep
            + group * own.sum(axis=-1, keepdims=True) / self.group_size
            + whole * common.sum(axis=(-2, -1), keepdims=True) / self.players
        )
