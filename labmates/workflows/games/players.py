"""Scripted players of the behavioural games.

The game is identified by the names of its rules, so that games of other packages work as well.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from labmates.agents.players.base import Family
from labmates.errors import LabmatesError
from labmates.games.base import Decision, Game
from labmates.games.collective_risk import CollectiveRisk
from labmates.games.o_ring import ORing
from labmates.games.references import references
from labmates.games.registry import GAMES, make_game
from labmates.models.scripted.base import Heard


@dataclass(frozen=True)
class Situation:
    """The situation of a player."""

    game: Game
    stage: str  # ``decide``, ``sanction`` or ``deliberation``
    round: int  # from 0
    # The player's group and seat, from 0.
    group: int
    seat: int
    last: Mapping[str, Decision]  # decisions of the group's other members in the latest known round, by name


def read(heard: Heard) -> Situation | None:
    """The situation in the orders of a behavioural game; None if no game has these rules."""
    facts = heard.facts
    game = _game_of(tuple(facts["figures"].items()))
    if game is None:
        return None
    player: str = facts["player"]
    return Situation(
        game=game,
        stage=facts["stage"],
        round=facts["round"] - 1,
        group=ord(player[0]) - ord("A"),
        seat=int(player[1:]) - 1,
        last={member: tuple(numbers.values()) for member, numbers in facts["last"].items()},
    )


@lru_cache(maxsize=64)
def _game_of(figures: tuple[tuple[str, str], ...]) -> Game | None:
    rules = {name.replace(" ", "_"): value for name, value in figures}
    for name in GAMES.names():
        with suppress(LabmatesError):  # games of other packages may be unusable
            if set(GAMES.get(name).model_fields) == set(rules):
                return make_game(name, rules)
    return None


def _cooperate(situation: Situation, _rng: random.Random) -> str:
    return answer(situation, of_profile(situation, references(situation.game).optimum.profile))


def _defect(situation: Situation, _rng: random.Random) -> str:
    return answer(situation, of_profile(situation, references(situation.game).nash.profile))


def _random(situation: Situation, rng: random.Random) -> str:
    if situation.stage != "sanction":
        return answer(situation, rng.choice(_all_decisions(situation.game)))
    left = rng.randint(0, situation.game.sanction_limit)
    others = list(situation.last)
    spent = dict.fromkeys(others, 0)
    for _ in range(left):
        spent[rng.choice(others)] += 1
    return json.dumps(spent)


def _fair_share(situation: Situation, _rng: random.Random) -> str:
    return answer(situation, fair_share(situation.game, situation.round))


def _conditional(situation: Situation, _rng: random.Random) -> str:
    if situation.stage == "sanction":
        guilty = less_cooperative(situation)
        return json.dumps({name: int(name in guilty) for name in situation.last})
    if not situation.last:
        return answer(situation, of_profile(situation, references(situation.game).optimum.profile))
    means = [Fraction(sum(values), len(situation.last)) for values in zip(*situation.last.values(), strict=True)]
    return answer(situation, nearest(situation.game, means))


def fair_share(game: Game, round_: int) -> Decision:
    """An equal share of the requirement of a round, counted from 0; the middle of each range without one."""
    if isinstance(game, CollectiveRisk):
        due, before = (-(-game.target * rounds // (game.players * game.rounds)) for rounds in (round_ + 1, round_))
        return (min(game.allowance, due - before),)
    if isinstance(game, ORing):
        profiles = (game.uniform(strategy) for strategy in game.strategies())
        enough = (int(profile[0, 0, 0]) for profile in profiles if game.succeeds(profile))
        return (next(enough, 0),)
    if game.total is not None:
        share, more = divmod(game.total, len(game.quantities))
        return tuple(share + (place < more) for place in range(len(game.quantities)))
    return tuple((quantity.low + quantity.high) // 2 for quantity in game.quantities)


def of_profile(situation: Situation, profile: tuple[tuple[Decision, ...], ...]) -> Decision:
    """A player's decision in this round under a profile of strategies."""
    return situation.game.decision_in(profile[situation.group][situation.seat], situation.round)


@lru_cache(maxsize=64)
def _all_decisions(game: Game) -> list[Decision]:
    return list(game.decisions())


def nearest(game: Game, wanted: Sequence[float | Fraction]) -> Decision:
    """The allowed decision nearest to the wanted value of each quantity."""
    return min(
        _all_decisions(game),
        key=lambda decision: sum((value - want) ** 2 for value, want in zip(decision, wanted, strict=True)),
    )


def less_cooperative(situation: Situation) -> list[str]:
    """The members less cooperative than the mean of the group's others, up to the sanction limit."""
    if not situation.last:
        return []
    place = [quantity.name for quantity in situation.game.quantities].index(situation.game.primary)
    plays = references(situation.game)
    worse = 1 if plays.nash.level > plays.optimum.level else -1
    levels = {name: worse * decision[place] for name, decision in situation.last.items()}
    mean = sum(levels.values()) / len(levels)
    return [name for name in situation.last if levels.get(name, mean) > mean][: situation.game.sanction_limit]


def answer(situation: Situation, decision: Decision) -> str:
    """A decision as a reply."""
    if situation.stage == "sanction":
        return json.dumps(dict.fromkeys(situation.last, 0))
    game = situation.game
    decided = {quantity.name: value for quantity, value in zip(game.quantities, decision, strict=True)}
    if situation.stage == "deliberation":
        return f"I am going to play {json.dumps(decided)}."
    return json.dumps({quantity.name: decided[quantity.name] for quantity in game.asked})


FAMILY = Family(
    read,
    {
        "cooperate": _cooperate,
        "defect": _defect,
        "random": _random,
        "fair-share": _fair_share,
        "conditional": _conditional,
    },
)
