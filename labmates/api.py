"""The verbs of the command line as functions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from labmates.errors import UsageError, explain
from labmates.records.run import RunRecord
from labmates.records.store import DEFAULT_STORE, Store
from labmates.records.view import runs_frame
from labmates.studies.session import Session, new_runs
from labmates.studies.settings import RunSettings
from labmates.workflows.kinds import KINDS, Condition

if TYPE_CHECKING:
    import pandas as pd


def store_url(store: str | None = None) -> str:
    """Return the URL of the store: the given one, else ``LABMATES_STORE``, else a file in the working directory."""
    return store or os.environ.get("LABMATES_STORE") or DEFAULT_STORE


def make_condition(kind: str, values: Mapping[str, Any], names: Callable[[str], str] = str) -> Condition:
    """Return the condition of a kind of experiment; `names` is how fields are called in an error.

    Raises
    ------
    UsageError
        If the kind is unknown, or a value is missing, unknown or out of bounds.
    """
    try:
        return KINDS.get(kind).condition.model_validate(dict(values))
    except ValidationError as error:
        raise UsageError(explain(error, names)) from error


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
    try:
        chosen = settings if isinstance(settings, RunSettings) else RunSettings.model_validate(settings or {})
    except ValidationError as error:
        raise UsageError(explain(error)) from error
    if replicates < 1:
        raise UsageError("replicates must be at least 1")
    runs = new_runs(make_condition(kind, condition), seed=seed, replicates=replicates, settings=chosen)
    database = await asyncio.to_thread(Store, store_url(store))
    try:
        return await Session(database, chosen).execute(runs)
    finally:
        database.close()


def load_runs(store: str | None = None, *, kind: str | None = None) -> pd.DataFrame:
    """Return all runs of a store as a data frame, one row each.

    Columns are those of the run; parameters, metrics, usage and budget stand as ``condition.task``,
    ``metrics.accuracy`` and so on. Scores of each judge: `labmates.records.view.scores_frame`.
    """
    database = Store(store_url(store), must_exist=True)
    try:
        return runs_frame(database, kind=kind)
    finally:
        database.close()
