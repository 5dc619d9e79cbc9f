"""``labmates judges new`` and ``labmates judges check``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from labmates.errors import UsageError
from labmates.judges.registry import JUDGES, MODEL_JUDGES
from labmates.models.names import PROVIDERS, SCRIPTED
from labmates.stats.tables import Column, Table
from labmates.tasks.base import Difficulty
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command
from labmates_author.commands.shown import NewParams, verdict, written
from labmates_author.commands.using import using_task
from labmates_author.scaffold import new_package

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab
    from labmates_author.judges import JudgeTrial


class CheckParams(Params):
    """The parameters of checking a judge."""

    judge: str = Field(json_schema_extra={"argument": True})
    task: str = Field("ecology", description="Science task of the reports.")
    seed: int = Field(0, ge=0, description="Seed of the data of these reports.")
    difficulty: Difficulty = Field("easy", description="Difficulty of the data of these reports.")
    step_timeout: float = Field(
        60.0, gt=0, description="Time limit per report, in seconds; a slower judge is reported as hanging."
    )


def check(lab: Lab, params: CheckParams) -> Iterator[Result]:
    """Check a judge against the rules of the interface, on reports of known quality.

    JUDGE is a name, or path/to/file.py:Class or module:Class for a judge that is not installed. It scores a correct
    report, a wrong one with and without a prompt injection, empty talk, and a missing report. The exit code is 1 if
    there are errors, else 0.
    """
    from labmates_author.judges import sample_cases, try_judge

    kind, colon, _ = params.judge.partition(":")
    if colon and kind in (*PROVIDERS, SCRIPTED, *MODEL_JUDGES.names()):
        raise UsageError(f"'{params.judge}' is a model; try: labmates judge RUN --judge {params.judge}")
    with using_task(params.task) as task:
        cases = sample_cases(task, params.seed, params.difficulty)
    work = try_judge(params.judge, cases, seconds=params.step_timeout, watch=lab.step)
    trial = lab.finish(work)
    yield verdict(
        params.judge,
        trial,
        head=f"{params.judge}: {len(cases)} reports on {params.task}",
        tables=[_scores(trial)] if trial.scores else [],
        judge=params.judge,
        reports=[{"report": name, "scores": dict(scores)} for name, scores in trial.scores.items()],
    )


def _scores(trial: JudgeTrial) -> Table:
    metrics = dict.fromkeys(metric for scores in trial.scores.values() for metric in scores)
    rows = [{"report": name, **scores} for name, scores in trial.scores.items()]
    columns = [Column("report"), *(Column(metric, form=".3f") for metric in metrics)]
    return Table("scores", "Scores by report", columns, rows)


def new(_lab: Lab, params: NewParams) -> Iterator[Result]:
    """Write a small working package with a judge, for you to change."""
    folder = Path(params.folder or params.name)
    paths = new_package(JUDGES, params.name, folder)
    yield written(folder, paths, f"labmates judges check {params.name}", f"labmates judge RUN --judge {params.name}")


NEW = Command(new, NewParams, example="labmates judges new clarity")
CHECK = Command(check, CheckParams, example="labmates judges check heuristic", objects="")
