"""The answers of players of a tournament: moves, and answers to comprehension questions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import create_model

from labmates.agents.decisions import Form
from labmates.games.iterated.match import LABELS
from labmates.games.iterated.questions import UNDECIDABLE, Question

_FIRST = "the first round of a match"


@lru_cache
def move_form(actions: tuple[str, ...], *, may_leave: bool) -> type[Form]:
    """The form of a move: an action, or from the second round on leaving the match; and why.

    Parameters
    ----------
    actions
        What players call both actions.
    """
    move: Any = Literal[(*actions, LABELS["leave"])] if may_leave else Literal[actions]
    name, when = ("LaterMove", "a later round, when a player may leave") if may_leave else ("FirstMove", _FIRST)
    return create_model(name, __base__=Form, __doc__=f"A move in {when}.", move=(move, ...), reasoning=(str, ""))


@lru_cache
def wishes_form(others: tuple[str, ...]) -> type[Form]:
    """The form of wishes: the players that a player wants in its team, and why."""
    player: Any = Literal[others]
    return create_model("Wishes", __base__=Form, __doc__="Wishes.", wanted=(list[player], ...), reasoning=(str, ""))


def answers_form(questions: Sequence[Question], actions: tuple[str, ...]) -> type[Form]:
    """The form of answers to these questions.

    Parameters
    ----------
    actions
        What players call both actions.
    """
    action: Any = Literal[actions]
    move: Any = Literal[(*actions, LABELS["leave"])]
    kinds: dict[str, Any] = {
        "number": int,
        "action": action,
        "actions": list[move],
        "yes_no": Literal["yes", "no"],
        "yes_no_open": Literal["yes", "no", UNDECIDABLE],
    }
    fields: dict[str, Any] = {question.id: (kinds[question.kind], ...) for question in questions}
    return create_model("Answers", __base__=Form, **fields)
