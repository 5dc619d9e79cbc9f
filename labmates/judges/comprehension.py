"""Comprehension of a game: a player's answers beside the true ones, by code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labmates.games.iterated.questions import Question


def marked(questions: Sequence[Question], answers: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return, for each question, the answer, the truth, and whether they agree.

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


def share_right(rows: Sequence[Mapping[str, Mapping[str, Any]]], question: str | None = None) -> float | None:
    """Return the share of right ones among answers that could be read; None if there were none.

    Parameters
    ----------
    question
        Of this question alone; by default of all.
    """
    found = [
        bool(one["right"])
        for row in rows
        for name, one in row.items()
        if question in (None, name) and one["right"] is not None
    ]
    return sum(found) / len(found) if found else None
