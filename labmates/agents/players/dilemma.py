"""Scripted players of social dilemmas: they read game, mechanism and history out of the prompt."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np
from langchain_core.messages import BaseMessage

from labmates.agents.players.base import Family
from labmates.agents.transcript import text_of
from labmates.games.iterated.library import library_action
from labmates.games.iterated.match import Payoffs, Round
from labmates.games.normal_form import NormalForm, prisoners_payoffs
from labmates.mechanisms.base import Answer, Blank, Sheet, Stage, past_of
from labmates.mechanisms.mediation import DELEGATE
from labmates.mechanisms.norms import Deed, IsGood, Match, Past, grim, standing, tit_for_tat
from labmates.mechanisms.theorem import all_on, best_design, dilemma_of, does_its_part, follow

_STEP = re.compile(r"\A# Step: (choose|propose|vote|sign|settle)$", re.MULTILINE)
_HEAD = re.compile(r"^\| you \(player (\d+)\) \|(.*)\|$", re.MULTILINE)
_OTHER = re.compile(r"(?<!of )player (\d+)")
_KEY = re.compile(r'^- "([^"]+)": ', re.MULTILINE)
_NUMBER = re.compile(r'^- "([^"]+)": a whole number from (-?\d+) to (-?\d+)', re.MULTILINE)
_AGO = re.compile(r"^- (\d+) rounds? ago: (.+)$", re.MULTILINE)
_ROUND_DEED = re.compile(r"(you|player (\d+)): (\S+)")
_MATCH_DEED = re.compile(r"agent (\d+)(?: \(you\))?(?: as player \d+)?: (\S+), \S+ points")
_ME, _MET = re.compile(r"You are agent (\d+)\."), re.compile(r"player \d+ is agent (\d+)")
_PROPOSAL = re.compile(r"^- (P\d+) \([^)]*\): (?!none that can be used)(.+)$", re.MULTILINE)
_DELEGATED = re.compile(r"(\S+) if (\d+) delegate")
_PAID = re.compile(r"(-?\d+) for ([^\s,]+)")
_HOLDS = re.compile(r"^## The (?:mediator|contract) that (?:holds|has won the vote)\n(.+)$", re.MULTILINE)
_FAILED = re.compile(r"^## The (?:mediator|contract)\n(?:It does not hold, [^:]*: (.+)|Nobody has .+)$", re.MULTILINE)


@dataclass(frozen=True)
class Situation:
    """What a prompt of a social dilemma says.

    Attributes
    ----------
    view
        The game, this player in the first place.
    seat
        Where it sits in the game, from 0.
    facts
        As `labmates.mechanisms.base.Question` has them.
    """

    view: NormalForm
    stage: Stage
    seat: int
    sheet: Sheet
    facts: Mapping[str, Any]

    @property
    def keys(self) -> list[str]:
        """The names that the answer has to have."""
        return [blank.name for blank in self.sheet.blanks]


def read(messages: Sequence[BaseMessage]) -> Situation | None:
    """Return what the prompt of a social dilemma says; None if it is no such prompt."""
    if len(messages) < 2 or messages[0].type != "system":
        return None
    # What comes after is about replies that could not be used.
    rules, order = text_of(messages[0]), text_of(messages[1])
    step = _STEP.search(order)
    found = _game(rules)
    if step is None or found is None:
        return None
    view, seat = found
    told, _, asked = order.partition("## What you decide")
    keys = _KEY.findall(asked)
    numbers = {key: range(int(low), int(high) + 1) for key, low, high in _NUMBER.findall(asked)}
    blanks = tuple(Blank(key, numbers.get(key)) for key in keys)
    # Who settles nothing gives or takes nothing, or the least that can be.
    nothing = {key: 0 if 0 in numbers[key] else numbers[key][0] for key in numbers}
    sheet = Sheet(blanks, {key: nothing.get(key, False) for key in keys} if step[1] == "settle" else {})
    return Situation(view, cast(Stage, step[1]), seat, sheet, _facts(told, view, seat))


@lru_cache(maxsize=256)
def _game(rules: str) -> tuple[NormalForm, int] | None:
    """Return the game in a table of payoffs, as the player sees it, and the player's seat."""
    head = _HEAD.search(rules)
    if head is None:
        return None
    players = 1 + len(_OTHER.findall(head[2]))
    rows = []
    for line in rules[head.end() :].strip().splitlines()[1:]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 2 * players:
            break
        rows.append(cells)
    labels = tuple(tuple(dict.fromkeys(row[place] for row in rows)) for place in range(players))
    payoffs = np.empty((*map(len, labels), players), dtype=object)
    for row in rows:
        profile = tuple(own.index(label) for own, label in zip(labels, row[:players], strict=True))
        payoffs[profile] = [Fraction(cell) for cell in row[players:]]
    return NormalForm(labels, payoffs), int(head[1]) - 1


def _facts(told: str, view: NormalForm, seat: int) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if "## Earlier rounds" in told:
        facts["past"] = _rounds(told, view, seat)
    if (me := _ME.search(told)) is not None:
        facts["past"] = _matches(told, int(me[1]))
    if proposals := dict(_PROPOSAL.findall(told)):
        facts["proposals"] = {name: _design(text) for name, text in proposals.items()}
    if (holds := _HOLDS.search(told)) is not None:
        facts |= {"design": _design(holds[1]), "in_force": True}
    elif (failed := _FAILED.search(told)) is not None:
        facts |= {"design": _design(failed[1] or ""), "in_force": False}
    return facts


