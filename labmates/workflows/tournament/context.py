"""The context and the states of a tournament's graphs.

A player's memory is its completed matches. Parallel matches share no player, so that no memory depends on the order in
which they end.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from typing_extensions import TypedDict

from labmates.agents.decisions import Form
from labmates.games.iterated.match import LABELS, End, Match, Move, Round
from labmates.games.iterated.schedule import Pairing, schedule
from labmates.records.events import DecisionEvent
from labmates.util.seeds import derive
from labmates.workflows.calls.call import Speaker
from labmates.workflows.play.playing import Table
from labmates.workflows.play.wordings import renamed
from labmates.workflows.protocol.services import Services
from labmates.workflows.tournament.briefs import Briefing, View
from labmates.workflows.tournament.condition import TournamentCondition


def add_matches(old: list[Match], new: list[Match]) -> list[Match]:
    """Merge matches in the order of the schedule."""
    return sorted([*old, *new], key=lambda match: match.number)


class Plans(TypedDict):
    """The plans of players."""

    plans: Annotated[dict[str, str], operator.or_]  # the latest plan of each player with one
    planned: Annotated[dict[str, int], operator.or_]  # the number of rounds it had played at that time


class Progress(Plans):
    """What matches add to a tournament: completed matches, and the number of rounds each player has played."""

    matches: Annotated[list[Match], add_matches]
    played: Annotated[dict[str, int], operator.or_]


class TournamentState(Progress):
    """State of a whole tournament; `turn` is the number of rounds of the schedule that have begun."""

    turn: int


class MatchState(Progress):
    """State of one match."""

    number: int
    players: list[str]
    memory: list[Match]  # completed matches of either player
    # Both moves of each round so far, as executed and as chosen.
    rounds: list[Round]
    chosen: list[Round]
    moves: list[Move | None]  # both moves of the present round; None for a player without a usable move
    messages: list[tuple[int, str, str]]  # both messages before a round, with its number; empty if unusable
    points: dict[str, int]  # the points of all players before the match, if they are shown
    shared: dict[str, str]  # the latest plans of all players before the match, if teams share them


class PlanState(Plans):
    """State of one player's planning before a round."""

    number: int  # the match
    view: View  # the player's knowledge
    # The latest of each; empty if unusable.
    draft: str
    critique: str
    turn: int  # number of critiques so far


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
    def speakers(self) -> dict[str, Speaker]:
        """The players as speakers."""
        condition = self.condition
        return {
            player: Speaker(team if condition.has_teams else "players", player, condition.model_of(player))
            for player, team in condition.players.items()
        }

    def ended(
        self,
        number: int,
        players: Sequence[str],
        end: End,
        by: Sequence[str],
        rounds: Sequence[Round] = (),
        chosen: Sequence[Round] = (),
    ) -> Match:
        """A match that has ended."""
        (first, second), teams = players, self.condition.players
        both = teams[first], teams[second]
        return Match(number, (first, second), both, tuple(rounds), end, tuple(by), tuple(chosen))

    def left(self, player: str, played: dict[str, int]) -> int:
        """Number of rounds left to a player."""
        return self.condition.total_rounds - played.get(player, 0)

    def decided(
        self,
        step: str,
        player: str,
        stage: str,
        decision: Mapping[str, Any],
        *,
        failed: bool,
        match: int | None = None,
        round_: int = 0,
    ) -> None:
        """Record a player's decision, in a match or before the first one."""
        self.table.recorder.once(
            DecisionEvent(
                step=step,
                team=self.speakers[player].team,
                agent=player,
                stage=stage,
                round=round_,
                match="" if match is None else f"match {match}",
                decision=dict(decision),
                failed=failed,
            )
        )


def seen_by(rounds: Sequence[Round], seat: int) -> list[Round]:
    """The rounds of a match with the moves of the player at `seat` first."""
    return [(both[seat], both[1 - seat]) for both in rounds]
