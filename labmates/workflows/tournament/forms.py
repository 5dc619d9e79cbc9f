"""What players of a tournament answer: moves, and answers to comprehension questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import create_model

from labmates.agents.decisions import Form
from labmates.games.iterated.questions import UNDECIDABLE, Question

_KINDS: dict[str, Any] = {
    "number": int,
    "action": Literal["action_a", "action_b"],
    "actions": list[Literal["action_a", "action_b", "leave"]],
    "yes_no": Literal["yes", "no"],
    "yes_no_open": Literal["yes", "no", UNDECIDABLE],
}


class FirstMove(Form):
    """A move in the first round of a match."""

    move: Literal["action_a", "action_b"]
    reasoning: str = ""


class LaterMove(Form):
    """A move in a later round, when a player may leave."""

    move: Literal["action_a", "action_b", "leave"]
    reasoning: str = ""


def answers_form(questions: Sequence[Question]) -> type[Form]:
    """Return the form of answers to these questions."""
    fields: dict[str, Any] = {question.id: (_KINDS[question.kind], ...) for question in questions}
    return create_model("Answers", __base__=Form, **fields)
