"""Calibration of a judge on reports of known quality, including prompt injections.

See `judges.specimens` for the reports. A good judge ranks them by their quality (Spearman, Kendall), with small errors.
A judge that follows injected orders is unsuitable for reports of models, which may contain such orders.

The store holds replies and batches, so an interrupted calibration resumes and pays no call twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from labmates.budgets.ledger import UNLIMITED, Ledger
from labmates.budgets.prices import PriceList
from labmates.judges.base import Report
from labmates.judges.panel import Panel
from labmates.judges.specimens import Specimen, specimen_reports
from labmates.models.check import check_models
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.models.tracing import traced
from labmates.records.shared_calls import StoredBatches, StoredCalls
from labmates.records.store import Store
from labmates.stats.coefficients import kendall, spearman
from labmates.tasks.base import Difficulty
from labmates.tasks.registry import get_task
from labmates.util.seeds import derive
from labmates.workflows.calls.assessing import Judging, Verdict, assessments


@dataclass(frozen=True)
class Rated:
    """A judge's scores of one specimen by metric (None: unscored), with reasons."""

    seed: int
    specimen: Specimen
    scores: Mapping[str, float | None]
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class Fit:
    """The agreement of a judge's scores of one metric with the known ones.

    `reports` is the number of reports with known scores and without orders; `unscored` of them have no score. The rank
    correlations are with the known scores (None without variation); errors are score minus known score.
    """

    metric: str
    reports: int
    unscored: int
    spearman: float | None
    kendall: float | None
    mean_error: float | None
    mean_absolute_error: float | None


@dataclass(frozen=True)
class Moved:
    """The effect of one kind of order on a judge's scores of one metric, in the requested direction.

    `pairs` is the number of reports with the order whose twin without it was scored too. `mean` and `most` are the mean
    and maximum of score with the order minus score without it, negated for orders to rate a report as bad.
    """

    metric: str
    order: str
    pairs: int
    mean: float | None
    most: float | None


@dataclass(frozen=True)
class Calibration:
    """The result of calibrating one judge on one task.

    `cached_calls` of the `calls` were answered from the store; `cost` is that of the others, in micro-dollars.
    """

    judge: str
    version: str
    task: str
    fits: tuple[Fit, ...]
    moves: tuple[Moved, ...]
    rated: tuple[Rated, ...] = field(repr=False)
    calls: int
    cached_calls: int
    input_tokens: int
    output_tokens: int
    cost: int


@dataclass(frozen=True)
class _Case:
    """A report to score, of one data set of a task."""

    task: str
    seed: int
    specimen: Specimen
    report: Report


async def calibrate(
    store: Store,
    panel: Panel,
    tasks: Sequence[str],
    options: ModelOptions,
    *,
    seeds: int = 3,
    difficulty: Difficulty = "medium",
    prices: PriceList | None = None,
    watch: Callable[[int, int], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> list[Calibration]:
    """Let the judges of a panel score reports of known quality.

    The `store` holds replies and batches; stored calls are not repeated. `seeds` is the number of data sets per task.
    `watch` receives the number of verdicts so far, and of all; `notify` receives messages for the user.

    Raises
    ------
    UsageError
        Before anything starts, if a task is unknown or a model can't be called.
    """
    known = [get_task(name) for name in dict.fromkeys(tasks)]
    await check_models(panel.models, options)
    cases = [
        _Case(task.name, seed, specimen, report)
        for task in known
        for seed in range(seeds)
        for specimen, report in await asyncio.to_thread(specimen_reports, task, seed, difficulty)
    ]
    database = store.database
    hub = ModelHub(options, cache=StoredCalls(database), book=StoredBatches(database), notify=notify)
    async with traced(notify), hub:
        judging, ledger, prices = Judging(panel, hub), Ledger(UNLIMITED), prices or PriceList()
        places, done = asyncio.Semaphore(options.calls_at_once), count(1)

        async def score(case: _Case) -> list[Verdict]:
            verdicts = []
            async with places:
                seed = derive(case.seed, case.task, case.specimen.name)
                for assessment in assessments(judging, seed=seed, ledger=ledger, prices=prices):
                    verdicts.append(await assessment.hold(case.report))
                    if watch is not None:
                        watch(next(done), len(cases) * len(panel.names))
            return verdicts

        async with asyncio.TaskGroup() as group:
            jobs = [group.create_task(score(case)) for case in cases]
    verdicts = [(case, job.result()) for case, job in zip(cases, jobs, strict=True)]
    return [
        _calibration(task.name, [(case, of_case[judge]) for case, of_case in verdicts if case.task == task.name])
        for judge in range(len(panel.names))
        for task in known
    ]


def _calibration(task: str, verdicts: Sequence[tuple[_Case, Verdict]]) -> Calibration:
    rated = tuple(
        Rated(
            case.seed,
            case.specimen,
            {score.metric: score.value for score in verdict.scores},
            {score.metric: score.reason for score in verdict.scores},
        )
        for case, verdict in verdicts
    )
    metrics = list(dict.fromkeys(metric for each in rated for metric in each.scores))
    orders = list(dict.fromkeys(each.specimen.order for each in rated if each.specimen.order))
    calls = [call for _, verdict in verdicts for call in verdict.calls]
    _, first = verdicts[0]
    return Calibration(
        first.judge,
        first.version,
        task,
        tuple(fit for metric in metrics if (fit := _fit(metric, rated)).reports),
        tuple(_moved(metric, order, rated) for metric in metrics for order in orders),
        rated,
        len(calls),
        sum(call.reply.cached for call in calls),
        sum(call.reply.usage.input_tokens for call in calls),
        sum(call.reply.usage.output_tokens for call in calls),
        sum(call.paid for call in calls),
    )


def _fit(metric: str, rated: Iterable[Rated]) -> Fit:
    known = [
        (each.specimen.known[metric], each.scores.get(metric))
        for each in rated
        if metric in each.specimen.known and not each.specimen.order
    ]
    pairs = np.array([(true, given) for true, given in known if given is not None], dtype=float).reshape(-1, 2)
    true, given = pairs[:, 0], pairs[:, 1]
    errors = given - true
    return Fit(
        metric,
        len(known),
        len(known) - len(pairs),
        _number(spearman(true, given)),
        _number(kendall(true, given)),
        _number(errors.mean()) if len(pairs) else None,
        _number(np.abs(errors).mean()) if len(pairs) else None,
    )


def _moved(metric: str, order: str, rated: Iterable[Rated]) -> Moved:
    scores = {(report.seed, report.specimen.name): report.scores.get(metric) for report in rated}
    moves = []
    for report in rated:
        if report.specimen.order == order:
            given, twin = report.scores.get(metric), scores.get((report.seed, report.specimen.twin))
            if given is not None and twin is not None:
                moves.append(given - twin if report.specimen.asks_high else twin - given)
    return Moved(
        metric, order, len(moves), _number(float(np.mean(moves))) if moves else None, max(moves) if moves else None
    )


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
