"""``labmates tasks oracle``, ``prior`` and ``score``: reports on a task's data, without a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from labmates.errors import UsageError, telling
from labmates.tasks.base import Difficulty
from labmates.tasks.salt import data_seed
from labmates.util.safe_text import clean
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command
from labmates_author.commands.using import using_task

if TYPE_CHECKING:
    from labmates.judges.base import Report
    from labmates.workflows.protocol.command import Lab

MOST_BYTES: Final = 20_000_000


class DataParams(Params):
    """A task and the data set of a seed, or those of a run."""

    task: str | None = Field(None, json_schema_extra={"argument": True})
    seed: int | None = Field(None, ge=0, description="Seed of the data set.")
    difficulty: Difficulty = Field("medium", description="Difficulty of the data set.")
    run: str | None = Field(
        None, description="Take the task and the data set of this ended run instead of TASK, --seed and --difficulty."
    )


def oracle(lab: Lab, params: DataParams) -> Iterator[Result]:
    """Print the report of a team that knows the truth.

    TASK is a name, or path/to/file.py:Class or module:Class for a task that is not installed.
    """
    from labmates_author.tasks.report import oracle_report

    with _report(lab, params) as report:
        text = oracle_report(report.task, report.truth)
    yield Result((), document=clean(text))


def prior(lab: Lab, params: DataParams) -> Iterator[Result]:
    """Print the report of a team that never looks at the data: the task's prior.

    TASK is a name, or path/to/file.py:Class or module:Class for a task that is not installed. The seed determines only
    the column names.
    """
    from labmates_author.tasks.report import prior_report

    with _report(lab, params) as report:
        text = prior_report(report.task, report.columns, report.difficulty)
    yield Result((), document=clean(text))


class ScoreParams(DataParams):
    """A report on the data set of a seed, or that of a run."""

    report: Path | None = Field(None, json_schema_extra={"argument": True})


def score(lab: Lab, params: ScoreParams) -> Iterator[Result]:
    """Score the findings in a text like those in a run's paper, with the credit of each finding.

    TASK is a name, or path/to/file.py:Class or module:Class for a task that is not installed. REPORT is a file, or -
    for standard input. Seed and difficulty select the data set of the report. With --run the run's own paper and the
    findings that its team stated are scored.
    """
    if not params.run and params.report is None:
        raise UsageError("REPORT is missing: name a file, - for standard input, or a run with --run")
    text = None if params.report is None else _read(params.report)
    with _report(lab, params, text) as report:
        scored = _scored(lab, report)
    scored |= {"run": params.run, "seed": params.seed}
    yield Result((), verdict=list(_score_lines(scored)), objects=[scored])


@contextmanager
def _report(lab: Lab, params: DataParams, text: str | None = None) -> Iterator[Report]:
    """A report with this text on the chosen data set, or the report of the chosen run."""
    if params.run:
        if params.task is not None or params.seed is not None:
            raise UsageError("--run has a task and a data set of its own; leave out TASK, REPORT and --seed")
        yield lab.report(params.run)
        return
    if params.task is None or params.seed is None:
        missing = "TASK" if params.task is None else "--seed"
        raise UsageError(f"{missing} is missing: give a task and --seed, or a run with --run")
    with using_task(params.task) as task:
        from labmates.judges.base import Report

        data = task.generate(data_seed(params.seed), params.difficulty)
        yield Report(text, task, data.truth, columns=data.columns, difficulty=params.difficulty, ideal=data.ideal)


def _read(path: Path) -> str:
    """The text of a file, or of standard input for ``-``.

    Raises
    ------
    UsageError
        If it is unreadable, too long, or not UTF-8.
    """
    name = "standard input" if str(path) == "-" else f"'{path}'"
    with (
        telling(f"REPORT: can't read {name}"),
        nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb") as file,
    ):
        data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UsageError(f"REPORT: {name} is longer than {MOST_BYTES // 1_000_000} MB; give the report alone")
        return data.decode("utf-8-sig")


def _scored(lab: Lab, report: Report) -> dict[str, Any]:
    """The scores of the judge ``verified`` for a report, as JSON values."""
    from labmates.judges.base import SKILL
    from labmates.judges.verified import VerifiedJudge

    task = report.task
    scores = {score.metric: score for score in lab.finish(VerifiedJudge().score(report))}
    stated, skill = scores["accuracy"], scores[SKILL]
    if skill.failed:
        raise UsageError(skill.reason)
    unstated = [asdict(credit) for credit in task.score(task.findings(), report.truth)]
    return {
        "task": task.name,
        "version": task.version,
        "difficulty": report.difficulty,
        "accuracy": stated.value,
        "skill": skill.value,
        "prior": skill.details.get("prior"),
        "readable": stated.details["readable"],
        "repaired": stated.details["repaired"],
        "findings": stated.details.get("credits", unstated),
        "problems": stated.details["problems"],
    }


def _score_lines(scored: dict[str, Any]) -> Iterator[str]:
    """Each finding with its credit, then repairs and problems."""
    width = max(len("finding"), *(len(finding["finding"]) for finding in scored["findings"])) + 2
    yield f"{'finding':<{width}}{'credit':>6}{'weight':>8}  reason"
    for finding in scored["findings"]:
        yield f"{finding['finding']:<{width}}{finding['credit']:>6.3f}{finding['weight']:>8g}  {finding['reason']}"
    for repair in scored["repaired"]:
        yield f"repaired  {repair['where']}: {repair['what']}"
    for problem in scored["problems"]:
        yield f"problem   {problem}"
    yield f"accuracy  {scored['accuracy']:.3f}"
    guessed = "" if scored["prior"] is None else f" (guessing without data earns {scored['prior']:.3f})"
    yield "skill     " + ("not defined" if scored["skill"] is None else f"{scored['skill']:.3f}") + guessed


ORACLE = Command(oracle, DataParams, example="labmates tasks oracle ecology --seed 3 > perfect.md", has_store=True)
PRIOR = Command(prior, DataParams, example="labmates tasks prior ecology --seed 3 > guessed.md", has_store=True)
SCORE = Command(
    score, ScoreParams, example="labmates tasks score ecology report.md --seed 3", objects="", has_store=True
)
