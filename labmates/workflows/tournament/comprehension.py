"""Comprehension of a game: a player's answers beside the true ones, by code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labmates.games.iterated.questions import Question


def marked(questions: Sequence[Question], answers: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """The answer, the truth and whether they agree, for each question.

    Parameters
    ----------
    answers
        By question; None if there were none that could be read, which is neither right nor wrong.
    """
    rows: dict[str, dict[str, Any]] = {}
    for question in questions:
        answer = None if answers is None else answers[question.id]
        given = sorted(set(answer)) if isinstance(answer, list) else answer
        right = None if answers is None else given == question.truth
        rows[question.id] = {"answer": answer, "truth": question.truth, "right": right}
    return rows
