"""``labmates judge``: judge ended runs, without executing them again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pydantic import Field

from labmates.budgets.money import format_dollars, show_dollars
from labmates.errors import UsageError
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command
from labmates.workflows.protocol.verb import InterruptedWorkError, PausedWorkError

if TYPE_CHECKING:
    from labmates.studies.judging import Judged
    from labmates.workflows.protocol.command import Lab

_SHOWN = ("judge", "version", "metric", "value", "reason", "failed", "at")


class JudgeParams(Params):
    """The judges of runs."""

    judges: tuple[str, ...] = Field(
        (),
        description="A model as provider:name (judges by rubrics), a registered judge (see: labmates judges), or your "
        "own judge as path/to/file.py:Class; repeatable. [default: heuristic, verified]",
    )
    extractor: str | None = Field(
        None,
        description="Model that extracts findings from a report without a findings block, for the judge 'verified'. "
        "[default: the first judge model]",
    )
    again: bool = Field(False, description="Score again with judges that have already scored a run.")
    prices: str | None = Field(None, description="Price of judging. [default: each run's price list]")


def judge(lab: Lab, params: JudgeParams) -> Iterator[Result]:
    """Score ended runs, without executing them again.

    Name runs, or select all of a study, experiment or task. New scores are added to existing ones; a judge scores a run
    once, unless --again is given. --base-url is the server of openai: judges.
    """
    from labmates.budgets.prices import read_prices
    from labmates.judges.panel import ALWAYS, make_panel
    from labmates.judges.registry import registered_name
    from labmates.studies.judging import judge_runs, judgeable
    from labmates.studies.settings import RunSettings

    if not (lab.runs.ids or lab.runs.study or lab.runs.kind or lab.runs.task):
        raise UsageError("name the runs to judge, or choose them by --study, --kind or --task")
    named = tuple(map(registered_name, params.judges)) or ALWAYS
    asked = RunSettings(models=lab.catalog.options(), judges=named, extractor=params.extractor).resolved(lab.catalog)
    panel = make_panel(asked.judges, asked.extractor, always=())
    prices = read_prices(params.prices) if params.prices else None
    runs = judgeable(lab.runs.records(), strict=bool(lab.runs.ids))
    done: list[Judged] = []

    def watch(judged: Judged) -> None:
        done.append(judged)
        lab.step(f"{len(done)} of {len(runs)} runs judged")

    work = judge_runs(
        lab.runs.store, runs, panel, asked.models, again=params.again, prices=prices, watch=watch, notify=lab.notify
    )
    try:
        lab.finish(work)
    except InterruptedWorkError:
        lab.notify("Interrupted. Scores so far are kept; repeat the command to continue.")
        raise
    yield from map(_result, done)
    calls = [call for judged in done for call in judged.calls]
    tokens = sum(call.input_tokens + call.output_tokens for call in calls)
    added = sum(len(judged.added) for judged in done)
    cost = show_dollars(sum(call.cost for call in calls))
    total = f"{added} scores added to {len(done)} runs; {len(calls)} model calls, {tokens:,} tokens, {cost}"
    yield Result((), verdict=[total], objects=())
    if any(judged.paused for judged in done):
        raise PausedWorkError


def _result(judged: Judged) -> Result:
    run = f"run {judged.run.id}"
    lines = [
        f"{run}: {score.judge} {score.metric} {'unscored' if score.value is None else f'{score.value:.3f}'}  "
        f"{score.reason}"
        for score in judged.added
    ]
    if not lines and judged.error is None:
        lines.append(f"{run}: nothing to add, these judges have scored it (--again repeats)")
    fault = None if judged.is_done else f"{run} was not judged: {judged.error or 'some scores failed'}"
    return Result((), verdict=lines, objects=[_json(judged)], fault=fault)


def _json(judged: Judged) -> dict[str, Any]:
    from labmates.studies.judging import judging_usage

    used = [{**asdict(usage), "cost": format_dollars(usage.cost)} for usage in judging_usage(judged.calls)]
    return {
        "id": judged.run.id,
        "kind": judged.run.kind,
        "added": [{name: getattr(score, name) for name in _SHOWN} for score in judged.added],
        "judging": used,
        "error": judged.error,
    }


JUDGE_COMMAND = Command(
    judge,
    JudgeParams,
    example="labmates judge 3f9a2c41d7 --judge openai:gpt-5.4-mini --judge google_genai:gemini-3.1-flash",
    asks_models=True,
    has_store=True,
    choices=("runs", "study", "kind", "task"),
    objects="per run",
)
