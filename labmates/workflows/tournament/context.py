"""The context and the states of a tournament's graphs.

States are small and plain, since each step of a graph writes them down. What a player remembers is the matches that it
has finished. Matches that go on at the same time share no player, so that no memory depends on which of them ends
first.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from typing_extensions import TypedDict

from labmates.agents.decisions import Form
from labmates.games.iterated.match import LABELS, Action, End, Match, Move, Round
from labmates.games.iterated.schedule import Pairing, schedule
from labmates.records.events import DecisionEvent
from labmates.seeds import derive
from labmates.workflows.calls import Speaker
from labmates.workflows.playing import Table
from labmates.workflows.services import Services
from labmates.workflows.tournament.briefs import Briefing, View
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.wordings import renamed


class MatchData(TypedDict):
    """A match that is over, as plain data; see `Match`."""

    number: int
    players: list[str]
    rounds: list[list[Action]]
    end: End
    by: list[str]


def add_matches(old: list[MatchData], new: list[MatchData]) -> list[MatchData]:
    """Add matches, in the order of the schedule."""
    return sorted([*old, *new], key=lambda match: match["number"])


class TournamentState(TypedDict):
    """State of a whole tournament.

    Attributes
    ----------
    turn
        Rounds of the schedule that have begun.
    matches
        Those that are over.
    plans
        The newest plan of each player that has one.
    played
        Rounds that each player has played.
    planned
        How many it had played when it planned last.
    """

    turn: int
    matches: Annotated[list[MatchData], add_matches]
    plans: Annotated[dict[str, str], operator.or_]
    played: Annotated[dict[str, int], operator.or_]
    planned: Annotated[dict[str, int], operator.or_]


class Outcome(TypedDict):
    """The result of a match for the tournament."""

    matches: list[MatchData]
    plans: dict[str, str]
    played: dict[str, int]
    planned: dict[str, int]


class MatchState(TypedDict):
    """State of one match.

    Attributes
    ----------
    players
        Both.
    memory
        Matches of either that are over.
    rounds
        What both did in each round so far.
    moves
        What both have chosen in the present round; None for a player without a usable move.
    messages
        What both have written to each other before a round, with its number; empty without a usable message.
    matches
        The match itself, once it is over.
    """

    number: int
    players: list[str]
    memory: list[MatchData]
    rounds: list[list[Action]]
    moves: list[Move | None]
    messages: list[tuple[int, str, str]]
    plans: Annotated[dict[str, str], operator.or_]
    played: Annotated[dict[str, int], operator.or_]
    planned: Annotated[dict[str, int], operator.or_]
    matches: Annotated[list[MatchData], add_matches]


class PlanState(TypedDict):
    """State of one player's planning before a round.

    Attributes
    ----------
    draft, critique
        The newest of each; empty if there is none that could be used.
    turn
        Critiques so far.
    plans
        The plan that comes out of it, by player.
    """

    number: int
    player: str
    memory: list[MatchData]
    rounds: list[list[Action]]
    opponent: str
    plan: str
    left: int
    draft: str
    critique: str
    turn: int
    plans: dict[str, str]
    planned: dict[str, int]


class PlanOutcome(TypedDict):
    """The result of planning for the match."""

    plans: dict[str, str]
    planned: dict[str, int]


def match_of(data: MatchData, team_of: dict[str, str]) -> Match:
    """A match that is over."""
    first, second = data["players"]
    return Match(
        data["number"],
        (first, second),
        (team_of[first], team_of[second]),
        tuple((one, other) for one, other in data["rounds"]),
        data["end"],
        tuple(data["by"]),
    )


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
