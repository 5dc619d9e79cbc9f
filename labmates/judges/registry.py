"""Judges by name; other packages add theirs through the entry-point group ``labmates.judges``."""

from __future__ import annotations

from collections.abc import Callable

from labmates.judges.base import Judge
from labmates.registry import Registry
from labmates.tasks.reference import find_class

JUDGES: Registry[Callable[[], Judge]] = Registry(
    "judge",
    "labmates.judges",
    {
        "heuristic": "labmates.judges.heuristic:HeuristicJudge",
        "verified": "labmates.judges.verified:VerifiedJudge",
        "handoff": "labmates.judges.handoff:HandoffJudge",
    },
)


def get_judge(name: str) -> Judge:
    """The judge called `name`.

    Raises
    ------
    UsageError
        If there is none, or a plug-in's can't be made.
    """
    with JUDGES.guarded(name, "can't be made"):
        return JUDGES.get(name)()


def load_judge(reference: str) -> Judge:
    """The judge that a reference means, as `labmates.tasks.reference.resolve_reference` returns it.

    Raises
    ------
    UsageError
        If the class is missing; importing or making the judge may raise anything else.
    """
    if ":" not in reference:
        return get_judge(reference)
    judge: Judge = find_class(reference, JUDGES.what, lambda value: callable(getattr(value, "score", None)))()
    return judge
