"""The verbs of the command line as functions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from labmates.analysis.agreement import Agreement, agreement, ratings_frame
from labmates.analysis.profiles import Profile, profiles
from labmates.analysis.teamwork import Teamwork, judged_runs, teamwork
from labmates.errors import LabmatesError, UsageError, explain
from labmates.judges.panel import ALWAYS, make_panel
from labmates.models.options import ModelOptions
from labmates.records.frames import Rows, frame
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.records.studies import study_record
from labmates.reports.report import check_report, store_report, study_report, write_report
from labmates.studies.judging import Judged, judge_runs, judgeable
from labmates.studies.profiling import SIMULATIONS, missing_runs, profile_conditions, profile_games, profile_runs
from labmates.studies.runs import new_runs
from labmates.studies.select import select_runs
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.kinds import KINDS, make_condition

if TYPE_CHECKING:
    import pandas as pd


def run(
    kind: str,
    *,
    seed: int = 0,
    replicates: int = 1,
    store: str | None = None,
    settings: RunSettings | Mapping[str, Any] | None = None,
    **condition: Any,
) -> list[RunRecord]:
    """Execute a condition and return the runs as they ended.

    Parameters
    ----------
    kind
        Kind of experiment, for instance ``"science"``.
    seed
        Seed of the first replicate; replicate r has ``seed + r``.
    replicates
        Number of runs.
    store
        URL of the store; default ``LABMATES_STORE``, else ``sqlite:///labmates.db``.
    settings
        How models are reached and where code runs (`RunSettings`).
    **condition
        Parameters of the condition, for instance ``task="ecology", model="scripted:diligent"``.

    Raises
    ------
    UsageError
        If anything asked for can't be.

    Examples
    --------
    >>> import labmates
    >>> [run] = labmates.run("science", task="ecology", model="scripted:diligent")  # doctest: +SKIP
    >>> run.metrics["accuracy"]  # doctest: +SKIP
    """
    return asyncio.run(arun(kind, seed=seed, replicates=replicates, store=store, settings=settings, **condition))


async def arun(
    kind: str,
    *,
    seed: int = 0,
    replicates: int = 1,
    store: str | None = None,
    settings: RunSettings | Mapping[str, Any] | None = None,
    **condition: Any,
) -> list[RunRecord]:
    """Do what `run` does, in a running event loop."""
    chosen = _settings(settings)
    runs = new_runs(make_condition(kind, condition), seed=seed, replicates=replicates, settings=chosen)
    with await asyncio.to_thread(Store, store) as database:
        return await Session(database, chosen).execute(runs)


def profile(
    models: Sequence[str],
    *,
    games: Sequence[str] = (),
    simulations: int = SIMULATIONS,
    seed: int = 0,
    store: str | None = None,
    settings: RunSettings | Mapping[str, Any] | None = None,
    **options: Any,
) -> list[Profile]:
    """Return how models play the behavioural games; simulations that the store lacks are played and kept.

    Parameters
    ----------
    models
        As ``provider:name``.
    games
        Names; by default our six.
    simulations
        Of each game.
    seed
        Seed of the first simulation.
    store
        URL of the store; default ``LABMATES_STORE``, else ``sqlite:///labmates.db``.
    settings
        How models are reached (`RunSettings`).
    **options
        Parameters of the games' condition, for instance ``group_size=3, reasoning="tom"``.

    Raises
    ------
    UsageError
        If anything asked for can't be.
    LabmatesError
        If a simulation failed; the others are in the store.
    """
    chosen = _settings(settings)
    try:
        conditions = profile_conditions(models, games or profile_games(), options)
    except ValidationError as error:
        raise UsageError(explain(error)) from error
    if simulations < 1:
        raise UsageError("simulations must be at least 1")
    with Store(store) as database:
        missing = missing_runs(database, conditions, simulations, chosen, seed=seed)
        ended = asyncio.run(Session(database, chosen).execute(missing)) if missing else []
        if failed := [run for run in ended if run.status not in ENDED]:
            raise LabmatesError(f"{len(failed)} of {len(ended)} simulations failed: {failed[0].error}")
        runs = profile_runs(database, conditions, simulations)
        return profiles(runs, database.costs([run.id for run in runs]))


def _settings(settings: RunSettings | Mapping[str, Any] | None) -> RunSettings:
    try:
        return settings if isinstance(settings, RunSettings) else RunSettings.model_validate(settings or {})
    except ValidationError as error:
        raise UsageError(explain(error)) from error


def load_runs(
    store: str | None = None, *, kind: str | None = None, study: str | None = None, model: str | None = None
) -> pd.DataFrame:
    """Return the runs of a store as a data frame, one row each; see `labmates.records.frames.frame` for the columns.

    Parameters
    ----------
    store
        URL of the store; default ``LABMATES_STORE``, else ``sqlite:///labmates.db``.
    kind, study
        Runs of this kind of experiment, of this study.
    model
        Runs with this model among theirs.

    Raises
    ------
    UsageError
        If there is no such store, or it has no such study.
    """
    return _frame("runs", store, kind, study, model)


def load_scores(
    store: str | None = None, *, kind: str | None = None, study: str | None = None, model: str | None = None
) -> pd.DataFrame:
    """Return every judge's scores, and the means over model judges, one row each; arguments as for `load_runs`."""
    return _frame("scores", store, kind, study, model)


