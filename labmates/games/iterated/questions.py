"""Comprehension questions on a completed match, each with its computed answer.

Questions on the rules, the course and the state of a match follow Fontana, Pierri and Aiello (*Nicer than humans*,
2024); those on the opponent follow the super-additive paper, table 2.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

from labmates.games.iterated.match import LABELS, Action, Payoffs, Round
from labmates.games.iterated.strategies import STRATEGIES

FOLLOWS = 0.8
"""Minimum share of rounds with the moves of tit-for-tat for an opponent that plays it."""
FORGIVES = 0.5
"""Minimum share of cooperation after received defections for a forgiving opponent."""
UNDECIDABLE = "not decidable"
OPPONENT = "your opponent"
"""Name of the opponent in questions and their facts."""

Kind = Literal["number", "action", "actions", "yes_no", "yes_no_open"]
Answer = int | str | list[str]


@dataclass(frozen=True)
class Question:
    """A question.

    Attributes
    ----------
    id
        Its key in the answer's JSON.
    group
        Its subject.
    kind
        Type of the answer.
    truth
        The right answer; actions by their labels, several in alphabetical order.
    facts
        Values named in the text, in its order: ``actions`` or an ``action``, ``who``, ``round``.
    """

    id: str
    group: Literal["rules", "time", "state", "opponent"]
    text: str
    kind: Kind
    truth: Answer
    facts: Mapping[str, Any] = field(default_factory=dict)


QUESTIONS = (
    "lowest",
    "highest",
    "actions",
    "payoff",
    "round",
    "action",
    "points",
    "count",
    "total",
    "tit_for_tat",
    "forgiving",
)
"""The keys of all questions, in order."""


def questions(rounds: Sequence[Round], payoffs: Payoffs, *, has_noise: bool = False, seed: int) -> list[Question]:
    """The questions to one player after a match of at least one round.

    Parameters
    ----------
    rounds
        The match as executed, with the player's moves first.
    has_noise
        Whether executed moves may differ from chosen ones; questions are then on executed ones in words, too.
    seed
        Determines the actions, rounds and players in the questions.
    """
    rng = random.Random(seed)
    asked = [*_on_rules(payoffs, rng), *_on_time(rounds, payoffs, rng), *_on_state(rounds, payoffs, rng), *_on(rounds)]
    return [replace(question, text=_executed(question)) for question in asked] if has_noise else asked


def _executed(question: Question) -> str:
    """A question's text, on the actions that were carried out."""
    who, action = question.facts.get("who"), question.facts.get("action")
    match question.id:
        case "action":
            return f"Which action was carried out for {who} in round {question.facts['round']}?"
        case "count":
            return f"How often was {action} carried out for {who} in this match?"
        case "tit_for_tat" | "forgiving":
            return f"{question.text} Take the actions that were carried out."
        case _:
            return question.text


def plays_tit_for_tat(rounds: Sequence[Round], payoffs: Payoffs) -> bool:
    """Whether the first player of these rounds followed tit-for-tat in most of them."""
    rule = STRATEGIES["tit-for-tat"]
    same = sum(rule.action(rounds[:number], payoffs, 0.5) == own for number, (own, _) in enumerate(rounds))
    return same >= FOLLOWS * len(rounds)


def forgives(rounds: Sequence[Round]) -> bool | None:
    """Whether the first player of these rounds cooperated after defections; None if unknown.

    A defection in the last round has no answer and is ignored.
    """
    answers = [own == "C" for (_, other), (own, _) in pairwise(rounds) if other == "D"]
    return sum(answers) >= FORGIVES * len(answers) if answers else None


