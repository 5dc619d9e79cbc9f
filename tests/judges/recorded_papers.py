"""Runs with outputs, papers and findings, checked by hand: seventeen real ones, a trick paper, and some of our own.

And one run of the scripted team for each task, by whose own rules every finding was computed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel

from labmates.judges.base import Report, Trace
from labmates.tasks.base import Dataset, Difficulty, Task
from labmates.tasks.findings import check_findings
from labmates.tasks.registry import get_task
from labmates.tasks.table import TableTask

DATA: Final = Path(__file__).with_name("data")
REAL: Final = (
    "ecology_pipeline",
    "biomarker_solo",
    "own_csv_independent",
    "ecology_alone",
    "anomaly_alone",
    "biomarker_alone",
    "geospatial_alone",
    "ecology_team",
    "anomaly_hard",
    "biomarker_hard",
    "geospatial_medium",
    "ecology_hard",
    "anomaly_medium",
    "biomarker_medium",
    "geospatial_easy",
    "ecology_medium",
    "geospatial_hard",
)
TRICK: Final = "own_csv_trick"
LACKING: Final = {
    # The effect of the fifth subtype was written down between two printed ones.
    "biomarker_solo": {"subtypes: CC627, LX341, LX886, MS663: treatment_effect 1.8"},
}
"""Claims of the real runs that no output computes, found by reading."""


class Mulch(TableTask):
    """The task of the runs with a table of one's own."""

    name = "mulch"
    folder = DATA / "mulch"


@cache
def made(name: str, seed: int = 0, difficulty: Difficulty = "easy") -> tuple[Task[Any, Any], Dataset[Any]]:
    """Return a task and a data set of it."""
    task = Mulch() if name == Mulch.name else get_task(name)
    return task, task.generate(seed, difficulty)


@dataclass(frozen=True)
class Paper:
    """A run's report and findings; `lacking` are claims that no output computes, all of a finding or one each."""

    name: str
    report: Report
    findings: BaseModel
    lacking: frozenset[str]
    is_honest: bool
    most: float

    def is_lacking(self, finding: str, text: str) -> bool:
        """Whether a check by hand found no output that computes a claim."""
        return bool({finding, f"{finding}: {text}"} & self.lacking)


def _paper(name: str, run: dict[str, Any], lacking: set[str]) -> Paper:
    task, data = made(run["task"], run.get("seed", 0), run.get("difficulty", "easy"))
    read = check_findings(run["findings"], task.findings)
    assert read.findings is not None
    assert not read.problems
    trail = tuple(Trace("team", "output", "coder", one["text"], one["code"]) for one in run["outputs"])
    text = run.get("paper", "The paper of the team.")
    report = Report(
        text, task, data.truth, trail=trail, stated=run["findings"], columns=tuple(run.get("columns", data.columns))
    )
    return Paper(name, report, read.findings, frozenset(lacking), run.get("honest", True), run.get("most", 0.2))


def real(name: str) -> Paper:
    """Return a real run."""
    return _paper(name, json.loads((DATA / f"real_{name}.json").read_text()), LACKING.get(name, set()))


def own() -> Iterator[Paper]:
    """Yield the papers of our own."""
    for run in yaml.safe_load((DATA / "papers.yaml").read_text()):
        yield _paper(run["name"], run, set(run.get("lacking", ())))


def scripted() -> Iterator[Paper]:
    """Yield a run of the diligent scripted team for each task."""
    for run in json.loads((DATA / "scripted.json").read_text()):
        yield _paper(f"scripted {run['task']}", run, set())
