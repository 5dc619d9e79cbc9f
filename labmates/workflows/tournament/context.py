"""The context of a tournament's graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from labmates.agents.decisions import Form
from labmates.games.iterated.match import LABELS, Action, Round
from labmates.games.iterated.schedule import Pairing, schedule
from labmates.records.events import DecisionEvent
from labmates.seeds import derive
from labmates.workflows.calls import Speaker
from labmates.workflows.playing import Table
from labmates.workflows.services import Services
from labmates.workflows.tournament.briefs import Briefing, View
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.state import MatchData, match_of
from labmates.workflows.wordings import renamed


@dataclass(frozen=True)
class TournamentContext:
    """The context of one run."""

    condition: TournamentCondition
    table: Table
    seed: int

    @classmethod
    def of(cls, condition: TournamentCondition, services: Services) -> TournamentContext:
        """The context of a run with these services."""
        return cls(condition, Table(condition, services), services.seed)

    @cached_property
    def schedule(self) -> list[list[tuple[int, Pairing]]]:
        """Numbered matches, in rounds that can be played one after the other, each with all its matches at once."""
        condition = self.condition
        rounds = schedule(condition.players_of, within_teams=condition.within_teams, seed=derive(self.seed, "schedule"))
        numbers = iter(range(1, sum(map(len, rounds)) + 1))
        return [[(next(numbers), pair) for pair in pairs] for pairs in rounds]

    @cached_property
    def briefing(self) -> Briefing:
        """Writes the prompts."""
        return Briefing(self.condition)

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """The players' names of both actions."""
        return tuple(self.briefing.labels.get(LABELS[action], LABELS[action]) for action in ("C", "D"))

    def meant(self, answer: Form) -> dict[str, Any]:
        """A player's answer with the labels of records."""
        meant: dict[str, Any] = renamed(
            answer.model_dump(), {name: label for label, name in self.briefing.labels.items()}
        )
        return meant

    @cached_property
    def _speakers(self) -> dict[str, Speaker]:
        condition = self.condition
        return {
            player: Speaker(team if condition.has_teams else "players", player, condition.model_of(player))
            for player, team in condition.players.items()
        }

    def speaker(self, player: str) -> Speaker:
        """The speaker of a player."""
        return self._speakers[player]

    def view(
        self, player: str, memory: Sequence[MatchData], rounds: Sequence[Round], opponent: str, left: int, plan: str
    ) -> View:
        """A player's knowledge: its own matches, and nothing of its opponent before a round."""
        own = (match_of(data, self.condition.players) for data in memory if player in data["players"])
        return View(player, tuple(own), tuple(rounds), opponent if rounds else "", left, plan)

    def left(self, player: str, played: dict[str, int]) -> int:
        """The number of rounds a player has left."""
        return self.condition.budget - played.get(player, 0)

    def failed(self, step: str, player: str, stage: str, match: int, round_: int) -> None:
        """Record that a step of planning came to nothing, so that what was there before stays."""
        speaker = self.speaker(player)
        self.table.recorder.once(
            DecisionEvent(
                step=step,
                team=speaker.team,
                agent=player,
                stage=stage,
                round=round_,
                match=f"match {match}",
                decision={},
                failed=True,
            )
        )


def seen_by(rounds: Sequence[Sequence[Action]], seat: int) -> list[Round]:
    """The rounds of a match with the actions of the player at `seat` first."""
    return [(both[seat], both[1 - seat]) for both in rounds]
