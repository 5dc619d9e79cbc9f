"""Copying runs from one store into another, in SQLite or PostgreSQL alike.

Rows are copied as stored, a few hundred at a time, with complete runs in each transaction: after an interruption, the
same call completes the copy. The source is read in one snapshot, even while workers write to it. A run that a worker
holds is interrupted in the copy, and can be resumed there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.database import Database
from labmates.records.digests import Chain
from labmates.records.run import ENDED
from labmates.records.studies import study_record

_RUNS, _STUDIES = schema.runs, schema.studies
BATCH: Final = 200
"""Runs per transaction, and rows per read."""

Watch = Callable[[int, int], None]
"""Receives the number of runs examined, and of all."""


@dataclass(frozen=True)
class Copied:
    """The result of copying.

    Attributes
    ----------
    runs
        Number of written runs.
    present
        Number of runs that the target had already.
    replies
        Number of written cached replies.
    """

    runs: int = 0
    present: int = 0
    studies: int = 0
    replies: int = 0


def copy_store(
    source: str, target: str, *, study: str | None = None, runs: Sequence[str] = (), watch: Watch | None = None
) -> Copied:
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
        If a store can't be opened, the study or a run is missing, or the target has data that the source lacks. An
        interrupted copy is completed.
    """
    with (
        Database(source, read_only=True, verbatim=True) as origin,
        origin.reading(snapshot=True) as reading,
        Database(target, verbatim=True) as goal,
    ):
        if study is not None:
            study_record(origin, study)
        known = set(reading.execute(sa.select(_RUNS.c.id).where(_RUNS.c.id.in_(runs))).scalars())
        if missing := [run for run in runs if run not in known]:
            raise UsageError(f"there is no run '{missing[0]}' in the store {origin.shown_url}")
        _check_room(origin, reading, goal)
        of_study = sa.true() if study is None else _RUNS.c.study == study
        chosen = sa.and_(of_study, _RUNS.c.id.in_(runs)) if runs else of_study
        copied = _copy(reading, goal, chosen, whole=study is None and not runs, watch=watch)
    if goal.is_sqlite:
        path = str(sa.make_url(goal.url).database)
        with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.OperationalError):  # somebody reads it
            connection.execute("PRAGMA journal_mode=DELETE")  # without a log beside it, which readers would write
    return copied


def _check_room(origin: Database, reading: sa.Connection, goal: Database) -> None:
    """Check that the target holds only data of the source."""
    for column, name in ((_RUNS.c.id, "run"), (_STUDIES.c.name, "study")):
        with goal.reading() as there:
            for rows in _streamed(there, sa.select(column)):
                mine = [row[0] for row in rows]
                here = set(reading.execute(sa.select(column).where(column.in_(mine))).scalars())
                if other := [value for value in mine if value not in here]:
                    raise UsageError(
                        f"the store {goal.shown_url} is not empty: it holds the {name} '{other[0]}', which "
                        f"{origin.shown_url} does not; copy into a new store"
                    )


def _copy(
    reading: sa.Connection, goal: Database, chosen: sa.ColumnElement[bool], *, whole: bool, watch: Watch | None
) -> Copied:
    total = reading.execute(sa.select(sa.func.count()).select_from(_RUNS).where(chosen)).scalar_one()
    done = written = 0
    for rows in _streamed(reading, sa.select(_RUNS.c.id, _RUNS.c.chain).where(chosen).order_by(_RUNS.c.id)):
        chains = {row.id: row.chain for row in rows}
        written += goal.write(lambda writing, chains=chains: _write(reading, writing, goal, chains))  # type: ignore[misc]
        done += len(rows)
        if watch is not None:
            watch(done, total)
    named = sa.true() if whole else _STUDIES.c.name.in_(sa.select(_RUNS.c.study).where(chosen))
    plans = [dict(row._mapping) for row in reading.execute(sa.select(_STUDIES).where(named))]

    def write_plans(writing: sa.Connection) -> None:
        writing.execute(sa.delete(_STUDIES).where(_STUDIES.c.name.in_([plan["name"] for plan in plans])))
        goal.insert_new(writing, _STUDIES, plans)

    goal.write(write_plans)
    replies = 0
    for rows in _streamed(reading, sa.select(schema.calls)) if whole else ():
        part = [dict(row._mapping) for row in rows]
        replies += goal.write(lambda writing, part=part: goal.insert_new(writing, schema.calls, part))  # type: ignore[misc]
    return Copied(written, done - written, len(plans), replies)


def _write(reading: sa.Connection, writing: sa.Connection, goal: Database, chains: Mapping[str, str]) -> int:
    """Write the runs that the target lacks, or has unfinished and shorter, and return their number."""
    there = writing.execute(sa.select(_RUNS.c.id, _RUNS.c.status, _RUNS.c.chain).where(_RUNS.c.id.in_(chains))).all()
    shorter = [row.id for row in there if row.status not in (*ENDED, "running") and _is_shorter(row, chains[row.id])]
    writing.execute(sa.delete(_RUNS).where(_RUNS.c.id.in_(shorter)))
    ids = [*(chains.keys() - {row.id for row in there}), *shorter]
    whole = reading.execute(sa.select(_RUNS).where(_RUNS.c.id.in_(ids)))
    goal.insert_new(writing, _RUNS, [_at_rest(row._mapping) for row in whole])
    for table in schema.OF_RUNS:
        for part in _streamed(reading, sa.select(table).where(table.c.run.in_(ids)).order_by(*table.primary_key)):
            goal.insert_new(writing, table, [dict(row._mapping) for row in part])
    return len(ids)


def _is_shorter(row: Any, chain: str) -> bool:
    return Chain.parse(row.chain).events < Chain.parse(chain).events


def _at_rest(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The columns of a run in a copy, where no worker holds it."""
    values = dict(row)
    if values["status"] == "running":
        values |= {"status": "interrupted", "error": "interrupted"}
    return {**values, "worker": None, "lease": None}


def _streamed(connection: sa.Connection, query: sa.Select[Any]) -> Iterator[Sequence[Any]]:
    with connection.execute(query, execution_options={"yield_per": BATCH}) as rows:
        yield from rows.partitions()
