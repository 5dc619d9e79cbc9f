"""The weakest link: what all get depends on whoever makes the least effort."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from labmates.games.base import Array, Game, Quantity


class WeakestLink(Game):
    """A coordination game in which every common effort is an equilibrium, the safest at none."""

    name: ClassVar[str] = "weakest-link"
    title: ClassVar[str] = "Weakest link"
    summary: ClassVar[str] = (
        "Each player makes an effort. All get a multiple of the least effort of anybody, less their own."
    )
    primary: ClassVar[str] = "effort"
    source: ClassVar[str] = "Cooperative profiles, section 3 and appendix B"

    most_effort: int = Field(10, ge=1, le=1000, description="The greatest effort.")
    multiplier: int = Field(2, ge=1, le=1000, description="What each unit of the least effort brings to each player.")

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The effort."""
        return (Quantity("effort", 0, self.most_effort, "your effort"),)

    def payoffs(self, decisions: Array) -> Array:
        """Return the multiple of the least effort of all groups, less each player's own."""
        effort = decisions[..., 0]
        return np.asarray(self.multiplier * effort.min(axis=(-2, -1), keepdims=True) - effort)
