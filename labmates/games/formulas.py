"""Payoffs by formula, for games whose payoff tables follow one: they are then told by it as well."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from labmates.games.base import Exact


class Pool(BaseModel):
    """A pool that is multiplied and shared: the first action gives to it, the second keeps.

    Who keeps has `kept` points more than the share that everybody gets.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["pool"] = "pool"
    factor: Exact = Field(gt=0, description="Multiplier of all contributions before they are shared.")
    kept: Exact = Field(Fraction(1), description="Points that a player keeps by giving nothing.")

    def payoffs(self, actions: Sequence[str], profile: Sequence[str]) -> tuple[Fraction, ...]:
        """The payoff of each player when they take the actions of a profile."""
        share = self.factor * profile.count(actions[0]) / len(profile)
        return tuple(share if action == actions[0] else share + self.kept for action in profile)


class Claims(BaseModel):
    """Two claims: both get the lower one, and the higher claimant pays the lower one a bonus."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["claims"] = "claims"
    bonus: Exact = Field(description="Transfer from the higher claimant to the lower one.")

    def payoffs(self, actions: Sequence[str], profile: Sequence[str]) -> tuple[Fraction, ...]:
        """The payoff of each player when they take the actions of a profile, which are numbers."""
        del actions
        claims = [Fraction(action) for action in profile]
        return tuple(min(claims) + self.bonus * ((own < max(claims)) - (own > min(claims))) for own in claims)


Formula = Annotated[Pool | Claims, Field(discriminator="kind")]
