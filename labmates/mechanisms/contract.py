"""Contracts: payments among players for their actions, once all have signed (CoopEval, section 3)."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from pydantic import Field

from labmates.errors import UsageError
from labmates.games.normal_form import NormalForm, cooperation
from labmates.mechanisms.base import Blank, Sheet
from labmates.mechanisms.negotiation import Negotiation
from labmates.mechanisms.theorem import dominant_payment
from labmates.mechanisms.wording import Answer

_USUAL_MOST = 1000


class Contract(Negotiation):
    """A payment for each action, to players who take it from all others in equal parts."""

    name: ClassVar[str] = "contract"
    title: ClassVar[str] = "Contract"
    summary: ClassVar[str] = (
        "Players propose payments for each action and vote. If all sign the winner, whoever takes an action receives "
        "its payment from the others, in equal parts."
    )
    thing: ClassVar[str] = "contract"
    is_signed: ClassVar[bool] = True

    most: int = Field(
        0,
        ge=0,
        le=10**15,
        description="Maximum payment, in either direction; 0 means 1000, or in games with large payoffs the power of "
        "ten with which cooperation can be made dominant.",
    )

    def rules(self, game: NormalForm) -> str:
        """The rule on contracts."""
        parts = "the other player pays it" if game.players == 2 else "the other players pay it in equal parts"
        signing, unsigned = "Under it,", ""
        if self._asks_to_sign:
            signing = (
                "After the vote, each player signs the winning contract or not, and all learn who did not. It takes "
                "effect only if all sign:"
            )
            unsigned = " If anyone does not sign, there are no payments."
        return (
            f"{self.voting()} A contract sets a payment for each action. {signing} in addition to the game's "
            "points, every player who takes an action receives the payment for that action, and "
            f"{parts}. A negative payment goes the other way.{unsigned}"
        )

    def check(self, game: NormalForm) -> None:
        """Check that all players have the same number of actions, since payments are for actions of any player."""
        if len(set(map(len, game.labels))) > 1:
            raise UsageError("a contract needs a game in which all players have the same number of actions")

    def sheet(self, game: NormalForm) -> Sheet:
        """The form, with a blank for each action."""
        most = self.most or max(_USUAL_MOST, 10 ** len(str(dominant_payment(game) - 1)))
        allowed = range(-most, most + 1)
        return Sheet(tuple(Blank(label, allowed, f"the payment for {label}") for label in game.labels[0]), {})

    def ask_for(self, game: NormalForm) -> str:
        """The request for a contract."""
        payers = "other player" if game.players == 2 else "others"
        return f"Propose a contract: for each action, the payment from the {payers} to a player who takes it."

    def tell(self, game: NormalForm, design: Answer) -> str:
        """The payment for each action."""
        return ", ".join(f"{design[label]} for {label}" for label in game.labels[0])

    def apply(self, game: NormalForm, design: Answer) -> NormalForm:
        """The game with the payments."""
        n = game.players
        payments = [Fraction(design[label]) for label in game.labels[0]]
        payoffs = game.payoffs.copy()
        for profile in game.profiles():
            for actor, action in enumerate(profile):
                share = payments[action] / (n - 1)
                payoffs[profile] -= share
                payoffs[(*profile, actor)] += payments[action] + share
        return NormalForm(game.labels, payoffs, cooperation(game), game.defect)
