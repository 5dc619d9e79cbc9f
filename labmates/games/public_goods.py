"""Public goods: contributions to a group's pool or a global pool are multiplied and shared."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from pydantic import Field

from labmates.games.base import Array, Decision, Exact, Game, People, Quantity


class PublicGoods(Game):
    """A social dilemma of two levels: keeping is dominant, the group pool is best, and the global pool lies between."""

    name: ClassVar[str] = "public-goods"
    title: ClassVar[str] = "Public goods"
    summary: ClassVar[str] = (
        "Each player divides an endowment between itself, its group's pool and a global pool of all groups. The "
        "content of each pool is multiplied and divided equally among the players who share it."
    )
    formal: ClassVar[tuple[str, ...]] = (
        "In each round each player has $endowment units. You put a whole number of them into your group's pool (group) "
        "and another into the global pool (global), at most $endowment in all.",
        "You keep the rest (keep).",
        "The units that the $group_size members of your group put into the group's pool are multiplied by "
        "$group_multiplier and divided equally among these $group_size.",
        "The units that the $players players of all groups put into the global pool are multiplied by "
        "$global_multiplier and divided equally among all $players.",
        "Your payoff in the round is what you keep plus your share of both pools.",
    )
    prose: ClassVar[str] = (
        "Every round you receive $endowment units and decide what to do with each of them. You can keep a unit, at "
        "its plain value. You can give it to your group: the group's pool is worth $group_multiplier times its "
        "content and is divided equally among the $group_size members, whoever contributed. Or you can give it to a "
        "global pool for everybody, which is worth $global_multiplier times its content and is divided equally "
        "among all $players players. You receive your share of both pools even if you gave nothing to them."
    )
    primary: ClassVar[str] = "group"
    rest: ClassVar[str] = "keep"
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
        """The endowment, which is split completely."""
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

    def cooperation(self, history: Array) -> float:
        """The share of the endowment given to either pool."""
        return 1 - self.outcome(history)["kept_share"]

    def outcome(self, history: Array) -> dict[str, float]:
        """The mean shares of the endowment that are kept and that go to the global pool."""
        keep, _, common = (float(history[..., place].mean()) / self.endowment for place in range(3))
        return {"kept_share": keep, "global_share": common}

    def payoffs(self, decisions: Array) -> Array:
        """Each player's kept amount plus the shares of both pools."""
        exact = decisions.dtype == object
        multipliers = self.group_multiplier, self.global_multiplier
        in_group, in_all = multipliers if exact else map(float, multipliers)
        keep, group, common = (decisions[..., place] for place in range(3))
        return np.asarray(
            keep
            + in_group * group.sum(axis=-1, keepdims=True) / self.group_size
            + in_all * common.sum(axis=(-2, -1), keepdims=True) / self.players
        )
