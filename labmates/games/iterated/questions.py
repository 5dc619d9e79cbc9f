"""Comprehension questions on a completed match, each with its computed answer.

Questions on the rules, the course and the state of a match follow Fontana, Pierri and Aiello (*Nicer than humans*,
2024); those on the opponent follow the super-additive paper, table 2.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from labmates.games.iterated.match import LABELS, Action, Payoffs, Round, turned
from labmates.games.iterated.strategies import STRATEGIES, move_of

FOLLOWS = 0.8
"""Minimum share of rounds with the moves of tit-for-tat for an opponent that plays it."""
FORGIVES = 0.5
"""Minimum share of cooperation after received defections for a forgiving opponent."""
UNDECIDABLE = "not decidable"
OPPONENT = "your opponent"
"""Name of the opponent in questions and their facts."""

Kind = Literal["number", "action", "actions", "yes_no", "yes_no_open"]
Answer = int | str | list[str]
_TIT_FOR_TAT = (
    "Did your opponent mostly play tit-for-tat, that is, cooperate (action_a) in the first round and then repeat what "
    f"you had done in the round before? Mostly means in at least {FOLLOWS:.0%} of the rounds."
)
_FORGIVING = (
    "Was your opponent forgiving, that is, after a round in which you had defected (action_b), did it choose action_a "
    "in the next round at least half of the time? If no round came after one in which you had defected, answer "
    f'"{UNDECIDABLE}".'
)
QUESTIONS: Mapping[str, tuple[Kind, str]] = {
    "lowest": ("number", "By the rules, what is the lowest number of points that a player can get in a round?"),
    "highest": ("number", "By the rules, what is the highest number of points that a player can get in a round?"),
    "actions": ("actions", "Which actions can be chosen in the first round?"),
    "payoff": (
        "number",
        "How many points does a player get for a round in which it chooses {actions[0]} and its opponent chooses "
        "{actions[1]}?",
    ),
    "round": ("number", "What is the number of the last round that was played?"),
    "action": ("action", "Which action did {who} choose in round {round}?"),
    "points": ("number", "How many points did {who} get in round {round}?"),
    "count": ("number", "How often did {who} choose {action} in this match?"),
    "total": ("number", "How many points did {who} get in this match altogether?"),
    "tit_for_tat": ("yes_no", _TIT_FOR_TAT),
    "forgiving": ("yes_no_open", _FORGIVING),
}
"""The type of the answer and the text of each question, by its key, in order."""
_EXECUTED: Mapping[str, str] = {
    "action": "Which action was carried out for {who} in round {round}?",
    "count": "How often was {action} carried out for {who} in this match?",
    "tit_for_tat": f"{_TIT_FOR_TAT} Take the actions that were carried out.",
    "forgiving": f"{_FORGIVING} Take the actions that were carried out.",
}
"""Texts on the actions that were carried out."""
_ACTIONS: Mapping[str, Action] = {LABELS["C"]: "C", LABELS["D"]: "D"}


@dataclass(frozen=True)
class Question:
    """A question."""

    id: str  # its key in the answer's JSON
    text: str
    kind: Kind  # type of the answer
    truth: Answer  # the right answer; actions by their labels, several in alphabetical order
    facts: Mapping[str, Any]  # values named in the text, in its order: ``actions`` or an ``action``, ``who``, ``round``


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
    actions = [rng.choice(list(_ACTIONS)) for _ in range(2)]
    numbers = [rng.randrange(len(rounds)) + 1 for _ in range(2)]
    who = [("you", OPPONENT)[rng.randrange(2)] for _ in range(4)]
    named: Mapping[str, Mapping[str, Any]] = {
        "payoff": {"actions": actions},
        "action": {"who": who[0], "round": numbers[0]},
        "points": {"who": who[1], "round": numbers[1]},
        "count": {"who": who[2], "action": rng.choice(list(_ACTIONS))},
        "total": {"who": who[3]},
    }
    asked = []
    for key, (kind, text) in QUESTIONS.items():
        facts = named.get(key, {})
        words = (_EXECUTED.get(key, text) if has_noise else text).format_map(facts)
        asked.append(Question(key, words, kind, truth(key, rounds, payoffs, facts), facts))
    return asked


def truth(key: str, rounds: Sequence[Round], payoffs: Payoffs, facts: Mapping[str, Any]) -> Answer:
    """The right answer to a question on a match with the player's moves first; `facts` as in `Question`."""
    theirs = turned(rounds)
    side = rounds if facts.get("who") == "you" else theirs
    number: int = facts.get("round", 1)
    match key:
        case "lowest":
            return payoffs.range[0]
        case "highest":
            return payoffs.range[1]
        case "actions":
            return sorted(_ACTIONS)
        case "payoff":
            own, other = facts["actions"]
            return payoffs.of(_ACTIONS[own], _ACTIONS[other])
        case "round":
            return len(rounds)
        case "action":
            return LABELS[side[number - 1][0]]
        case "points":
            return payoffs.of(*side[number - 1])
        case "count":
            return [LABELS[own] for own, _ in side].count(facts["action"])
        case "total":
            return payoffs.total(side)
        case "tit_for_tat":
            return "yes" if plays_tit_for_tat(theirs, payoffs) else "no"
        case _:
            answer = forgives(theirs)
            return UNDECIDABLE if answer is None else "yes" if answer else "no"


def plays_tit_for_tat(rounds: Sequence[Round], payoffs: Payoffs) -> bool:
    """Whether the first player of these rounds followed tit-for-tat in most of them."""
    rule = STRATEGIES["tit-for-tat"]
    same = sum(move_of(rule, rounds[:number], payoffs, 0.5) == own for number, (own, _) in enumerate(rounds))
    return same >= FOLLOWS * len(rounds)


def forgives(rounds: Sequence[Round]) -> bool | None:
    """Whether the first player of these rounds cooperated after defections; None if unknown.

    A defection in the last round has no answer and is ignored.
    """
    answers = [own == "C" for (_, other), (own, _) in pairwise(rounds) if other == "D"]
    return sum(answers) >= FORGIVES * len(answers) if answers else None


def marked(questions: Sequence[Question], answers: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """The answer, the truth and their agreement, for each question; None for `answers` means no readable answer."""
    rows: dict[str, dict[str, Any]] = {}
    for question in questions:
        answer = None if answers is None else answers[question.id]
        given = sorted(set(answer)) if isinstance(answer, list) else answer
        right = None if answers is None else given == question.truth
        rows[question.id] = {"answer": answer, "truth": question.truth, "right": right}
    return rows
