"""Norms for games that are played again and again: what a player does, by what it knows of earlier rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

Name = str | int
"""Who somebody is, as the player is told."""


@dataclass(frozen=True)
class Deed:
    """A player's behaviour in a match.

    Attributes
    ----------
    agent, seat
        Who, and where it sat, from 0.
    action
        Its label.
    """

    agent: Name
    seat: int
    action: str


Match = tuple[Deed, ...]


@dataclass(frozen=True)
class Past:
    """A player's knowledge of earlier rounds.

    Attributes
    ----------
    me
        The player.
    others
        Those with whom it plays now.
    rounds
        The matches that it knows of, by round, the newest first.
    """

    me: Name
    others: tuple[Name, ...]
    rounds: tuple[tuple[Match, ...], ...]


IsGood = Callable[[Deed], bool]
"""Whether somebody did its part of the cooperative play."""


def grim(past: Past, is_good: IsGood) -> bool:
    """Cooperate as long as nothing is known but cooperation."""
    return all(is_good(deed) for matches in past.rounds for match in matches for deed in match)


def tit_for_tat(past: Past, is_good: IsGood) -> bool:
    """Cooperate if the last that is known of each co-player is cooperation."""
    return all(is_good(deed) for agent in past.others if (deed := _last(past, agent)) is not None)


def standing(past: Past, is_good: IsGood) -> bool:
    """Cooperate if all are in good standing, the player itself left out.

    Everybody begins in good standing, and loses it by not cooperating with co-players who all are (Sugden 1986;
    CoopEval, appendix D). What happened before the rounds that are known does not count.
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
