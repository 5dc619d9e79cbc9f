"""The common pool: the rest grows and is shared by all players."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from pydantic import Field

from labmates.games.base import Array, Decision, Game, People, Quantity


class CommonPool(Game):
    """A social dilemma: maximum extraction is dominant, and no extraction is the social optimum."""

    name: ClassVar[str] = "common-pool"
    title: ClassVar[str] = "Common pool"
    summary: ClassVar[str] = (
        "Each player takes units from a common pool. The remaining units are multiplied and divided equally among all "
        "players of all groups."
    )
    formal: ClassVar[tuple[str, ...]] = (
        "At the start of each round a pool that belongs to all $players players holds $pool units.",
        "Each player takes out a whole number of units, from 0 to $most_extraction.",
        "The units left in the pool are multiplied by $multiplier and divided equally among all $players players."
        "$overdrawn",
        "Your payoff in the round is what you took plus your share.",
    )
    prose: ClassVar[str] = (
        "There is one pool for the $players players of all groups. It is refilled to $pool units before every round. "
        "You may take up to $most_extraction of them for yourself, and so may everybody else. The rest of the pool "
        "grows to $multiplier times its size and is then divided equally among all players, whatever they took. You "
        "keep what you took and also receive your share; the more is taken, the smaller the shares.$overdrawn"
    )
    remarks: ClassVar[tuple[str, ...]] = ("$exhausted",)
    primary: ClassVar[str] = "extraction"
    source: ClassVar[str] = "Cooperative profiles, section 3 and appendix C"
    people: ClassVar[tuple[People, ...]] = (
        People(
            "extract 40 to 60 % of the socially optimal level (which is 0 in this game)",
            "Ostrom (1990), Cardenas (2003)",
        ),
    )

    pool: int = Field(100, ge=1, le=1_000_000, description="Pool at the start of a round.")
    most_extraction: int = Field(10, ge=1, le=1000, description="Maximum extraction of a player.")
    multiplier: int = Field(3, ge=1, le=1000, description="Growth factor of each remaining unit.")

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The amount taken."""
        return (Quantity("extraction", 0, self.most_extraction, "what you take from the pool"),)

    def payoffs(self, decisions: Array) -> Array:
        """Each player's take, and the share of the regrown rest."""
        taken = decisions[..., 0]
        left = np.maximum(self.pool - taken.sum(axis=(-2, -1), keepdims=True), 0)
        return np.asarray(taken + self.multiplier * left / self.players)

    def overdrawn(self, decisions: Array) -> Array:
        """The extraction in excess of the pool; payoffs follow the formula even then."""
        return np.asarray(np.maximum(decisions[..., 0].sum(axis=(-2, -1)) - self.pool, 0))

    def wording(self) -> dict[str, str]:
        """The rule on an overdrawn pool, if the players together can overdraw it, and the paper's remark."""
        most = self.players * self.most_extraction
        overdrawn = (
            f" If more than {self.pool} units are taken, all keep what they took, and there is nothing to share."
        )
        grows = "the more is taken, the less is left to grow."
        exhausted = (
            f"Taking too much exhausts the pool for everybody: {grows}" if most >= self.pool else grows.capitalize()
        )
        return {"overdrawn": overdrawn if most > self.pool else "", "exhausted": exhausted}

    @property
    def default_decision(self) -> Decision:
        """Maximum extraction."""
        return (self.most_extraction,)

    def public(self, history: Array) -> tuple[str, ...]:
        """The amounts taken and left."""
        taken = int(history[-1].sum())
        return (f"taken by all {self.players} players: {taken} of {self.pool}; left: {max(0, self.pool - taken)}",)

    def notes(self, history: Array) -> dict[str, float]:
        """The excess of extraction over the pool, if any."""
        overdrawn = float(self.overdrawn(history[-1]))
        return {"overdrawn": overdrawn} if overdrawn else {}

    def outcome(self, history: Array) -> dict[str, float]:
        """The share of rounds in which the pool was overdrawn."""
        return {"overdrawn_rate": float((self.overdrawn(history) > 0).mean())}

    def candidates(self) -> Iterable[Array]:
        """The profiles of minimum and maximum extraction.

        Only the sum affects welfare. Welfare falls or stays constant with the sum while units are left, and rises from
        there on, so its maximum is at one of the ends.
        """
        return map(self.uniform, ((0,), (self.most_extraction,)))


class CommonPoolWithSanctions(CommonPool):
    """The common pool with a second stage, in which members of a group can punish each other at a cost.

    Punishment only costs, so the subgame-perfect equilibrium has none, and its plays are those of the common pool.
    """

    name: ClassVar[str] = "common-pool-sanctions"
    title: ClassVar[str] = "Common pool with sanctions"
    summary: ClassVar[str] = (
        "The common pool, followed by a stage in which each player may spend tokens to punish members of its "
        "group, which costs them more than the token."
    )
    formal: ClassVar[tuple[str, ...]] = (
        *CommonPool.formal,
        "After that, each player learns what every member of its group took, and may spend up to $most_sanctions "
        "tokens in all to sanction members of its group.",
        "Each token that you spend lowers your payoff by $sanction_cost; each token spent on you lowers it by "
        "$sanction_effect.",
    )
    prose: ClassVar[str] = (
        f"{CommonPool.prose} Once everybody has taken, you learn what each member of your own group took. You may then "
        "spend tokens against any of them, up to $most_sanctions in a round: every token costs you $sanction_cost and "
        "costs its target $sanction_effect. They can do the same to you. Players of other groups can't be sanctioned."
    )
    source: ClassVar[str] = "Cooperative profiles, section 3 and appendix D"
    people: ClassVar[tuple[People, ...]] = (
        People(
            "extract 30 to 60 % less once they can punish each other",
            "Fehr and Gächter (2000)",
        ),
    )

    sanction_cost: int = Field(1, ge=0, le=1000, description="Cost of a token to its spender.")
    sanction_effect: int = Field(2, ge=0, le=1000, description="Loss of the sanctioned player per token.")
    most_sanctions: int = Field(10, ge=0, le=1000, description="Maximum number of tokens per player and round.")

    @property
    def sanction_limit(self) -> int:
        """Maximum number of tokens per player and round."""
        return self.most_sanctions

    def sanctioned(self, payoffs: Array, tokens: Array) -> Array:
        """Payoffs after the second stage; see `Game.sanctioned`."""
        spent, received = tokens.sum(axis=-1), tokens.sum(axis=-2)
        return np.asarray(payoffs - self.sanction_cost * spent - self.sanction_effect * received)
