"""Contracts: payments among players that depend on what each does, once all have signed (CoopEval, section 3)."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from pydantic import Field

from labmates.errors import UsageError
from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import Answer, Blank, Sheet
from labmates.mechanisms.negotiation import Negotiation, cooperation


class Contract(Negotiation):
    """A payment for each action: who takes it receives it, and all others pay it in equal parts."""

    name: ClassVar[str] = "contract"
    title: ClassVar[str] = "Contract"
    summary: ClassVar[str] = (
        "Players propose payments for each action and vote. If all sign the winner, whoever takes an action receives "
        "its payment from the others, in equal parts."
    )
    thing: ClassVar[str] = "contract"
    is_signed: ClassVar[bool] = True

    most: int = Field(1000, ge=1, le=1_000_000, description="The largest payment that can be proposed, either way.")

    def rules(self, game: NormalForm) -> str:
        """Say what a contract is."""
        parts = "the other player pays it" if game.players == 2 else "the other players pay it in equal parts"
        return (
            "Before the game, players agree on a contract: each proposes one, and all vote by approval; a tie is "
            "broken by chance. A contract lays down a payment for each action. Then each player signs the winner or "
            "not. Only if all sign does it hold: on top of the game's points, whoever takes an action receives the "
            f"payment of that action, and {parts}. A negative payment goes the other way."
        )

    def check(self, game: NormalForm) -> None:
        """Check that all players have as many actions, since payments are for actions whoever takes them."""
        if len(set(map(len, game.labels))) > 1:
            raise UsageError("a contract needs a game in which all players have the same number of actions")

    def sheet(self, game: NormalForm) -> Sheet:
        """Return a blank for each action."""
        allowed = range(-self.most, self.most + 1)
        return Sheet(tuple(Blank(label, allowed, f"the payment for {label}") for label in game.labels[0]), {})

    def ask_for(self, game: NormalForm) -> str:
        """Ask for a contract."""
        return "Propose a contract: for each action, the payment that whoever takes it receives from the others."

    def tell(self, game: NormalForm, design: Answer) -> str:
        """Say what is paid for which action."""
        return ", ".join(f"{design[label]} for {label}" for label in game.labels[0])

    def apply(self, game: NormalForm, design: Answer) -> NormalForm:
        """Return the game with the payments."""
        n = game.players
        payments = [Fraction(design[label]) for label in game.labels[0]]
        payoffs = game.payoffs.copy()
        for profile in game.profiles():
            for actor, action in enumerate(profile):
                share = payments[action] / (n - 1)
                payoffs[profile] -= share
                payoffs[(*profile, actor)] += payments[action] + share
        return NormalForm(game.labels, payoffs, cooperation(game), game.defect)
