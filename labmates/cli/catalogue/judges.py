"""``labmates judges``: list, show, check and create judges of reports."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from labmates.cli.catalogue.tasks import using_task
from labmates.errors import UsageError
from labmates.judges.registry import JUDGES, get_judge
from labmates.models.names import PROVIDERS, SCRIPTED
from labmates.stats.tables import Column, Table
from labmates.tasks.base import Difficulty
from labmates.tasks.scaffold import new_package
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.catalogue import Named, NewParams, catalogue, verdict, written
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.judges.conformance import JudgeTrial
    from labmates.workflows.protocol.command import Lab


def _model_judges() -> Mapping[str, type[Any]]:
    """Judge models by name, with MODEL in place of ``provider:name``."""
    from labmates.judges.panel import MEAN
    from labmates.judges.registry import MODEL_JUDGES

    return {f"{name}:MODEL".removeprefix(f"{MEAN}:"): MODEL_JUDGES.get(name) for name in MODEL_JUDGES.names()}


def _facts(judge: Any) -> dict[str, Any]:
    """Facts about a judge or a class of judges."""
    from labmates.judges.conformance import metrics_of

    about = inspect.getdoc(judge) or ""
    return {"title": about.partition("\n")[0], "metrics": list(metrics_of(judge)), "version": judge.version}


def show(_lab: Lab, params: Named) -> Iterator[Result]:
    """Show a judge: metrics, rules, version, and the prompts of a judge model.

    NAME is one of the list, with a model as provider:name or as the literal word MODEL.
    """
    judge = _judge_named(params.name)
    with JUDGES.guarded(params.name, "can't be shown"):
        facts = _facts(judge)
        prompts = dict(getattr(judge, "prompts", {}))
        rules = inspect.getdoc(sys.modules[(judge if isinstance(judge, type) else type(judge)).__module__]) or ""
    package = JUDGES.package(params.name)
    lines = [
        f"{params.name}, version {facts['version']}" + (f"  ({package})" if package else ""),
        f"metrics: {', '.join(facts['metrics']) or 'not named'}",
        *([] if rules.startswith(facts["title"]) else [f"\n{facts['title']}"]),
        f"\n{rules}",
        *(f"\nPrompt: {title}\n{text}" for title, text in prompts.items()),
    ]
    shown = {"name": params.name, **facts, "package": package, "rules": rules, "prompts": prompts}
    yield Result((), verdict=lines, objects=[shown])


def _judge_named(name: str) -> Any:
    from labmates.judges.panel import MEAN
    from labmates.judges.registry import MODEL_JUDGES

    if name in (MEAN, "MODEL") or ":" in name:
        kind = name.partition(":")[0]
        return MODEL_JUDGES.get(kind if kind in MODEL_JUDGES else MEAN)
    return get_judge(name)


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
    from labmates.judges.conformance import sample_cases, try_judge
    from labmates.judges.registry import MODEL_JUDGES

    kind, colon, _ = params.judge.partition(":")
    if colon and kind in (*PROVIDERS, SCRIPTED, *MODEL_JUDGES.names()):
        raise UsageError(f"'{params.judge}' is a model; try: labmates judge RUN --judge {params.judge}")
    with using_task(params.task) as task:
        cases = sample_cases(task, params.seed, params.difficulty)
    work = try_judge(params.judge, cases, seconds=params.step_timeout, watch=lab.step)
    trial = lab.finish(work)
    yield verdict(
        params.judge,
        trial.verdicts(),
        head=f"{params.judge}: {len(cases)} reports on {params.task}",
        passed=trial.passed,
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


JUDGES_COMMAND = catalogue(
    """List the judges of reports, or show, check or create one.

    Any model can judge: name it as provider:name.
    """,
    JUDGES,
    lambda name: _facts(get_judge(name)),
    {
        "show": Command(show, Named, example="labmates judges show MODEL", objects=""),
        "check": Command(check, CheckParams, example="labmates judges check heuristic", objects=""),
        "new": Command(new, NewParams, example="labmates judges new clarity"),
    },
    example="labmates judges show verified",
    objects="per judge",
    more=lambda: {name: _facts(judge) for name, judge in _model_judges().items()},
)
