"""The judge protocol: a judge reads a report and gives scores, each with a reason, or says why it can't."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from pydantic import BaseModel

from labmates.tasks.base import Difficulty, Task

METRICS: Final = ("completeness", "quality", "accuracy")
"""The metrics of reports (cooperative-profiles paper, section 4.1.2)."""
SKILL: Final = "skill"
"""Accuracy corrected for guessing, the one metric that may be negative (see `labmates.tasks.base.skill`)."""


@dataclass(frozen=True)
class Trace:
    """Something that a team left behind on the way to the report.

    Attributes
    ----------
    team
        Whose it is.
    kind
        A version of an artifact, what code printed, or findings that were stated with the tool, as JSON.
    name
        Name of the artifact, or of the agent whose code or statement it was.
    code
        The code that printed an output.
    """

    team: str
    kind: Literal["artifact", "output", "findings"]
    name: str
    text: str
    code: str = ""


@dataclass(frozen=True)
class Deed:
    """Something that a seat said or did in the course of a run.

    Attributes
    ----------
    act
        What it is, as a predicate: ``says to ana``, ``runs code``.
    is_said
        Whether it is a message to others.
    """

    seat: str
    act: str
    text: str
    is_said: bool = False


@dataclass(frozen=True)
class Report:
    """A judge's view of a run.

    Attributes
    ----------
    text
        The final report, None if there is none.
    task, truth
        The task and what is true of the run's data set.
    artifacts
        The texts that earlier teams handed on, by name.
    trail
        What all teams left behind, oldest first, earlier versions of the report included.
    stages
        The teams in the order in which they hand on; the last one writes the report.
    columns, difficulty
        The columns of the run's data and their difficulty: what a task's prior may know.
    stated
        The findings that whoever wrote the report stated last with the tool; None if they never did.
    repaired
        What was mended in the form of `stated`: what and where.
    deeds
        What all seats said and did, oldest first.
    """

    text: str | None
    task: Task[Any, Any]
    truth: BaseModel
    artifacts: Mapping[str, str] = field(default_factory=dict)
    trail: tuple[Trace, ...] = ()
    stages: tuple[str, ...] = ()
    stated: Mapping[str, Any] | None = None
    repaired: tuple[Mapping[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    difficulty: Difficulty = "medium"
    deeds: tuple[Deed, ...] = ()

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing to judge."""
        return self.text is None or not self.text.strip()

    @property
    def task_facts(self) -> dict[str, Any]:
        """Name and version of the task, for the details of a score."""
        return {"name": self.task.name, "version": self.task.version}


@dataclass(frozen=True)
class Score:
    """One judge's score of one report.

    Attributes
    ----------
    judge, version
        Who says it. The version changes whenever the same report could get another score.
    metric
        For instance ``"accuracy"``.
    value
        In [0, 1], for skill at most 1 and finite; None if the judge could not score, never a default instead.
    reason
        Why, in one line.
    details
        What the value was made of, as JSON-able values.
    failed
        It is unscored because the judge could not work (its model could not be reached, its code raised), not because
        of the report: asked once more, it may score.
    """

    judge: str
    version: str
    metric: str
    value: float | None
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)
    failed: bool = False

    def __post_init__(self) -> None:
        least = -sys.float_info.max if self.metric == SKILL else 0
        if self.value is not None and not least <= self.value <= 1:
            raise ValueError(f"{self.metric}: a score must lie in [0, 1] (skill: at most 1), not {self.value}")


class Judge(Protocol):
    """Scores reports.

    A judge may have the attribute ``metrics``, the names of what it scores: these are recorded as unscored when it
    fails. The attribute ``prompts`` of a judge that asks models has the texts that these are told, by name.
    """

    @property
    def name(self) -> str:
        """Name in the registry."""
        ...

    @property
    def version(self) -> str:
        """Version, recorded with every score.

        What follows a plus sign names a help that is used only where the judge can't score without it.
        """
        ...

    async def score(self, report: Report) -> list[Score]:
        """One score for each metric that this judge knows. The report is data: nothing in it is an order."""
        ...
