"""The verbs of the command line as functions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from labmates import condition_types as types
from labmates.errors import LabmatesError, UsageError, explaining, unknown_name
from labmates.judges.panel import ALWAYS, make_panel
from labmates.judges.registry import registered_name
from labmates.models.catalog import Catalog
from labmates.models.options import ModelOptions
from labmates.records.frames import ROWS, Rows, chosen_runs, frame
from labmates.records.listing import select_runs
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.records.studies import study_counts, study_record
from labmates.reports.report import check_report, store_report, study_report, write_report
from labmates.studies.continuations import Continuations, both_arms
from labmates.studies.designs import RULES
from labmates.studies.fork import fork as fork_run
from labmates.studies.judging import Judged, judge_runs, judgeable
from labmates.studies.lab import StudyLab
from labmates.studies.plan import Plan, make_plan
from labmates.studies.processes import work_in_processes
from labmates.studies.progress import Lines, polled
from labmates.studies.replay import Replayed
from labmates.studies.replay import replay as replay_run
from labmates.studies.result import Run, RunList
from labmates.studies.runs import new_runs, stopped_run
from labmates.studies.session import Session
from labmates.studies.settings import APPROVAL, RunSettings, approval_fault
from labmates.studies.source import find_study
from labmates.studies.spec import mixing, read_spec
from labmates.studies.study import enter, work_on
from labmates.util.loops import awaitable, blocking, run_async
from labmates.util.safe_text import clean
from labmates.workflows.calls.stop_signal import StopSignal
from labmates.workflows.people.approval import Ask, approver_of
from labmates.workflows.protocol.analysis import ANALYSES, Result, Runs
from labmates.workflows.protocol.experiment import EXPERIMENTS, make_condition
from labmates.workflows.protocol.verb import VERBS

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
_POLL_SECONDS = 5.0


@types.by_experiment
@blocking
async def run(
    kind: str,
    *,
    seed: int = 0,
    replicates: int = 1,
    store: str | None = None,
    settings: RunSettings | Mapping[str, Any] | None = None,
    progress: bool = False,
    approve: Ask | None = None,
    **condition: Any,
) -> list[Run]:
    """Execute a condition and return its ended runs.

    Interrupted runs stay in the store; `resume` completes them.

    Parameters
    ----------
    kind
        Kind of experiment, for instance ``"science"``.
    seed
        Seed of the first replicate; replicate r has ``seed + r``.
    replicates
        Number of runs.
    store
        Store, by its URL or file; default ``LABMATES_STORE``, else ``labmates.db``.
    settings
        How models are reached and where code runs (`RunSettings`).
    progress
        Print each phase and each end to standard error.
    approve
        Answers the questions of an organisation that asks a person (`workflows.people.approval.Question`): True for
        yes; False or a text, the reason, for no. The interrupt of an organisation as code may get any JSON value.
    **condition
        Parameters of the condition, for instance ``task="ecology", model="scripted:diligent"``.

    Raises
    ------
    UsageError
        If an argument is invalid or a model can't be reached.

    Examples
    --------
    >>> import labmates
    >>> [run] = labmates.run("science", task="ecology", model="scripted:diligent")  # doctest: +SKIP
    >>> run.metrics["accuracy"]  # doctest: +SKIP
    """
    chosen = _settings(settings, approve)
    catalog = Catalog(chosen.models)
    wanted = make_condition(kind, condition, catalog=catalog)
    chosen = chosen.resolved(catalog)
    runs = new_runs(wanted, seed=seed, replicates=replicates, settings=chosen)
    with await asyncio.to_thread(Store, store) as database:
        return await _execute(database, runs, chosen, progress, approve)


arun = types.by_experiment(awaitable(run))
"""`run` as a coroutine, for programs that run an event loop."""


@blocking
async def resume(
    runs: Sequence[str] = (),
    *,
    store: str | None = None,
    allow_mixed: bool = False,
    progress: bool = False,
    approve: Ask | None = None,
) -> list[Run]:
    """Resume unfinished runs, each with its recorded condition and settings, and return the ended runs.

    Recorded calls are replayed, not paid again.

    Parameters
    ----------
    runs
        Ids; by default all interrupted runs outside studies.
    allow_mixed
        Continue runs that began with other prompts, rules or code.
    store, progress, approve
        As for `run`.

    Raises
    ------
    UsageError
        If a run is unknown or has ended.
    """
    with await asyncio.to_thread(Store, store, must_exist=True) as database:
        if runs:
            stopped = [stopped_run(database, run_id) for run_id in runs]
        else:
            stopped = [run for run in database.runs() if run.status == "interrupted" and run.study is None]
        ended = RunList()
        for run in stopped:
            chosen = RunSettings.model_validate({**run.settings, **({"allow_mixed": True} if allow_mixed else {})})
            ended += await _execute(database, [run], chosen, progress, approve)
        return ended


def study(
    study: str | Path | Mapping[str, Any],
    *,
    store: str | None = None,
    until: str | None = None,
    allow_mixed: bool = False,
    progress: bool = False,
) -> list[Run]:
    """Execute a study's unfinished runs, and return all of its started runs.

    After an interruption, the same call resumes the study.

    Parameters
    ----------
    study
        A YAML file, the name of a study that comes with labmates, or a mapping with the contents of a file.
    until
        Rule that stops the study early: ``settled`` once all pairs of conditions are distinguished, or are unlikely
        to be.
    allow_mixed
        Continue runs that began with other prompts, rules or code.
    store, progress
        As for `run`.

    Raises
    ------
    UsageError
        If the file is invalid, or its runs can't be executed.
    """
    source = mixing(find_study(study)) if allow_mixed else find_study(study)
    spec = read_spec(source)
    rule = RULES.get(until) if until else None

    async def work(database: Store) -> None:
        left = study_counts(database, spec.name).of("planned", "interrupted", "running")
        if (workers := spec.concurrency.workers) == 1:
            watch, notify = (Lines((), _tell, left).watch, _tell) if progress else (None, None)
            await work_on(database, spec, watch=watch, notify=notify)
            return
        tell = polled(database, spec.name, _POLL_SECONDS, _tell)
        async with tell if progress else nullcontext():
            await work_in_processes(database.url, spec.name, workers, StopSignal())

    with Store(store) as database:
        for part in rule.growing(database, spec) if rule else [spec]:
            enter(database, part, source)
            run_async(lambda: work(database))
            if rule and rule.settled(database, part, spec.replicates):
                break
        return RunList(Run.of(record, database) for record in database.runs(study=spec.name))


def plan(
    study: str | Path | Mapping[str, Any],
    *,
    compared: str | None = None,
    difference: float | None = None,
    store: str | None = None,
) -> Plan:
    """The estimated cost of a study, before anything is spent.

    Parameters
    ----------
    study
        A YAML file, the name of a study that comes with labmates, or a mapping with the contents of a file.
    compared
        The one comparison to plan, such as ``compare organisation``; by default all.
    difference
        A difference of which to plan the seeds, models or tasks that find it in `compared`.
    store
        As for `run`; its runs, if any, replace assumptions by measurements.

    Raises
    ------
    UsageError
        If the file is invalid, or its runs can't be executed.
    """
    source = find_study(study)
    spec = read_spec(source)
    with Store.existing(store) as database:
        return make_plan(spec, database, source, compared=compared, difference=difference)


def show(run: str = "last", *, store: str | None = None) -> Run:
    """A stored run with its scores, report, events, messages, artifacts and figures; a notebook shows it as a table.

    Parameters
    ----------
    run
        Id, the first characters of one (at least 4), or ``"last"``, the newest run.
    store
        URL of the store; default ``LABMATES_STORE``, else ``sqlite:///labmates.db``.

    Raises
    ------
    UsageError
        If there is no such run or store.
    """
    with Store(store, must_exist=True) as database:
        return Run.of(database.run(run), database)


@overload
def fork(
    run: str,
    *,
    at: int | str,
    changes: Mapping[str, Any],
    replicates: None = None,
    store: str | None = None,
    settings: RunSettings | Mapping[str, Any] | None = None,
    progress: bool = False,
    approve: Ask | None = None,
) -> Run: ...


@overload
def fork(
    run: str | Sequence[str],
    *,
    at: int | str,
    changes: Mapping[str, Any],
    replicates: int,
    store: str | None = None,
    settings: RunSettings | Mapping[str, Any] | None = None,
    progress: bool = False,
    approve: Ask | None = None,
) -> list[Run]: ...


@blocking
async def fork(
    run: str | Sequence[str],
    *,
    at: int | str,
    changes: Mapping[str, Any],
    replicates: int | None = None,
    store: str | None = None,
    settings: RunSettings | Mapping[str, Any] | None = None,
    progress: bool = False,
    approve: Ask | None = None,
) -> Run | list[Run]:
    """Branch a run at one of its events under another condition, execute the branch and return the ended run.

    Parameters
    ----------
    run
        Id; with `replicates`, also several.
    at
        First event that the fork leaves out: its number, or the step, team or agent with which it begins; a step that
        it splits is left out whole.
    changes
        New values of the condition, for instance ``{"model.writing": "scripted:hasty"}``.
    replicates
        Number of continuations of each run with the changes, and of those without; they are returned, and `compare`
        tells the effect (``where=["origin=RUN"]``). Those in the store are not executed again.
    settings
        By default the run's.
    store, progress, approve
        As for `run`.

    Raises
    ------
    UsageError
        If the run or the event is unknown, or a change is invalid there.
    """
    chosen = None if settings is None else _settings(settings, approve)

    run_ids = [run] if isinstance(run, str) else run
    with await asyncio.to_thread(Store, store, must_exist=True) as database:
        if replicates is None:
            [run_id] = run_ids
            branch = await fork_run(database, run_id, at=at, changes=changes, settings=chosen)
            its_own = RunSettings.model_validate(branch.settings)
            [ended] = await _execute(database, [branch], its_own, progress, approve)
            return ended
        own = RunSettings.model_validate if chosen is None else lambda _: chosen
        branches = await both_arms(database, run_ids, at=at, changes=changes, settings=own)
        forks = Continuations(database, branches, replicates)
        for its_own, runs in forks.enter():
            await _execute(database, runs, its_own, progress, approve)
        return RunList(Run.of(record, database) for record in forks.ended())


@blocking
async def replay(run: str, *, sandbox: str | None = None, store: str | None = None) -> Replayed:
    """Re-run from the recording, without model calls, and compare events and metrics with the record.

    What follows code is computed from its recorded output; code that prints something else now is listed apart, in
    `cells`.

    Parameters
    ----------
    run
        Id.
    sandbox
        Where code runs; by default the run's setting.

    Raises
    ------
    UsageError
        If the run is unknown or has not ended.
    """
    with await asyncio.to_thread(Store, store, must_exist=True) as database:
        return await replay_run(database, database.run(run), sandbox=sandbox)


async def _execute(
    database: Store,
    runs: Sequence[RunRecord],
    settings: RunSettings,
    progress: bool,
    approve: Ask | None = None,
) -> list[Run]:
    approver = approver_of(approve) if approve else None
    if approver:
        settings = settings.model_copy(update=APPROVAL)  # a resumed run's choice
    try:
        watch, notify = (Lines(runs, _tell).watch, _tell) if progress else (None, None)
        ended = await Session(database, settings, watch=watch, notify=notify, approver=approver).execute(runs)
        return RunList(Run.of(record, database) for record in ended)
    except asyncio.CancelledError:
        _tell("Interrupted. Everything is kept; resume with: labmates.resume()")
        raise


def _tell(line: str) -> None:
    sys.stderr.write(f"{clean(line)}\n")
    sys.stderr.flush()


def __getattr__(name: str) -> Callable[..., Any]:
    """The function of a verb from an experiment or another package.

    It takes the arguments of `Command.function` (except the lab), the parameters of the verb's experiment, and these:

    store, study
        URL of the store, and the study whose runs are read.
    settings
        How models are reached and where code runs (`RunSettings`).
    progress
        As for `run`.
    """
    function = (
        None if name.startswith("_") or name not in VERBS else getattr(VERBS.get(name).command.target, "function", None)
    )
    if function is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    parameters = signature(function).parameters

    @wraps(function)
    def call(
        *arguments: Any,
        store: str | None = None,
        study: str | None = None,
        settings: RunSettings | Mapping[str, Any] | None = None,
        progress: bool = False,
        **named: Any,
    ) -> Any:
        given = {name: value for name, value in named.items() if name not in parameters}
        named = {name: value for name, value in named.items() if name in parameters}
        with _PythonLab(store, study, _settings(settings), given, progress=progress) as lab:
            return function(lab, *arguments, **named)

    return call


class _PythonLab(StudyLab):
    """The lab of a verb's function."""

    as_json = False

    def __init__(
        self, url: str | None, study: str | None, settings: RunSettings, given: Mapping[str, Any], *, progress: bool
    ) -> None:
        super().__init__(url, lambda _: settings, given, Runs(url, study=study))
        self._progress = progress

    def notify(self, text: str) -> None:
        """Show a line to the user."""
        _tell(text)

    warn = notify

    def step(self, text: str) -> None:
        """Ignore progress: there is no display."""

    def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Run asynchronous work."""
        return run_async(lambda: work)

    def execute(self, runs: list[RunRecord], settings: RunSettings, part_of: str | None = None) -> None:
        """Execute and store runs; a failed run raises `LabmatesError`."""
        ended = run_async(lambda: _execute(self.store, runs, settings, self._progress))
        if failed := [run for run in ended if run.status not in ENDED]:
            raise LabmatesError(f"{len(failed)} of {len(ended)} runs failed: {failed[0].error}")


def _settings(settings: RunSettings | Mapping[str, Any] | None, approve: Ask | None = None) -> RunSettings:
    with explaining(known=RunSettings.model_fields):
        chosen = settings if isinstance(settings, RunSettings) else RunSettings.model_validate(settings or {})
    if fault := approval_fault({**dict(chosen), "approve": approve}):
        raise UsageError(fault)
    return chosen


def analyze(
    analysis: str,
    runs: Sequence[str] = (),
    *,
    store: str | None = None,
    study: str | None = None,
    kind: str | None = None,
    task: str | None = None,
    allow_mixed: bool = False,
    **params: Any,
) -> Result:
    """Analyse the runs in a store.

    Parameters
    ----------
    analysis
        Name of the analysis, for instance ``"tournament"``.
    runs
        Ids; by default all runs of the store.
    store
        Store, by its URL or file; default ``LABMATES_STORE``, else ``labmates.db``.
    study, kind, task
        Only runs of this study, this experiment, this task.
    allow_mixed
        Also if the runs were made with different prompts, rules or code.
    **params
        Parameters of the analysis: its options without the dashes.

    Returns
    -------
    Result
        Tables (`Result.frame` as data frames), figures and a verdict.

    Raises
    ------
    UsageError
        If the analysis or a parameter is unknown, or no runs match.
    """
    chosen = ANALYSES.get(analysis)
    with explaining():
        checked = chosen.params.model_validate(params)
    selected = Runs(store, runs, study=study, kind=kind, task=task, allow_mixed=allow_mixed)
    try:
        return chosen.result(selected, checked)
    finally:
        selected.close()


def compare(
    *conditions: str,
    store: str | None = None,
    study: str | None = None,
    kind: str | None = None,
    task: str | None = None,
    allow_mixed: bool = False,
    **params: Any,
) -> Result:
    """Test whether conditions differ, and by how much.

    Parameters
    ----------
    conditions
        ``NAME=VALUE``, several joined by commas, such as ``organisation=solo,task=ecology``. Without any, the values of
        parameters are compared (``by=["model"]``).
    store, study, kind, task, allow_mixed
        See `analyze`.
    **params
        The options of ``labmates compare``: ``by``, ``metric``, ``where``, ``over``, ``within``, ``all``.

    Raises
    ------
    UsageError
        If a parameter is unknown, or there is nothing to compare.
    """
    return analyze(
        "compare",
        store=store,
        study=study,
        kind=kind,
        task=task,
        allow_mixed=allow_mixed,
        conditions=conditions,
        **params,
    )


def load(
    what: Rows = "runs",
    *,
    store: str | None = None,
    kind: str | None = None,
    study: str | None = None,
    model: str | None = None,
) -> pd.DataFrame:
    """The contents of a store as a data frame; see `labmates.records.frames.frame` for the columns.

    Parameters
    ----------
    what
        ``runs``, ``scores`` (and their means over model judges), ``players`` (agents with their usage, decisions and
        payoffs), ``decisions``, ``payoffs`` (a row per player and round), ``messages`` (of calls) or ``events``.
    store
        Store, by its URL or file; default ``LABMATES_STORE``, else ``labmates.db``.
    kind, study
        Only runs of this experiment, this study.
    model
        Only runs in which this model took part.

    Raises
    ------
    UsageError
        If the sort of rows, the kind, the store or the study is unknown.
    """
    if what not in ROWS:
        raise unknown_name("sort of rows", what, ROWS)
    if kind is not None:
        EXPERIMENTS.get(kind)
    with Store(store, read_only=True) as database:
        if study is not None:
            study_record(database, study)
        return frame(database, what, chosen_runs(database, kind=kind, study=study, model=model))


def report(
    study: str | None = None,
    *,
    out: str | Path,
    kind: str | None = None,
    allow_mixed: bool = False,
    store: str | None = None,
) -> Path:
    """Write a study's results as one self-contained HTML page, and return its path.

    Parameters
    ----------
    study
        Name of the study; by default the only one in the store.
    out
        The page to write, ``.html``; an existing file is replaced.
    kind
        Report on all runs of this kind of experiment instead; ``"all"`` reports on all runs.
    allow_mixed
        Also if the runs were made with different prompts, rules or code.
    store
        Store, by its URL or file; default ``LABMATES_STORE``, else ``labmates.db``.

    Raises
    ------
    UsageError
        If the study is unknown or has no started runs, or the page can't be written.
    """
    if study is not None and kind is not None:
        raise UsageError("give a study or a kind, not both")
    path = Path(out)
    check_report(path)
    with Store(store, must_exist=True) as database:
        if kind is None:
            made = study_report(database, study, allow_mixed=allow_mixed)
        else:
            kind = None if kind == "all" else EXPERIMENTS.get(kind).name
            made = store_report(database, kind=kind, allow_mixed=allow_mixed)
    write_report(made, path)
    return path


@blocking
async def judge(
    runs: Sequence[str],
    judges: Sequence[str] = ALWAYS,
    *,
    extractor: str | None = None,
    again: bool = False,
    store: str | None = None,
    models: ModelOptions | Mapping[str, Any] | None = None,
) -> list[Judged]:
    """Let judges score ended runs, without executing them again, and return the added scores of each run.

    Parameters
    ----------
    runs
        Ids.
    judges
        Models as ``provider:name`` (they judge by rubrics), names of registered judges, and your own judges as
        ``path/to/file.py:Class``.
    extractor
        Model that extracts findings from a report without a findings block; by default the first judge model.
    again
        Let judges score runs again that they have scored before.
    models
        How the judges' models are reached (`ModelOptions`).

    Raises
    ------
    UsageError
        If an argument is invalid or a model can't be reached.
    """
    with explaining():
        options = models if isinstance(models, ModelOptions) else ModelOptions.model_validate(models or {})
    asked = RunSettings(models=options, judges=tuple(map(registered_name, judges)), extractor=extractor)
    asked = asked.resolved(Catalog(options))
    panel = make_panel(asked.judges, asked.extractor, always=())
    with await asyncio.to_thread(Store, store, must_exist=True) as database:
        chosen = await asyncio.to_thread(select_runs, database, runs)
        return await judge_runs(database, judgeable(chosen, strict=True), panel, asked.models, again=again)


ajudge = awaitable(judge)
"""`judge` as a coroutine, for programs that run an event loop."""
