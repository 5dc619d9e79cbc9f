"""Judging of ended runs by other judges, by newer versions, or again, without executing the runs.

The truth is regenerated from the run's seed, and the report is read from the store. Scores are added to the run's
events and never replace others; the run's metrics follow the newest scores. Each verdict is stored at once, so an
interrupted judging can be resumed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields

from labmates.budgets.ledger import Ledger
from labmates.budgets.prices import PriceList
from labmates.errors import LabmatesError, UsageError
from labmates.judges.base import Report
from labmates.judges.panel import Panel, partial_judges
from labmates.models.check import check_models
from labmates.models.errors import ModelPausedError
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.models.tracing import traced
from labmates.records.bodies import Bodies
from labmates.records.events import Event, LLMCallEvent, ScoreEvent
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.studies.runs import check_salt
from labmates.util.grouping import grouped
from labmates.workflows.calls.assessing import (
    Assessment,
    Judging,
    add_events,
    assessments,
    mean_events,
    money_left,
)
from labmates.workflows.protocol.experiment import EXPERIMENTS, condition_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JudgingUsage:
    """One judge's usage for a run, separate from the teams' usage; `cost` is in micro-dollars."""

    judge: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost: int = 0


def judging_usage(events: Iterable[Event]) -> list[JudgingUsage]:
    """The usage of each judge, in order of appearance."""
    calls = grouped((event.judge, event) for event in events if event.type == "judge_call")
    sums = [each.name for each in fields(JudgingUsage)[2:]]
    return [
        JudgingUsage(judge, len(mine), *(sum(getattr(call, name) for call in mine) for name in sums))
        for judge, mine in calls.items()
    ]


@dataclass
class Judged:
    """The result of judging one run."""

    run: RunRecord
    added: list[ScoreEvent] = field(default_factory=list)  # new scores
    calls: list[LLMCallEvent] = field(default_factory=list)  # model calls of the judges for these scores
    error: str | None = None  # why judging failed, or None
    paused: bool = False  # whether it failed because a judge's model takes no calls for hours

    @property
    def is_done(self) -> bool:
        """Whether all judges could score."""
        return self.error is None and not any(score.failed for score in self.added)

    def take(self, events: Sequence[Event]) -> None:
        """Add stored events."""
        self.added += [event for event in events if isinstance(event, ScoreEvent)]
        self.calls += [event for event in events if event.type == "judge_call"]


Watch = Callable[[Judged], None]
"""Receives each judged run."""


def judgeable(runs: Sequence[RunRecord], *, strict: bool) -> list[RunRecord]:
    """The ended runs of kinds with a report; with `strict`, other runs are an error.

    Raises `UsageError` if a run can't be judged (strict), none can, or a run's data have another salt.
    """
    ended = []
    problem = ""
    for run in runs:
        if EXPERIMENTS.get(run.kind).report is None:
            problem = f"the run '{run.id}' is of the kind {run.kind}, which writes no report to judge"
        elif run.status not in ENDED:
            problem = f"the run '{run.id}' has not ended ({run.status}); resume it first"
        else:
            check_salt(run)
            ended.append(run)
            continue
        if strict:
            raise UsageError(problem)
    if not ended:
        raise UsageError(problem or "no runs to judge")
    return ended


async def judge_runs(
    store: Store,
    runs: Sequence[RunRecord],
    panel: Panel,
    options: ModelOptions,
    *,
    again: bool = False,
    prices: PriceList | None = None,
    watch: Watch | None = None,
    notify: Callable[[str], None] | None = None,
) -> list[Judged]:
    """Let the judges of a panel score runs that they have not scored, or all with `again`, and return the results.

    The options bound the model calls in flight and the concurrent runs. The `prices` of judges' calls are by default
    those of each run's condition. Raises `UsageError` before anything starts, if a model can't be called.
    """
    await check_models(panel.models, options)
    if notify and (warning := partial_judges(panel, {model for run in runs for model in run.models})):
        notify(warning)
    places = asyncio.Semaphore(options.max_concurrent_calls)
    left = await asyncio.to_thread(money_left, store, runs)
    async with traced(notify), ModelHub(options) as hub:
        judging = Judging(panel, hub)

        async def judged_run(run: RunRecord) -> Judged:
            async with places:
                job = _Job(store, run, judging, again, prices, left[run.study])
                judged = await job.work()
            if watch is not None:
                watch(judged)
            return judged

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(judged_run(run)) for run in runs]
    return [task.result() for task in tasks]


@dataclass
class _Job:
    """The judging of one run."""

    store: Store
    run: RunRecord
    judging: Judging
    again: bool
    prices: PriceList | None
    ledger: Ledger

    async def work(self) -> Judged:
        """Run all assessments concurrently; errors of this run are returned, not raised."""
        judged = Judged(self.run)
        try:
            had = await asyncio.to_thread(self.store.scores, self.run.id)
            prices = self.prices or getattr(condition_of(self.run), "prices", None) or PriceList()
            open_ = assessments(
                self.judging, seed=self.run.seed, ledger=self.ledger, prices=prices, had=had, again=self.again
            )
            if open_:
                report = await asyncio.to_thread(self._report)
                heard = await asyncio.gather(
                    *(self._hear(assessment, report) for assessment in open_), return_exceptions=True
                )
                for added in heard:  # in the panel's order; each is stored already
                    if not isinstance(added, BaseException):
                        judged.take(added)
                for problem in heard:
                    if isinstance(problem, BaseException):
                        raise problem
            if open_ or mean_events(had):
                judged.take(await self._store(lambda now, _: list(mean_events(now))))
            if judged.added:
                await asyncio.shield(asyncio.to_thread(self._refresh))
        except LabmatesError as error:
            judged.error, judged.paused = str(error), isinstance(error, ModelPausedError)
        except Exception as error:
            _log.warning("run %s could not be judged", self.run.id, exc_info=True)
            judged.error = f"{type(error).__name__}: {error}"
        return judged

    def _report(self) -> Report:
        return report_of(self.run, self.store.events(self.run.id), Bodies(self.store.bodies(self.run.id)))

    def _refresh(self) -> None:
        """Update the run's metrics to its newest scores."""
        make = EXPERIMENTS.get(self.run.kind).judged
        if make is not None:
            metrics = {**self.store.run(self.run.id).metrics, **make(self.store.scores(self.run.id))}
            self.store.set_metrics(self.run.id, metrics)

    async def _hear(self, assessment: Assessment, report: Report) -> list[Event]:
        await assessment.hold(report)
        added = await self._store(lambda _, bodies: assessment.events(bodies))
        assessment.check_pause()
        return added

    async def _store(self, make: Callable[[Sequence[ScoreEvent], Bodies], list[Event]]) -> list[Event]:
        return await asyncio.shield(asyncio.to_thread(add_events, self.store, self.run.id, make))


def report_of(run: RunRecord, events: Sequence[Event], bodies: Bodies) -> Report:
    """The report of an ended run for judges.

    Raises `UsageError` if its data are of another version of the task.
    """
    make = EXPERIMENTS.get(run.kind).report
    assert make is not None
    report = make(condition_of(run), run.seed, events, bodies)
    # Another version of the task has other data, so its truth does not apply.
    had = [event for event in events if isinstance(event, ScoreEvent)]
    now = report.task.version
    tasks = [score.details.get("task") for score in had]
    then = next((task["version"] for task in tasks if isinstance(task, dict) and "version" in task), now)
    if then != now:
        raise UsageError(
            f"the run '{run.id}' was made with version {then} of the task {report.task.name}; this is version {now}, "
            "whose data sets or scoring are others"
        )
    return report
