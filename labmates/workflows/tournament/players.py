"""Scripted players of tournaments of the iterated prisoner's dilemma."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from labmates.agents.players.base import Chooses, Family
from labmates.agents.players.base import Strategy as Reply
from labmates.games.iterated.match import LABELS, Action, Payoffs, Round
from labmates.games.iterated.questions import truth
from labmates.games.iterated.strategies import STRATEGIES, Rule, move_of
from labmates.models.scripted.base import Heard
from labmates.workflows.play.wordings import renamed

_ACTIONS: dict[str, Action] = {LABELS["C"]: "C", LABELS["D"]: "D"}
_TEXTS = {
    "message": "I follow one rule, whatever is said.",
    "introduction": "I play by one fixed rule, whoever I am with.",
    "critique": "The plan is simple and clear. It takes no notice of the opponents; nothing else has to change.",
}
_PLAN = "Begin every match and go on in it by one fixed rule, whoever the opponent is, and play every match to its end."


@dataclass(frozen=True)
class Situation:
    """The situation of a player."""

    # ``move``, ``message``, ``plan``, ``critique``, ``improved plan``, ``questions``, ``introduction`` or ``wishes``.
    step: str
    payoffs: Payoffs
    length: float  # maximum rounds of a match; infinity if its end is unknown
    rounds: tuple[Round, ...]  # the match, with this player's moves first
    questions: Mapping[str, Mapping[str, Any]]  # their facts by key
    labels: tuple[str, str] = (LABELS["C"], LABELS["D"])  # displayed names of both actions
    # Candidates for its team, and the maximum number to choose.
    others: tuple[str, ...] = ()
    most: int = 0

    def reply(self, answer: Mapping[str, Any]) -> str:
        """The text of an answer, with displayed names."""
        return json.dumps(renamed(answer, dict(zip(_ACTIONS, self.labels, strict=True))))


def read(heard: Heard) -> Situation:
    """The situation in the orders of a tournament."""
    first, second = heard.facts["labels"]
    facts = renamed(heard.facts, {first: LABELS["C"], second: LABELS["D"]})
    return Situation(
        facts["step"],
        Payoffs(**facts["payoffs"]),
        facts["length"] or math.inf,
        tuple((_ACTIONS[own], _ACTIONS[other]) for own, other in facts["rounds"]),
        facts.get("questions", {}),
        (first, second),
        tuple(facts.get("others", ())),
        facts.get("most", 0),
    )


def _reply(choose: Callable[[Situation, random.Random], Action], situation: Situation, rng: random.Random) -> str:
    if situation.step == "move":
        return situation.reply({"move": LABELS[choose(situation, rng)], "reasoning": "My rule says so."})
    if situation.step == "questions":
        return situation.reply(answers(situation))
    if situation.step == "wishes":
        wanted = rng.sample(situation.others, min(situation.most, len(situation.others)))
        return json.dumps({"wanted": wanted, "reasoning": "One is as good as another."})
    return _TEXTS.get(situation.step, _PLAN)


def _of_rule(rule: Rule) -> Reply:
    def choose(situation: Situation, rng: random.Random) -> Action:
        return move_of(rule, situation.rounds, situation.payoffs, rng.random())

    return partial(_reply, choose)


def _of_rounds(chooses: Chooses) -> Reply:
    def choose(situation: Situation, rng: random.Random) -> Action:
        return chooses(situation.rounds, situation.payoffs, situation.length, rng.getrandbits(31))

    return partial(_reply, choose)


def answers(situation: Situation) -> dict[str, Any]:
    """The right answers to the questions, by key."""
    return {key: truth(key, situation.rounds, situation.payoffs, facts) for key, facts in situation.questions.items()}


FAMILY = Family(read, {name: _of_rule(rule) for name, rule in STRATEGIES.items()}, _of_rounds)