def _rounds(told: str, view: NormalForm, seat: int) -> Past:
    rounds: list[tuple[Match, ...]] = []
    for _, line in _AGO.findall(told):
        deeds = (
            Deed(place, place, action)
            for who, number, action in _ROUND_DEED.findall(line.replace(";", " ;"))
            for place in [seat if who == "you" else int(number) - 1]
        )
        rounds.append((tuple(deeds),))
    return Past(seat, tuple(other for other in range(view.players) if other != seat), tuple(rounds))


def _matches(told: str, me: int) -> Past:
    rounds: dict[int, list[Match]] = {}
    for ago, line in _AGO.findall(told):
        found = _MATCH_DEED.findall(line)
        rounds.setdefault(int(ago), []).append(
            tuple(Deed(int(agent), place, action) for place, (agent, action) in enumerate(found))
        )
    newest = tuple(tuple(rounds.get(ago, ())) for ago in range(1, max(rounds, default=0) + 1))
    return Past(me, tuple(map(int, _MET.findall(told))), newest)


def _design(text: str) -> dict[str, Any] | None:
    if delegated := _DELEGATED.findall(text):
        return {number: action for action, number in delegated}
    return {label: int(amount) for amount, label in _PAID.findall(text)} or None


def _plain(cooperates: bool) -> Callable[[Situation, random.Random], str]:
    """Return the strategy that always takes its part of the cooperative play, or of the bad equilibrium."""

    def strategy(said: Situation, rng: random.Random) -> str:
        if said.stage == "choose":
            return json.dumps(_choice(said, cooperates))
        if said.stage == "propose":
            return json.dumps(best_design(said.view, said.sheet) if cooperates else _worst_design(said))
        if said.stage == "settle":
            return _equilibrium(said, rng)
        return json.dumps(dict.fromkeys(said.keys, cooperates))

    return strategy


def _random(said: Situation, rng: random.Random) -> str:
    if said.stage == "choose":
        cuts = sorted(rng.randint(0, 100) for _ in said.keys[1:])
        shares = [end - start for start, end in zip([0, *cuts], [*cuts, 100], strict=True)]
        return json.dumps(dict(zip(said.keys, shares, strict=True)))
    if said.stage == "propose":
        if _is_contract(said):
            most = int(max(said.view.payoffs.max(), 1))
            return json.dumps({key: rng.randint(-most, most) for key in said.keys})
        return json.dumps({key: rng.choice(said.view.labels[0]) for key in said.keys})
    return json.dumps(
        {one.name: rng.choice(one.allowed) if one.allowed else rng.random() < 0.5 for one in said.sheet.blanks}
    )


def _equilibrium(said: Situation, rng: random.Random) -> str:
    del rng
    return json.dumps(follow(said.view, said.stage, said.facts, said.seat, said.sheet))


def _norm(norm: Callable[[Past, IsGood], bool]) -> Callable[[Situation, random.Random], str]:
    """Return the strategy of a norm for games that are played again; where there is nothing to go by, it is nice."""

    def strategy(said: Situation, rng: random.Random) -> str:
        past = past_of(said.facts)
        if said.stage != "choose" or "design" in said.facts:
            return _equilibrium(said, rng)
        cooperates = past is None or norm(past, does_its_part(said.view, said.seat))
        return json.dumps(_choice(said, cooperates))

    return strategy


def _of_library(name: str) -> Callable[[Situation, random.Random], str]:
    """Return a strategy of the library axelrod, for choices in a prisoner's dilemma; it knows of a match what is told.

    Where co-players change, what the present one did last stands in the place of what it did to this player.
    """

    def strategy(said: Situation, rng: random.Random) -> str:
        found = prisoners_payoffs(said.view)
        if said.stage != "choose" or DELEGATE in said.keys or found is None:
            return "I play prisoner's dilemmas, and nothing around them."
        past = past_of(said.facts)
        rounds = [] if past is None else _pairs(past, does_its_part(said.view, said.seat))
        action = library_action(name, rounds, payoffs=Payoffs(*found), seed=rng.getrandbits(31))
        return json.dumps(_choice(said, action == "C"))

    return strategy


def _pairs(past: Past, is_good: IsGood) -> list[Round]:
    """Return what this player and its co-player did in each round that is known, the oldest first."""
    rounds: list[Round] = []
    for matches in reversed(past.rounds):
        deeds = {deed.agent: deed for match in matches for deed in match}
        own, other = deeds.get(past.me), deeds.get(past.others[0])
        if own is not None and other is not None:
            rounds.append(("C" if is_good(own) else "D", "C" if is_good(other) else "D"))
    return rounds


def _choice(said: Situation, cooperates: bool) -> Answer:
    dilemma = dilemma_of(said.view)
    profile = dilemma.cooperate if cooperates else dilemma.defect
    return all_on(said.keys, said.view.labels[0][profile[0]])


def _worst_design(said: Situation) -> Answer:
    """Return a design that changes nothing: payments of nothing, or a mediator that defects for everybody."""
    if _is_contract(said):
        return dict.fromkeys(said.keys, 0)
    return dict.fromkeys(said.keys, said.view.labels[0][dilemma_of(said.view).defect[0]])


def _is_contract(said: Situation) -> bool:
    return set(said.keys) == set(said.view.labels[0]) | ({DELEGATE} & set(said.keys))


FAMILY = Family(
    "dilemma",
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
    _of_library,
)
