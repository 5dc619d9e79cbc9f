"""Scripted players of the behavioural games: they read rules and history out of the prompt.

The game is known by its figures and by what is decided on, so that games of other packages are played as well.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from langchain_core.messages import BaseMessage

from labmates.agents.players.base import Family
from labmates.agents.transcript import text_of
from labmates.errors import LabmatesError
from labmates.games.base import Decision, Game
from labmates.games.collective_risk import CollectiveRisk
from labmates.games.o_ring import ORing
from labmates.games.references import references
from labmates.games.registry import GAMES, make_game

_STEP = re.compile(r"^# Step: (decide|sanction|deliberation), round (\d+) of \d+", re.MULTILINE)
_FIGURE = re.compile(r"^- ([a-z][a-z ]*): (\S+)$", re.MULTILINE)
_PLAYER = re.compile(r"\b(?:player|name of) ([A-Z])(\d+)\b")
_KEY = re.compile(r'^- "(\w+)"', re.MULTILINE)
_MEMBER = re.compile(r"^- ([A-Z]\d+)( \(you\))?: (.+)$")
_NUMBER = re.compile(r"(\w+) (-?\d+)(?:,|$)")


@dataclass(frozen=True)
class Situation:
    """What a prompt of a behavioural game says.

    Attributes
    ----------
    stage
        ``decide``, ``sanction`` or ``deliberation``.
    round
        From 0.
    group, seat
        Where the player sits, from 0.
    keys
        The names that the answer has to have.
    last
        What the members of the group did in the newest round that is told, by name, this player left out.
    """

    game: Game
    stage: str
    round: int
    group: int
    seat: int
    keys: tuple[str, ...]
    last: Mapping[str, Decision]


def read(messages: Sequence[BaseMessage]) -> Situation | None:
    """Return what the prompt of a behavioural game says; None if it is no such prompt."""
    if len(messages) < 2 or messages[0].type != "system":
        return None
    # What comes after is about replies that could not be used.
    rules, order = text_of(messages[0]), text_of(messages[1])
    step, player = _STEP.search(order), _PLAYER.search(rules)
    game = _game(rules)
    if step is None or player is None or game is None:
        return None
    return Situation(
        game=game,
        stage=step[1],
        round=int(step[2]) - 1,
        group=ord(player[1]) - ord("A"),
        seat=int(player[2]) - 1,
        keys=tuple(_KEY.findall(order)),
        last=_last_round(order, game),
    )


@lru_cache(maxsize=64)
def _game_of(figures: tuple[tuple[str, str], ...]) -> Game | None:
    rules = dict(figures)
    for name in GAMES.names():
        with suppress(LabmatesError):  # of other packages, which need not be usable
            if set(GAMES.get(name).model_fields) == set(rules):
                return make_game(name, rules)
    return None


@lru_cache(maxsize=1024)
def _game(rules: str) -> Game | None:
    told = rules[max(rules.rfind("# Figures"), rules.rfind("Here are the figures")) :]
    return _game_of(tuple((name.replace(" ", "_"), value) for name, value in _FIGURE.findall(told)))


def _last_round(order: str, game: Game) -> dict[str, Decision]:
    """Return the decisions of the newest round that is told."""
    names = [quantity.name for quantity in game.quantities]
    found: dict[str, Decision] = {}
    for line in order.splitlines():
        if line.startswith("Round ") or line.startswith("## This round"):
            found = {}
        elif (member := _MEMBER.match(line)) and not member[2]:
            numbers = {name: int(value) for name, value in _NUMBER.findall(member[3])}
            if set(names) <= set(numbers):
                found[member[1]] = tuple(numbers[name] for name in names)
    return found


def _cooperate(said: Situation, rng: random.Random) -> str:
    del rng
    return answer(said, of_profile(said, references(said.game).optimum.profile))


def _defect(said: Situation, rng: random.Random) -> str:
    del rng
    return answer(said, of_profile(said, references(said.game).nash.profile))


def _random(said: Situation, rng: random.Random) -> str:
    if said.stage != "sanction":
        return answer(said, rng.choice(_all_decisions(said.game)))
    left = rng.randint(0, said.game.sanction_limit)
    spent = dict.fromkeys(said.keys, 0)
    for _ in range(left):
        spent[rng.choice(said.keys)] += 1
    return json.dumps(spent)


def _fair_share(said: Situation, rng: random.Random) -> str:
    del rng
    return answer(said, fair_share(said.game, said.round))


def _conditional(said: Situation, rng: random.Random) -> str:
    del rng
    if said.stage == "sanction":
        guilty = less_cooperative(said)
        return json.dumps({name: int(name in guilty) for name in said.keys})
    if not said.last:
        return answer(said, of_profile(said, references(said.game).optimum.profile))
    means = [Fraction(sum(one), len(said.last)) for one in zip(*said.last.values(), strict=True)]
    return answer(said, nearest(said.game, means))


def fair_share(game: Game, round_: int) -> Decision:
    """Return an equal share of what is needed in a round, counted from 0; the middle where nothing is needed."""
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


def of_profile(said: Situation, profile: tuple[tuple[Decision, ...], ...]) -> Decision:
    """Return what a player decides in this round who has its part in a profile of strategies."""
    return said.game.decision_in(profile[said.group][said.seat], said.round)


@lru_cache(maxsize=64)
def _all_decisions(game: Game) -> list[Decision]:
    return list(game.decisions())


def nearest(game: Game, wanted: Sequence[float | Fraction]) -> Decision:
    """Return the allowed decision that is nearest to what is wanted of each quantity."""
    return min(
        _all_decisions(game),
        key=lambda one: sum((value - want) ** 2 for value, want in zip(one, wanted, strict=True)),
    )


def less_cooperative(said: Situation) -> list[str]:
    """Return who was less cooperative than the mean of the others of the group; as many as may be sanctioned."""
    if not said.last:
        return []
    place = [quantity.name for quantity in said.game.quantities].index(said.game.primary)
    plays = references(said.game)
    worse = 1 if plays.nash.level > plays.optimum.level else -1
    levels = {name: worse * decision[place] for name, decision in said.last.items()}
    mean = sum(levels.values()) / len(levels)
    return [name for name in said.keys if levels.get(name, mean) > mean][: said.game.sanction_limit]


def answer(said: Situation, decision: Decision) -> str:
    """Return a decision as a reply."""
    if said.stage == "sanction":
        return json.dumps(dict.fromkeys(said.keys, 0))
    decided = {quantity.name: value for quantity, value in zip(said.game.quantities, decision, strict=True)}
    if said.stage == "deliberation":
        return f"I am going to play {json.dumps(decided)}."
    return json.dumps(decided)


FAMILY = Family(
    "behavioural",
    read,
    {
        "cooperate": _cooperate,
        "defect": _defect,
        "random": _random,
        "fair-share": _fair_share,
        "conditional": _conditional,
    },
)