def load_players(
    store: str | None = None, *, kind: str | None = None, study: str | None = None, model: str | None = None
) -> pd.DataFrame:
    """Return the agents of each run with what they used, decided and earned; arguments as for `load_runs`."""
    return _frame("players", store, kind, study, model)


def load_decisions(
    store: str | None = None, *, kind: str | None = None, study: str | None = None, model: str | None = None
) -> pd.DataFrame:
    """Return what players decided, one row for each decision; arguments as for `load_runs`."""
    return _frame("decisions", store, kind, study, model)


def load_payoffs(
    store: str | None = None, *, kind: str | None = None, study: str | None = None, model: str | None = None
) -> pd.DataFrame:
    """Return what players earned, one row for each player and round; arguments as for `load_runs`."""
    return _frame("payoffs", store, kind, study, model)


def load_events(
    store: str | None = None, *, kind: str | None = None, study: str | None = None, model: str | None = None
) -> pd.DataFrame:
    """Return everything that happened, one row for each event; arguments as for `load_runs`."""
    return _frame("events", store, kind, study, model)


def _frame(what: Rows, store: str | None, kind: str | None, study: str | None, model: str | None) -> pd.DataFrame:
    with Store(store, must_exist=True) as database:
        if study is not None:
            study_record(database.database, study)
        return frame(database, what, kind=kind, study=study, model=model)


def report(study: str | None = None, *, out: str | Path, kind: str | None = None, store: str | None = None) -> Path:
    """Write what a study has brought as one HTML page that loads nothing from elsewhere, and return where it is.

    Parameters
    ----------
    study
        Its name; without one, the only study in the store.
    out
        The page to write, ``.html``; one that is there is replaced.
    kind
        Report on all runs of this kind of experiment instead, or with ``"all"`` on all runs.
    store
        URL of the store; default ``LABMATES_STORE``, else ``sqlite:///labmates.db``.

    Raises
    ------
    UsageError
        If there is no such study, nothing of it was begun, or the page can't be written.
    """
    if study is not None and kind is not None:
        raise UsageError("a report is of one study or of one kind")
    path = Path(out)
    check_report(path)
    with Store(store, must_exist=True) as database:
        if kind is None:
            made = study_report(database, study)
        else:
            made = store_report(database, kind=None if kind == "all" else KINDS.get(kind).name)
    write_report(made, path)
    return path


def judge(
    runs: Sequence[str],
    judges: Sequence[str] = ALWAYS,
    *,
    extractor: str | None = None,
    again: bool = False,
    store: str | None = None,
    models: ModelOptions | Mapping[str, Any] | None = None,
) -> list[Judged]:
    """Let judges score runs that have ended, without executing them again, and return what was added to each.

    Parameters
    ----------
    runs
        Ids.
    judges
        Models as ``provider:name``, which judge by rubrics, and names of registered judges.
    extractor
        Model that reads findings out of a report without a findings block; by default the first model among the judges.
    again
        Let judges that have scored a run score it once more.
    models
        How the judges' models are reached (`ModelOptions`).

    Raises
    ------
    UsageError
        If anything asked for can't be.
    """
    return asyncio.run(ajudge(runs, judges, extractor=extractor, again=again, store=store, models=models))


async def ajudge(
    runs: Sequence[str],
    judges: Sequence[str] = ALWAYS,
    *,
    extractor: str | None = None,
    again: bool = False,
    store: str | None = None,
    models: ModelOptions | Mapping[str, Any] | None = None,
) -> list[Judged]:
    """Do what `judge` does, in a running event loop."""
    try:
        options = models if isinstance(models, ModelOptions) else ModelOptions.model_validate(models or {})
    except ValidationError as error:
        raise UsageError(explain(error)) from error
    panel = make_panel(judges, extractor, always=())
    with await asyncio.to_thread(Store, store, must_exist=True) as database:
        chosen = await asyncio.to_thread(select_runs, database, runs)
        return await judge_runs(database, judgeable(chosen, strict=True), panel, options, again=again)


def load_agreement(store: str | None = None, *, kind: str | None = None) -> list[Agreement]:
    """Return how well the judges of a store agree, by metric and task; see `labmates.analysis.agreement`."""
    with Store(store, must_exist=True) as database:
        return agreement(ratings_frame(database, list(database.runs(kind=kind))))


def load_teamwork(store: str | None = None, *, kind: str = "science") -> Teamwork:
    """Return the runs of teams in a store beside those of one agent alone; see `labmates.analysis.teamwork`."""
    with Store(store, must_exist=True) as database:
        return teamwork(judged_runs(database, list(database.runs(kind=kind))), KINDS.get(kind).domains)