def _on_rules(payoffs: Payoffs, rng: random.Random) -> list[Question]:
    actions = sorted(LABELS[action] for action in ("C", "D"))
    own, other = (rng.choice(_ACTIONS) for _ in range(2))
    named = {"actions": [LABELS[own], LABELS[other]]}
    pair = f"How many points does a player get for a round in which it chooses {LABELS[own]} and its opponent chooses"
    return [
        Question(
            "lowest",
            "rules",
            "By the rules, what is the lowest number of points that a player can get in a round?",
            "number",
            payoffs.range[0],
        ),
        Question(
            "highest",
            "rules",
            "By the rules, what is the highest number of points that a player can get in a round?",
            "number",
            payoffs.range[1],
        ),
        Question("actions", "rules", "Which actions can be chosen in the first round?", "actions", actions),
        Question("payoff", "rules", f"{pair} {LABELS[other]}?", "number", payoffs.of(own, other), named),
    ]


def _on_time(rounds: Sequence[Round], payoffs: Payoffs, rng: random.Random) -> list[Question]:
    acted, scored = (rng.randrange(len(rounds)) for _ in range(2))
    who, whose = (rng.randrange(2) for _ in range(2))
    row = rounds[scored]
    points = payoffs.of(row[whose], row[1 - whose])
    return [
        Question("round", "time", "What is the number of the last round that was played?", "number", len(rounds)),
        Question(
            "action",
            "time",
            f"Which action did {_WHO[who]} choose in round {acted + 1}?",
            "action",
            LABELS[rounds[acted][who]],
            {"who": _WHO[who], "round": acted + 1},
        ),
        Question(
            "points",
            "time",
            f"How many points did {_WHO[whose]} get in round {scored + 1}?",
            "number",
            points,
            {"who": _WHO[whose], "round": scored + 1},
        ),
    ]


def _on_state(rounds: Sequence[Round], payoffs: Payoffs, rng: random.Random) -> list[Question]:
    who, whose = (rng.randrange(2) for _ in range(2))
    action = rng.choice(_ACTIONS)
    count = sum(row[who] == action for row in rounds)
    total = sum(payoffs.of(row[whose], row[1 - whose]) for row in rounds)
    counted = f"How often did {_WHO[who]} choose {LABELS[action]} in this match?"
    summed = f"How many points did {_WHO[whose]} get in this match altogether?"
    return [
        Question("count", "state", counted, "number", count, {"who": _WHO[who], "action": LABELS[action]}),
        Question("total", "state", summed, "number", total, {"who": _WHO[whose]}),
    ]


def _on(rounds: Sequence[Round]) -> list[Question]:
    """The questions on the opponent."""
    theirs = [(other, own) for own, other in rounds]
    forgiving = forgives(theirs)
    return [
        Question(
            "tit_for_tat",
            "opponent",
            "Did your opponent mostly play tit-for-tat, that is, cooperate (action_a) in the first round and then "
            f"repeat what you had done in the round before? Mostly means in at least {FOLLOWS:.0%} of the rounds.",
            "yes_no",
            _YES_NO[plays_tit_for_tat(theirs, Payoffs())],
        ),
        Question(
            "forgiving",
            "opponent",
            "Was your opponent forgiving, that is, after a round in which you had defected (action_b), did it choose "
            "action_a in the next round at least half of the time? If no round came after one in which you had "
            f'defected, answer "{UNDECIDABLE}".',
            "yes_no_open",
            UNDECIDABLE if forgiving is None else _YES_NO[forgiving],
        ),
    ]


_ACTIONS: tuple[Action, Action] = ("C", "D")
_WHO = ("you", OPPONENT)
_YES_NO = {True: "yes", False: "no"}


def marked(questions: Sequence[Question], answers: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """The answer, the truth and their agreement, for each question; None for `answers` means no readable answer."""
    rows: dict[str, dict[str, Any]] = {}
    for question in questions:
        answer = None if answers is None else answers[question.id]
        given = sorted(set(answer)) if isinstance(answer, list) else answer
        right = None if answers is None else given == question.truth
        rows[question.id] = {"answer": answer, "truth": question.truth, "right": right}
    return rows
