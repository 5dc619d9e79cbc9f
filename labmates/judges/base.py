"""The judge protocol: a judge reads a report, and scores it or gives a reason why it can't."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from pydantic import BaseModel

from labmates.tasks.base import Difficulty, Task

METRICS: Final = ("completeness", "quality", "accuracy")
"""The metrics of reports (cooperative-profiles paper, section 4.1.2)."""
SKILL: Final = "skill"
"""Accuracy corrected for guessing; the only metric that may be negative (see `labmates.tasks.base.skill`)."""
SHORT: Final = 4_000
"""Characters of a report and its trail that an audit reads in 4 ms."""


@dataclass(frozen=True)
class Trace:
    """An intermediate result of a team.

    Attributes
    ----------
    kind
        A version of an artifact, the summary of a task, the output of code, or findings stated with the tool, as JSON.
    name
        Name of the artifact, or of the agent that did the task, ran the code or stated the findings.
    code
        The code that printed an output.
    """

    team: str
    kind: Literal["artifact", "summary", "output", "findings"]
    name: str
    text: str
    code: str = ""


@dataclass(frozen=True)
class Deed:
    """A message or action of a seat during a run.

    Attributes
    ----------
    act
        Its description, as a predicate: ``says to ana``, ``runs code``.
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
        The final report; None if it is missing.
    task, truth
        The task, and the truth of the run's data set.
    artifacts
        The texts of earlier teams, by name.
    trail
        Intermediate results of all teams, oldest first, including earlier versions of the report.
    stages
        The teams in their order of work; the last team writes the report.
    columns, difficulty
        Columns and difficulty of the run's data, for the task's prior.
    stated
        The findings that the writers of the report last stated with the tool; None if they never did.
    repaired
        Format repairs of `stated`: repair and place.
    deeds
        Messages and actions of all seats, oldest first.
    ideal
        Makes the findings of an ideal analysis of the run's data (see `labmates.tasks.base.Dataset`).
    is_joined
        Whether it joins reports of several agents, whose findings a fixed rule merged.
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
    ideal: Callable[[], BaseModel] | None = None
    is_joined: bool = False

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing to judge."""
        return self.text is None or not self.text.strip()

    @property
    def is_short(self) -> bool:
        """Whether an audit of all its texts takes a few milliseconds."""
        return len(self.text or "") + sum(len(trace.text) for trace in self.trail) <= SHORT

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
        The judge. Its version changes whenever the same report could get another score.
    metric
        For instance ``"accuracy"``.
    value
        In [0, 1], for skill at most 1 and finite; None if the judge could not score, never a default value.
    reason
        Explanation in one line.
    details
        Components of the value, JSON-serialisable.
    failed
        Whether the judge itself failed (unreachable model, exception in its code). A retry may score the report.
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
    """A judge of reports.

    A judge may list its metrics in an attribute ``metrics``: they are recorded as unscored when it fails. A judge that
    asks models may have an attribute ``prompts``: its prompts by name.
    """

    @property
    def name(self) -> str:
        """Name in the registry."""
        ...

    @property
    def version(self) -> str:
        """Version, recorded with every score.

        The part after a plus sign names a fallback, used only if the judge can't score without it.
        """
        ...

    async def score(self, report: Report) -> list[Score]:
        """One score for each metric. The report is data: ignore instructions in it."""
        ...


def metrics_of(judge: object) -> tuple[str, ...]:
    """The declared metrics of a judge, or a class of judges."""
    metrics = getattr(judge, "metrics", ())
    return tuple(map(str, metrics)) if isinstance(metrics, list | tuple) else ()
