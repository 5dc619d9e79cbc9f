"""Scripted players of social dilemmas under mechanisms."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from labmates.agents.players.base import Chooses, Family
from labmates.games.iterated.match import Payoffs, Round
from labmates.games.normal_form import NormalForm, prisoners_payoffs
from labmates.mechanisms.base import Blank, Sheet, Stage, past_of
from labmates.mechanisms.mediation import DELEGATE
from labmates.mechanisms.norms import Deed, IsGood, Match, Name, Past, grim, standing, tit_for_tat
from labmates.mechanisms.theorem import all_on, best_design, dilemma_of, does_its_part, follow
from labmates.mechanisms.wording import Answer
from labmates.models.scripted.base import Heard
from labmates.workflows.dilemmas.descriptions import read_rows
from labmates.workflows.play.wordings import renamed


@dataclass(frozen=True)
class Situation:
    """The situation of a player."""

    view: NormalForm  # the game with this player in the first place
    stage: Stage
    seat: int  # its seat in the game, from 0
    sheet: Sheet
    facts: Mapping[str, Any]  # as in `labmates.mechanisms.base.Question`
    delegate: str = DELEGATE  # displayed name of the action `DELEGATE`

    @property
    def keys(self) -> list[str]:
        """Keys of the answer."""
        return [blank.name for blank in self.sheet.blanks]

    def reply(self, answer: Answer) -> str:
        """The text of an answer, with displayed names."""
        return json.dumps(renamed(answer, {DELEGATE: self.delegate}))


def read(heard: Heard) -> Situation:
    """The situation in the orders of a social dilemma."""
    facts = heard.facts
    delegate = facts.pop("delegate", DELEGATE)
    facts = renamed(facts, {delegate: DELEGATE})
    if past := facts.get("past"):
        facts["past"] = _past(**past)
    blanks = tuple(map(_blank, facts["blanks"]))
    sheet = Sheet(blanks, {blank.name: _nothing(blank) for blank in blanks})
    game = _game(tuple(map(tuple, read_rows(facts))))
    return Situation(game, facts["stage"], facts["seat"] - 1, sheet, facts, delegate)


@lru_cache(maxsize=256)
def _game(table: tuple[tuple[str, ...], ...]) -> NormalForm:
    players = len(table[0]) // 2
    labels = tuple(tuple(dict.fromkeys(row[place] for row in table)) for place in range(players))
    payoffs = np.array([[Fraction(points) for points in row[players:]] for row in table], dtype=object)
    return NormalForm(labels, payoffs.reshape(*map(len, labels), players))


def _past(me: Name, others: Sequence[Name], rounds: Sequence[Sequence[Sequence[tuple[Name, str]]]]) -> Past:
    def deeds(match: Sequence[tuple[Name, str]]) -> Match:
        return tuple(Deed(agent, place, action) for place, (agent, action) in enumerate(match))

    return Past(me, tuple(others), tuple(tuple(map(deeds, matches)) for matches in reversed(rounds)))


def _blank(facts: Mapping[str, Any]) -> Blank:
    if "least" in facts:
        return Blank(facts["name"], range(facts["least"], facts["most"] + 1))
    return Blank(facts["name"], tuple(facts["choices"]) if "choices" in facts else None)


def _nothing(blank: Blank) -> int | str | bool:
    """The fallback of a player that gives nothing: zero, false, or the first allowed value."""
    if blank.allowed is None:
        return False
    return 0 if 0 in blank.allowed else blank.allowed[0]


def _plain(cooperates: bool) -> Callable[[Situation, random.Random], str]:
    """The strategy that always plays its part of the cooperative profile, or of the bad equilibrium."""

    def strategy(situation: Situation, rng: random.Random) -> str:
        if situation.stage == "choose":
            return situation.reply(_choice(situation, cooperates))
        if situation.stage == "propose":
            return situation.reply(
                best_design(situation.view, situation.sheet) if cooperates else _worst_design(situation)
            )
        if situation.stage in ("announce", "settle"):
            return _equilibrium(situation, rng)
        return situation.reply(
            {
                blank.name: blank.allowed[0 if cooperates else -1] if blank.allowed else cooperates
                for blank in situation.sheet.blanks
            }
        )

    return strategy


def _random(situation: Situation, rng: random.Random) -> str:
    if situation.stage == "choose":
        cuts = sorted(rng.randint(0, 100) for _ in situation.keys[1:])
        shares = [end - start for start, end in zip([0, *cuts], [*cuts, 100], strict=True)]
        return situation.reply(dict(zip(situation.keys, shares, strict=True)))
    if situation.stage == "propose":
        if _is_contract(situation):
            most = int(max(situation.view.payoffs.max(), 1))
            return situation.reply({key: rng.randint(-most, most) for key in situation.keys})
        return situation.reply({key: rng.choice(situation.view.labels[0]) for key in situation.keys})
    return situation.reply(
        {
            blank.name: rng.choice(blank.allowed) if blank.allowed else rng.random() < 0.5
            for blank in situation.sheet.blanks
        }
    )


def _equilibrium(situation: Situation, _rng: random.Random) -> str:
    return situation.reply(follow(situation.view, situation.stage, situation.facts, situation.seat, situation.sheet))


def _norm(norm: Callable[[Past, IsGood], bool]) -> Callable[[Situation, random.Random], str]:
    """The strategy of a norm for repeated games; without a past, it cooperates."""

    def strategy(situation: Situation, rng: random.Random) -> str:
        past = past_of(situation.facts)
        if situation.stage != "choose" or "design" in situation.facts:
            return _equilibrium(situation, rng)
        cooperates = past is None or norm(past, does_its_part(situation.view, situation.seat))
        return situation.reply(_choice(situation, cooperates))

    return strategy


def _of_rounds(chooses: Chooses) -> Callable[[Situation, random.Random], str]:
    """A strategy of the iterated prisoner's dilemma, with the rounds that its player is told.

    With changing co-players, the present co-player's last action replaces its action toward this player.
    """

    def strategy(situation: Situation, rng: random.Random) -> str:
        payoffs = prisoners_payoffs(situation.view)
        if situation.stage != "choose" or DELEGATE in situation.keys or payoffs is None:
            return "I play prisoner's dilemmas, and nothing around them."
        past = past_of(situation.facts)
        rounds = [] if past is None else _pairs(past, does_its_part(situation.view, situation.seat))
        action = chooses(rounds, Payoffs(*payoffs), math.inf, rng.getrandbits(31))
        return situation.reply(_choice(situation, action == "C"))

    return strategy


def _pairs(past: Past, is_good: IsGood) -> list[Round]:
    """The actions of this player and its co-player in each known round, oldest first."""
    rounds: list[Round] = []
    for matches in reversed(past.rounds):
        deeds = {deed.agent: deed for match in matches for deed in match}
        own, other = deeds.get(past.me), deeds.get(past.others[0])
        if own is not None and other is not None:
            rounds.append(("C" if is_good(own) else "D", "C" if is_good(other) else "D"))
    return rounds


def _choice(situation: Situation, cooperates: bool) -> Answer:
    dilemma = dilemma_of(situation.view)
    profile = dilemma.cooperate if cooperates else dilemma.defect
    return all_on(situation.keys, situation.view.labels[0][profile[0]])


def _worst_design(situation: Situation) -> Answer:
    """A design without effect: zero payments, or a mediator that defects for all."""
    if _is_contract(situation):
        return dict.fromkeys(situation.keys, 0)
    return dict.fromkeys(situation.keys, situation.view.labels[0][dilemma_of(situation.view).defect[0]])


def _is_contract(situation: Situation) -> bool:
    return set(situation.keys) == set(situation.view.labels[0]) | ({DELEGATE} & set(situation.keys))


FAMILY = Family(
    read,
    {
        "cooperate": _plain(cooperates=True),
        "defect": _plain(cooperates=False),
        "random": _random,
        "tit-for-tat": _norm(tit_for_tat),
        "grim": _norm(grim),
        "standing": _norm(standing),
        "equilibrium": _equilibrium,
    },
    _of_rounds,
)
