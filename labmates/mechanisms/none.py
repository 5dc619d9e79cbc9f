"""No mechanism: the game is played once."""

from __future__ import annotations

from typing import ClassVar

from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import Insufficient, Play, Seats, Then


class NoMechanism(Insufficient):
    """One simultaneous choice."""

    name: ClassVar[str] = "none"
    title: ClassVar[str] = "No mechanism"
    summary: ClassVar[str] = "Everybody chooses once, at the same time."

    def rules(self, game: NormalForm) -> str:
        """The rule of a single round."""
        return "The game is played once."

    def play(self, game: NormalForm, seats: Seats, then: Then) -> Play:
        """Play the game."""
        return (yield from then(game, seats))
