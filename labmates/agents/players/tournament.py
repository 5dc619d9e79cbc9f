"""Scripted players of tournaments of the iterated prisoner's dilemma: they read the match out of the prompt."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from langchain_core.messages import BaseMessage

from labmates.agents.players.base import Family
from labmates.agents.players.base import Strategy as Reply
from labmates.agents.transcript import text_of
from labmates.games.iterated.library import library_action
from labmates.games.iterated.match import LABELS, Action, Payoffs, Round
from labmates.games.iterated.questions import UNDECIDABLE, forgives, plays_tit_for_tat
from labmates.games.iterated.strategies import STRATEGIES, Strategy

_TOURNAMENT = "in a tournament of matches between two players"
_RULES = {
    "reward": r"both choose action_a, each gets (-?\d+) points",
    "punishment": r"both choose action_b, each gets (-?\d+) points",
    "sucker": r"the one with action_a gets (-?\d+) points",
    "temptation": r"the one with action_b gets (-?\d+) points",
}
_LENGTH = re.compile(r"A match has up to (\d+) rounds")
_STEP = re.compile(r"^# Step: (move|plan|critique|improved plan|questions)\b", re.MULTILINE)
_ROUND = re.compile(r"^Round \d+: you (action_[ab]), opponent (action_[ab]);", re.MULTILINE)
_QUESTION = re.compile(r'^- "(\w+)": (.+)$', re.MULTILINE)
_ACTIONS: dict[str, Action] = {LABELS["C"]: "C", LABELS["D"]: "D"}
_PLAN = "Begin every match and go on in it by one fixed rule, whoever the opponent is, and play every match to its end."
_CRITIQUE = "The plan is simple and clear. It takes no notice of the opponents; nothing else has to change."


@dataclass(frozen=True)
class Situation:
    """What a prompt says.

    Attributes
    ----------
    step
        ``move``, ``plan``, ``critique``, ``improved plan`` or ``questions``.
    length
        Most rounds of a match.
    rounds
        The match, this player's actions first.
    asked
        Questions by key.
    """

    step: str
    payoffs: Payoffs
    length: int
    rounds: tuple[Round, ...]
    asked: dict[str, str]


def read(messages: Sequence[BaseMessage]) -> Situation | None:
    """Return what the prompt of a tournament says; None if it is no such prompt."""
    if len(messages) < 2 or messages[0].type != "system":
        return None
    # What comes after is about replies that could not be used.
    system, order = text_of(messages[0]), text_of(messages[1])
    rules, step = _rules(system), _STEP.search(order)
    if rules is None or step is None:
        return None
    rounds = tuple((_ACTIONS[own], _ACTIONS[other]) for own, other in _ROUND.findall(order))
    asked = dict(_QUESTION.findall(order)) if step[1] == "questions" else {}
    return Situation(step[1], *rules, rounds, asked)


@lru_cache(maxsize=256)
def _rules(system: str) -> tuple[Payoffs, int] | None:
    if _TOURNAMENT not in system:
        return None
    told = {name: re.search(rule, system) for name, rule in _RULES.items()}
    length = _LENGTH.search(system)
    if length is None or None in told.values():
        return None
    return Payoffs(**{name: int(found[1]) for name, found in told.items() if found}), int(length[1])


def _reply(choose: Callable[[Situation, random.Random], Action], said: Situation, rng: random.Random) -> str:
    if said.step == "move":
        return json.dumps({"move": LABELS[choose(said, rng)], "reasoning": "My rule says so."})
    if said.step == "questions":
        return json.dumps(answers(said))
    return _CRITIQUE if said.step == "critique" else _PLAN


def _own(strategy: Strategy) -> Reply:
    def choose(said: Situation, rng: random.Random) -> Action:
        return strategy.action(said.rounds, said.payoffs, rng.random())

    return partial(_reply, choose)


def _of_library(name: str) -> Reply:
    def choose(said: Situation, rng: random.Random) -> Action:
        seed = rng.getrandbits(31)
        return library_action(name, said.rounds, payoffs=said.payoffs, length=said.length, seed=seed)

    return partial(_reply, choose)


def answers(said: Situation) -> dict[str, Any]:
    """Return the right answers to the questions of a prompt, read out of it."""
    payoffs, rounds = said.payoffs, said.rounds
    theirs = tuple((other, own) for own, other in rounds)
    forgiving = forgives(theirs)
    known: dict[str, Callable[[str], Any]] = {
        "lowest": lambda _: payoffs.sucker,
        "highest": lambda _: payoffs.temptation,
        "actions": lambda _: sorted(_ACTIONS),
        "payoff": lambda text: payoffs.of(*_actions_in(text)),
        "round": lambda _: len(rounds),
        "action": lambda text: LABELS[_side(text, rounds)[_number_in(text)][0]],
        "points": lambda text: payoffs.of(*_side(text, rounds)[_number_in(text)]),
        "count": lambda text: sum(own == _actions_in(text)[0] for own, _ in _side(text, rounds)),
        "total": lambda text: payoffs.total(_side(text, rounds)),
        "tit_for_tat": lambda _: "yes" if plays_tit_for_tat(theirs, payoffs) else "no",
        "forgiving": lambda _: UNDECIDABLE if forgiving is None else "yes" if forgiving else "no",
    }
    return {key: known[key](text) for key, text in said.asked.items()}


def _actions_in(text: str) -> list[Action]:
    return [_ACTIONS[label] for label in re.findall(r"action_[ab]", text)]


def _number_in(text: str) -> int:
    found = re.search(r"round (\d+)", text)
    assert found is not None
    return int(found[1]) - 1


def _side(text: str, rounds: Sequence[Round]) -> list[Round]:
    """Return the rounds as whoever is asked for sees them."""
    return [(other, own) if "your opponent" in text else (own, other) for own, other in rounds]


FAMILY = Family("tournament", read, {name: _own(strategy) for name, strategy in STRATEGIES.items()}, _of_library)
