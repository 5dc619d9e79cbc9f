"""Cheap talk: players announce an action before they choose, without commitment (CoopEval, section 3)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import Blank, Insufficient, Play, Seats, Sheet, Then
from labmates.mechanisms.wording import actions_text

_SILENCE = "nothing"


class CheapTalk(Insufficient):
    """All players announce an action or nothing, at the same time; then all choose."""

    name: ClassVar[str] = "cheap-talk"
    title: ClassVar[str] = "Cheap talk"
    summary: ClassVar[str] = "Before they choose, players announce an action, which does not bind them."

    def rules(self, game: NormalForm) -> str:
        """The rule on announcements."""
        return (
            "Before the game, all players announce at the same time which action they will take, or nothing. All read "
            "the announcements before they choose. Announcements are not binding."
        )

    def play(self, game: NormalForm, seats: Seats, then: Then) -> Play:
        """Ask for announcements, then play the game."""
        n = game.players
        table = replace(seats, step=f"{seats.step}{self.name}/")
        sheets = [
            Sheet((Blank("announcement", (_SILENCE, *labels), "your announcement"),), {"announcement": _SILENCE})
            for labels in game.labels
        ]
        answers = yield table.ask("announce", ["Announce: which action will you take?"] * n, sheets)
        announced = [str(answer["announcement"]) for answer in answers]
        told = [actions_text("Announcements", announced, me) for me in range(n)]
        return (yield from then(game, table.telling(told, [{"announced": announced}] * n)))
