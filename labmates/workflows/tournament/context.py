"""The context and the states of a tournament's graphs.

States are small and plain, since each step of a graph records them. A player's memory is its completed matches.
Parallel matches share no player, so that no memory depends on their order of completion.
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
from labmates.util.seeds import derive
from labmates.workflows.calls.call import Speaker
from labmates.workflows.play.playing import Table
from labmates.workflows.play.wordings import renamed
from labmates.workflows.protocol.services import Services
from labmates.workflows.tournament.briefs import Briefing, View
from labmates.workflows.tournament.condition import TournamentCondition


class MatchData(TypedDict):
    """A completed match as plain data; see `Match`."""

    number: int
    players: list[str]
    rounds: list[list[Action]]
    chosen: list[list[Action]]
    end: End
    by: list[str]


def add_matches(old: list[MatchData], new: list[MatchData]) -> list[MatchData]:
    """Merge matches in the order of the schedule."""
    return sorted([*old, *new], key=lambda match: match["number"])


class TournamentState(TypedDict):
    """State of a whole tournament.

    Attributes
    ----------
    turn
        Number of rounds of the schedule that have begun.
    matches
        Completed matches.
    plans
        The latest plan of each player with one.
    played
        Number of rounds each player has played.
    planned
        That number at the time of the player's last plan.
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
    memory
        Completed matches of either player.
    rounds, chosen
        Both moves of each round so far, as executed and as chosen.
    moves
        Both moves of the present round; None for a player without a usable move.
    messages
        Both messages before a round, with its number; empty if unusable.
    matches
        The match itself, once it is completed.
    """

    number: int
    players: list[str]
    memory: list[MatchData]
    rounds: list[list[Action]]
    chosen: list[list[Action]]
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
        The latest of each; empty if unusable.
    turn
        Number of critiques so far.
    plans
        The resulting plan, by player.
    """

    number: int
    player: str
    memory: list[MatchData]
    rounds: list[list[Action]]
    chosen: list[Action]
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
    """A completed match."""
    first, second = data["players"]
    return Match(
        data["number"],
        (first, second),
        (team_of[first], team_of[second]),
        tuple((first_move, second_move) for first_move, second_move in data["rounds"]),
        data["end"],
        tuple(data["by"]),
        tuple((first_move, second_move) for first_move, second_move in data["chosen"]),
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
        """Numbered matches, in sequential rounds of parallel matches."""
        condition = self.condition
        rounds = schedule(condition.players_of, within_teams=condition.within_teams, seed=derive(self.seed, "schedule"))
        numbers = iter(range(1, sum(map(len, rounds)) + 1))
        return [[(next(numbers), pair) for pair in pairs] for pairs in rounds]

    @cached_property
    def briefing(self) -> Briefing:
        """The prompts of the tournament."""
        return Briefing(self.condition, is_reversed=self.condition.reverses_options(self.seed))

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """Displayed names of both actions, as listed."""
        return tuple(self.briefing.labels[LABELS[action]] for action in self.briefing.listed)

    def meant(self, answer: Form) -> dict[str, Any]:
        """A player's answer with the labels of records."""
        values: dict[str, Any] = renamed(
            answer.model_dump(), {name: label for label, name in self.briefing.labels.items()}
        )
        return values

    @cached_property
    def _speakers(self) -> dict[str, Speaker]:
        condition = self.condition
        return {
            player: Speaker(team if condition.has_teams else "players", player, condition.model_of(player))
            for player, team in condition.players.items()
        }

    def speaker(self, player: str) -> Speaker:
        """The player as a speaker."""
        return self._speakers[player]

    def view(
        self,
        player: str,
        memory: Sequence[MatchData],
        rounds: Sequence[Round],
        opponent: str,
        left: int,
        plan: str,
        chosen: Sequence[Action] = (),
    ) -> View:
        """A player's knowledge: its own matches, and before a round nothing of its opponent."""
        matches = (match_of(data, self.condition.players) for data in memory if player in data["players"])
        return View(player, tuple(matches), tuple(rounds), opponent if rounds else "", left, plan, chosen=tuple(chosen))

    def left(self, player: str, played: dict[str, int]) -> int:
        """Number of rounds left to a player."""
        return self.condition.total_rounds - played.get(player, 0)

    def failed(self, step: str, player: str, stage: str, match: int, round_: int) -> None:
        """Record a failed step of planning, which keeps the previous plan."""
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
    """The rounds of a match with the moves of the player at `seat` first."""
    return [(both[seat], both[1 - seat]) for both in rounds]
