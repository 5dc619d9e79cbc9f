"""Deletion of runs and cached replies."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.claims import is_lost
from labmates.records.database import Database
from labmates.records.listing import Chosen, conditions
from labmates.records.studies import Amount, study_record

_RUNS, _STUDIES = schema.runs, schema.studies


def prune(database: Database, chosen: Chosen | None, *, replies: bool, dry_run: bool = False) -> Amount:
    """Delete runs with all their rows, in one transaction, and return the numbers.

    Parameters
    ----------
    chosen
        The runs; None for none. A study as the only filter is deleted with its plan.
    replies
        Delete the cached replies of models.
    dry_run
        Only count.

    Raises
    ------
    UsageError
        If the status or the study is unknown, no runs match, or a worker holds one of the runs.
    """
    where = sa.false() if chosen is None else sa.and_(sa.true(), *conditions(chosen, is_sqlite=database.is_sqlite))
    is_whole_study = chosen is not None and bool(chosen.study) and chosen == Chosen(study=chosen.study)

    if chosen is not None and chosen.study:
        study_record(database, chosen.study)

    def count(connection: sa.Connection) -> Amount:
        _refuse_working(database, connection, where)
        runs = _count(connection, _RUNS, where)
        if chosen is not None and not runs and not is_whole_study:
            raise UsageError("no runs match these filters")
        return Amount(runs, int(is_whole_study), _count(connection, schema.calls, sa.true()) if replies else 0)

    def delete(connection: sa.Connection) -> None:
        connection.execute(sa.select(_RUNS.c.id).where(where).with_for_update())  # no worker can claim one meanwhile
        _refuse_working(database, connection, where)
        connection.execute(sa.delete(_RUNS).where(where))
        if chosen is not None and is_whole_study:
            connection.execute(sa.delete(_STUDIES).where(_STUDIES.c.name == chosen.study))
        if replies:
            connection.execute(sa.delete(schema.calls))

    pruned = database.read(count)
    if not dry_run:
        database.write(delete)
    return pruned


def _refuse_working(database: Database, connection: sa.Connection, where: sa.ColumnElement[bool]) -> None:
    query = sa.select(_RUNS.c.id, _RUNS.c.worker, _RUNS.c.lease).where(where, _RUNS.c.status == "running")
    now = database.now(connection)
    for row in connection.execute(query):
        if not is_lost(row.worker, row.lease, now):
            raise UsageError(f"run {row.id} is running in {row.worker}: stop that first")


def _count(connection: sa.Connection, table: Any, where: sa.ColumnElement[bool]) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(table).where(where)).scalar_one())
