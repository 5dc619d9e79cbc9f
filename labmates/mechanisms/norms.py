"""Norms for repeated games: when a player cooperates, given its knowledge of earlier rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

Name = str | int
"""A player's name or number, as shown to another player."""


@dataclass(frozen=True)
class Deed:
    """A player's action in a match."""

    agent: Name
    seat: int  # from 0
    action: str  # its label


Match = tuple[Deed, ...]


@dataclass(frozen=True)
class Past:
    """A player's knowledge of earlier rounds."""

    me: Name  # the player
    others: tuple[Name, ...]  # the present co-players
    rounds: tuple[tuple[Match, ...], ...]  # the known matches by round, latest first


IsGood = Callable[[Deed], bool]
"""Whether an action is the player's part of the cooperative profile."""


def grim(past: Past, is_good: IsGood) -> bool:
    """Cooperate while no defection is known."""
    return all(is_good(deed) for matches in past.rounds for match in matches for deed in match)


def tit_for_tat(past: Past, is_good: IsGood) -> bool:
    """Cooperate if the last known action of each co-player is cooperation."""
    return all(is_good(deed) for agent in past.others if (deed := _last(past, agent)) is not None)


def standing(past: Past, is_good: IsGood) -> bool:
    """Cooperate if all co-players are in good standing.

    All players begin in good standing and lose it by not cooperating with co-players in good standing (Sugden 1986;
    CoopEval, appendix D). Rounds before the known ones are ignored.
    """
    bad: set[Name] = set()
    for matches in reversed(past.rounds):
        fallen: set[Name] = set()
        for match in matches:
            for deed in match:
                others_good = all(other.agent not in bad for other in match if other.agent != deed.agent)
                if others_good and not is_good(deed):
                    fallen.add(deed.agent)
        bad |= fallen
    return not bad & set(past.others)


def _last(past: Past, agent: Name) -> Deed | None:
    for matches in past.rounds:
        for deed in chain.from_iterable(matches):
            if deed.agent == agent:
                return deed
    return None
