"""Gifting: after play, players may give points to others (Lupu and Precup 2020; CoopEval, appendix A)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import Blank, Insufficient, Play, Seats, Sheet, Then
from labmates.mechanisms.play import before_settling, settled
from labmates.mechanisms.wording import actions_text


class Gifting(Insufficient):
    """Gifts cost their giver, so a selfish player gives none."""

    name: ClassVar[str] = "gifting"
    title: ClassVar[str] = "Gifting"
    summary: ClassVar[str] = "After the actions are known, players may give points of their own to the others."
    transfers: ClassVar[bool] = True

    most: int = Field(10, ge=1, le=1_000_000, description="Maximum gift to each other player, in points.")

    def rules(self, game: NormalForm) -> str:
        """The rule on gifts."""
        return (
            f"After the actions are known, each player may give 0 to {self.most} of its points to each other player. "
            "Gifts are voluntary, and all players give at the same time."
        )

    def play(self, game: NormalForm, seats: Seats, then: Then) -> Play:
        """Play the game, then ask for gifts."""
        played = yield from before_settling(game, seats, then)
        n = game.players
        told = [actions_text("Actions taken", played.result.deeds, me) for me in range(n)]
        now = seats.telling(told, [{"deeds": list(played.result.deeds)}] * n, step=f"{seats.step}{self.name}/")
        others = [[other for other in range(n) if other != me] for me in range(n)]
        sheets = [
            Sheet(
                tuple(Blank(f"player {other + 1}", range(self.most + 1), "points you give") for other in theirs),
                {f"player {other + 1}": 0 for other in theirs},
            )
            for theirs in others
        ]
        answers = yield now.ask("settle", ["Give: how many points do you give each other player?"] * n, sheets)
        given = [sum(answer.values()) for answer in answers]
        received = [sum(answer.get(f"player {me + 1}", 0) for answer in answers) for me in range(n)]
        return settled(seats, played, [gain - loss for gain, loss in zip(received, given, strict=True)])
