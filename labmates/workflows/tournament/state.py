"""The states of a tournament's graphs. They are small and plain, since each step of a graph writes them down.

What a player remembers is the matches that it has finished. Matches that go on at the same time share no player, so
that no memory depends on which of them ends first.
"""

from __future__ import annotations

import operator
from typing import Annotated

from typing_extensions import TypedDict

from labmates.games.iterated.match import Action, End, Match, Move


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
