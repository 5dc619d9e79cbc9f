"""Deletion of runs and cached replies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from labmates.errors import UsageError, unknown_name
from labmates.records import schema
from labmates.records.claims import is_lost
from labmates.records.database import Database
from labmates.records.listing import STATUSES, Chosen, conditions

_RUNS, _STUDIES = schema.runs, schema.studies
_BATCH = 200

Watch = Callable[[int, int], None]


@dataclass(frozen=True)
class Pruned:
    """Numbers of deleted runs and studies, or of those to delete.

    Attributes
    ----------
    replies
        Cached replies of models.
    """

    runs: int = 0
    studies: int = 0
    replies: int = 0


def count_prunable(database: Database, chosen: Chosen | None, *, replies: bool) -> Pruned:
    """The runs and studies that `prune` would delete.

    Raises
    ------
    UsageError
        If a run or the study is unknown, or a worker holds one of the runs.
    """

    def read(connection: sa.Connection) -> Pruned:
        number = 0 if chosen is None else _checked(database, connection, chosen)
        kept = _count(connection, schema.calls, sa.true()) if replies else 0
        return Pruned(number, int(chosen is not None and _is_whole_study(chosen)), kept)

    return database.read(read)


def prune(database: Database, chosen: Chosen | None, *, replies: bool, watch: Watch | None = None) -> Pruned:
    """Delete runs with all their rows, a few hundred per transaction; an interrupted deletion can be repeated.

    Parameters
    ----------
    chosen
        The runs; None for none.
    replies
        Delete the cached replies of models.

    Raises
    ------
    UsageError
        If a run or the study is unknown, or a worker holds one of the runs.
    """
    total = count_prunable(database, chosen, replies=False).runs
    done = 0
    while chosen is not None and (number := database.write(lambda connection: _delete(database, connection, chosen))):
        done += number
        if watch is not None:
            watch(done, total)

    def rest(connection: sa.Connection) -> Pruned:
        studies = kept = 0
        if chosen is not None and _is_whole_study(chosen):
            studies = connection.execute(sa.delete(_STUDIES).where(_STUDIES.c.name == chosen.study)).rowcount
        if replies:
            kept = connection.execute(sa.delete(schema.calls)).rowcount
        return Pruned(done, studies, kept)

    return database.write(rest)


def _checked(database: Database, connection: sa.Connection, chosen: Chosen) -> int:
    """The number of chosen runs.

    Raises
    ------
    UsageError
        If a run or the study is unknown, or a worker holds one of the runs.
    """
    if chosen.status and chosen.status not in STATUSES:
        raise unknown_name("status", chosen.status, STATUSES)
    if chosen.study:
        known = list(connection.execute(sa.select(_STUDIES.c.name).order_by(_STUDIES.c.name)).scalars())
        if chosen.study not in known:
            raise unknown_name("study", chosen.study, known)
    for run_id in chosen.ids:
        if connection.execute(sa.select(_RUNS.c.id).where(_RUNS.c.id == run_id)).one_or_none() is None:
            raise UsageError(f"there is no run '{run_id}' in the store {database.shown_url}")
    _refuse_working(database, connection, _where(database, chosen))
    number = _count(connection, _RUNS, _where(database, chosen))
    if not number and not _is_whole_study(chosen):
        raise UsageError("no runs match these filters")
    return number


def _is_whole_study(chosen: Chosen) -> bool:
    """Whether a study is deleted with its plan."""
    return bool(chosen.study) and chosen == Chosen(study=chosen.study)


def _where(database: Database, chosen: Chosen) -> sa.ColumnElement[bool]:
    return sa.and_(sa.true(), *conditions(chosen, is_sqlite=database.is_sqlite))


def _refuse_working(database: Database, connection: sa.Connection, where: sa.ColumnElement[bool]) -> None:
    query = sa.select(_RUNS.c.id, _RUNS.c.worker, _RUNS.c.lease).where(where, _RUNS.c.status == "running")
    now = database.now(connection)
    for row in connection.execute(query):
        if not is_lost(row.worker, row.lease, now):
            raise UsageError(f"run {row.id} is running in {row.worker}: stop that first")


def _delete(database: Database, connection: sa.Connection, chosen: Chosen) -> int:
    query = sa.select(_RUNS.c.id).where(_where(database, chosen)).limit(_BATCH)
    ids = list(connection.execute(query.with_for_update()).scalars())
    _refuse_working(database, connection, _RUNS.c.id.in_(ids))
    return connection.execute(sa.delete(_RUNS).where(_RUNS.c.id.in_(ids))).rowcount if ids else 0


def _count(connection: sa.Connection, table: Any, where: sa.ColumnElement[bool]) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(table).where(where)).scalar_one())
