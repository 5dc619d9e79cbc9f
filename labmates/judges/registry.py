"""Judges by name; other packages add theirs through the entry-point group ``labmates.judges``."""

from __future__ import annotations

from collections.abc import Callable

from labmates.judges.base import Judge
from labmates.registry import Registry
from labmates.tasks.reference import find_class, resolve_reference

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
    """The judge that a name, ``path/to/file.py:Class`` or ``module:Class`` means.

    Raises
    ------
    UsageError
        If there is no such name, file or class; importing or making the judge may raise anything else.
    """
    resolved = resolve_reference(reference, JUDGES)
    if ":" not in resolved:
        return get_judge(resolved)
    judge: Judge = find_class(resolved, JUDGES.what, lambda value: callable(getattr(value, "score", None)))()
    return judge
