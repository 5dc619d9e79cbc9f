"""Copying runs into a new store, in SQLite or PostgreSQL alike.

Rows are copied as stored, a few hundred at a time, in one transaction of the target. The source is read in one
snapshot, even while workers write to it. A run that a worker holds is interrupted in the copy and can be resumed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Final

import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.database import Database
from labmates.records.studies import Amount, study_record

_RUNS, _STUDIES = schema.runs, schema.studies
_BATCH: Final = 200

Watch = Callable[[int, int], None]
"""Receives the number of copied runs, and of all."""


def copy_store(
    source: str, target: str, *, study: str | None = None, runs: Sequence[str] = (), watch: Watch | None = None
) -> Amount:
    """Copy a store, one study or some runs, with their studies' plans, into an empty or new store.

    A target in SQLite ends as a single file, which can be read even in a read-only folder.

    Parameters
    ----------
    source, target
        URLs of the stores.
    study
        Only this study.
    runs
        Only the runs with these ids.

    Raises
    ------
    UsageError
        If a store can't be opened, the study or a run is missing, or the target has runs or studies.
    """
    with (
        Database(source, read_only=True) as origin,
        origin.reading(snapshot=True) as reading,
        Database(target) as goal,
    ):
        if study is not None:
            study_record(origin, study)
        known = set(reading.execute(sa.select(_RUNS.c.id).where(_RUNS.c.id.in_(runs))).scalars())
        if missing := [run for run in runs if run not in known]:
            raise UsageError(f"there is no run '{missing[0]}' in the store {origin.shown_url}")
        for column, name in ((_RUNS.c.id, "run"), (_STUDIES.c.name, "study")):
            for row in goal.rows(sa.select(column).limit(1)):
                raise UsageError(
                    f"the store {goal.shown_url} is not empty: it holds the {name} '{row[0]}'; copy into a new store"
                )
        of_study = sa.true() if study is None else _RUNS.c.study == study
        chosen = sa.and_(of_study, _RUNS.c.id.in_(runs)) if runs else of_study
        is_whole = study is None and not runs
        copied = goal.write(lambda writing: _copy(reading, writing, goal, chosen, is_whole, watch))
    if path := goal.sqlite_path:
        with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.OperationalError):  # somebody reads it
            connection.execute("PRAGMA journal_mode=DELETE")  # without a log beside it, which readers would write
    return copied


def _copy(
    reading: sa.Connection,
    writing: sa.Connection,
    goal: Database,
    chosen: sa.ColumnElement[bool],
    is_whole: bool,
    watch: Watch | None,
) -> Amount:
    def copy(table: sa.Table, which: sa.ColumnElement[bool], change: Callable[[Mapping[Any, Any]], Any] = dict) -> int:
        count = 0
        with reading.execute(sa.select(table).where(which), execution_options={"yield_per": _BATCH}) as rows:
            for part in rows.partitions():
                count += goal.insert_new(writing, table, [change(row._mapping) for row in part])
                if table is _RUNS and watch is not None:
                    watch(count, total)
        return count

    total = reading.execute(sa.select(sa.func.count()).select_from(_RUNS).where(chosen)).scalar_one()
    written = copy(_RUNS, chosen, _at_rest)
    for table in schema.OF_RUNS:
        copy(table, sa.true() if is_whole else table.c.run.in_(sa.select(_RUNS.c.id).where(chosen)))
    named = sa.true() if is_whole else _STUDIES.c.name.in_(sa.select(_RUNS.c.study).where(chosen))
    return Amount(written, copy(_STUDIES, named), copy(schema.calls, sa.true()) if is_whole else 0)


def _at_rest(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The columns of a run in a copy, where no worker holds it."""
    values = dict(row)
    if values["status"] == "running":
        values |= {"status": "interrupted", "error": "interrupted"}
    return {**values, "worker": None, "lease": None}
