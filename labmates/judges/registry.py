"""Judges by name; other packages add theirs through the entry-point group ``labmates.judges``."""

from __future__ import annotations

from collections.abc import Callable

from labmates.judges.base import Judge
from labmates.registry import Registry

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
