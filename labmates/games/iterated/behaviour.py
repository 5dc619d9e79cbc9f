"""Behaviour of players in the iterated prisoner's dilemma: traits and affinity to classical strategies.

The five traits follow Fontana, Pierri and Aiello (*Nicer than humans*, 2024), each as a share of occasions, or None
without an occasion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from labmates.games.iterated.match import Action, Payoffs, Round
from labmates.games.iterated.strategies import STRATEGIES, move_of

TRAITS = {
    "nice": "matches in which it never defected first",
    "forgiving": "rounds after a defection of the opponent in which it cooperated",
    "retaliatory": "rounds after an unprovoked defection of the opponent in which it defected",
    "troublemaking": "rounds without a defection of the opponent right before in which it defected",
    "emulative": "rounds after the first in which it repeated the opponent's last move",
}
"""The denominator of each trait's share."""
LIKE = ("cooperate", "defect", "tit-for-tat", "grim", "win-stay-lose-shift")
"""Strategies for comparison with a player's moves."""


@dataclass(frozen=True)
class Profile:
    """A player's behaviour."""

    traits: Mapping[str, float | None]  # shares by name, in [0, 1]; None without an occasion
    # Share of rounds in which the player moved as a strategy would have, by strategy; None without rounds.
    affinity: Mapping[str, float | None]


def profile(matches: Iterable[tuple[Sequence[Round], Sequence[Action]]], payoffs: Payoffs) -> Profile:
    """The behaviour of a player over matches.

    Parameters
    ----------
    matches
        Of each match the executed moves, the player's first in each round, and the moves that it chose, which count.
    """
    played = [(match, moves) for match, moves in matches if match]
    hits: Counter[str] = Counter()
    occasions: Counter[str] = Counter()
    for match, moves in played:
        for name, hit in _occasions(match, moves, payoffs):
            occasions[name] += 1
            hits[name] += hit
    shares = {name: hits[name] / occasions[name] if occasions[name] else None for name in (*TRAITS, *LIKE)}
    return Profile({name: shares[name] for name in TRAITS}, {name: shares[name] for name in LIKE})


def _occasions(match: Sequence[Round], moves: Sequence[Action], payoffs: Payoffs) -> Iterable[tuple[str, bool]]:
    """Each occasion for a trait or strategy, and whether the player's move showed it."""
    yield "nice", _is_nice(match, moves)
    yield "troublemaking", moves[0] == "D"
    for number, ((_, other), own) in enumerate(zip(match, moves[1:], strict=False)):
        if other == "D":
            yield "forgiving", own == "C"
            if number == 0 or match[number - 1][0] == "C":
                yield "retaliatory", own == "D"
        else:
            yield "troublemaking", own == "D"
        yield "emulative", own == other
    for number, own in enumerate(moves):
        for name in LIKE:
            yield name, move_of(STRATEGIES[name], match[:number], payoffs, 0.5) == own


def _is_nice(match: Sequence[Round], moves: Sequence[Action]) -> bool:
    first = next((number for number, own in enumerate(moves) if own == "D"), None)
    return first is None or any(other == "D" for _, other in match[:first])
