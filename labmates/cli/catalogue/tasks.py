"""``labmates tasks``: list and show science tasks, and score reports without a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from labmates.errors import UsageError, telling
from labmates.tasks.base import Difficulty, accuracy
from labmates.tasks.registry import TASKS, get_task, using_task
from labmates.tasks.salt import data_seed
from labmates.util.safe_text import clean
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.catalogue import Facts, Named, catalogue
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.judges.base import Report
    from labmates.tasks.base import Dataset, Task
    from labmates.workflows.protocol.command import Lab

MOST_BYTES: Final = 20_000_000


class ShowParams(Named):
    """A task with a sample of its data."""

    seed: int = Field(0, ge=0, description="Seed of the sample shown.")
    difficulty: Difficulty = Field("medium", description="Difficulty of the sample.")


def show(_lab: Lab, params: ShowParams) -> Iterator[Result]:
    """Show a task: the agents' brief, the findings to state, the first rows of a sample, and the score of a guess."""
    from labmates.tasks.schema import findings_schema_text

    task = get_task(params.name)
    with TASKS.guarded(params.name, "can't be shown"):
        sample = task.generate(data_seed(params.seed), params.difficulty)
        parts = {
            f"{task.title} ({task.name}, version {task.version})": task.brief,
            "The data": sample.description,
            "Findings to state": findings_schema_text(task),
            f"A sample (seed {params.seed}, {params.difficulty}): {len(sample.frame)} rows": (
                sample.frame.head(8).to_string()
            ),
            "Score of a guess": _guessing(task, sample, params.difficulty),
        }
    yield Result((), verdict=[f"{title}\n{text}\n" for title, text in parts.items()])


def _guessing(task: Task[Any, Any], sample: Dataset[Any], difficulty: Difficulty) -> str:
    """The prior's statement, and its score on a sample."""
    stated = task.prior(sample.columns, difficulty)
    earned = accuracy(task.score(stated, sample.truth))
    block = stated.model_dump_json(exclude_none=True)
    return f"A guess without the data: {block}\nIt earns {earned:.3f} on the sample, which is a skill of 0."


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
    from labmates.tasks.report import oracle_report

    with _report(lab, params) as report:
        text = oracle_report(report.task, report.truth)
    yield Result((), document=clean(text))


def prior(lab: Lab, params: DataParams) -> Iterator[Result]:
    """Print the report of a team that never looks at the data: the task's prior.

    TASK is a name, or path/to/file.py:Class or module:Class for a task that is not installed. The seed determines only
    the column names.
    """
    from labmates.tasks.report import prior_report

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


def _facts(name: str) -> Facts:
    task = get_task(name)
    return {"title": task.title, "version": task.version}


TASKS_COMMAND = catalogue(
    "List the science tasks, show one, or score a report.",
    TASKS,
    _facts,
    {
        "show": Command(show, ShowParams, example="labmates tasks show ecology --seed 3"),
        "oracle": Command(
            oracle, DataParams, example="labmates tasks oracle ecology --seed 3 > perfect.md", has_store=True
        ),
        "prior": Command(
            prior, DataParams, example="labmates tasks prior ecology --seed 3 > guessed.md", has_store=True
        ),
        "score": Command(
            score,
            ScoreParams,
            example="labmates tasks score ecology report.md --seed 3",
            objects="",
            has_store=True,
        ),
    },
    example="labmates tasks show ecology",
    objects="per task",
)
