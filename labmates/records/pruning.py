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
from labmates.records.listing import STATUSES

_RUNS, _STUDIES = schema.runs, schema.studies
_BATCH = 200

Watch = Callable[[int, int], None]


@dataclass(frozen=True)
class Choice:
    """A choice of runs to delete; empty fields match all.

    Attributes
    ----------
    study
        Runs of this study; without further filters, the study's plan is deleted too.
    """

    runs: tuple[str, ...] = ()
    study: str | None = None
    kind: str | None = None
    task: str | None = None
    status: str | None = None

    @property
    def is_whole_study(self) -> bool:
        """Whether a study is deleted with its plan."""
        return self.study is not None and self == Choice(study=self.study)

    def where(self) -> sa.ColumnElement[bool]:
        """The SQL condition of the choice."""
        parts = [_RUNS.c[name] == value for name in ("study", "kind", "status") if (value := getattr(self, name))]
        if self.runs:
            parts.append(_RUNS.c.id.in_(self.runs))
        if self.task is not None:
            parts.append(_RUNS.c.condition["task"].as_string() == self.task)
        return sa.and_(sa.true(), *parts)


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


def count_prunable(database: Database, choice: Choice | None, *, replies: bool) -> Pruned:
    """The runs and studies that `prune` would delete.

    Raises
    ------
    UsageError
        If a run or the study is unknown, or a worker holds one of the runs.
    """

    def read(connection: sa.Connection) -> Pruned:
        number = 0 if choice is None else _checked(database, connection, choice)
        kept = _count(connection, schema.calls, sa.true()) if replies else 0
        return Pruned(number, int(choice is not None and choice.is_whole_study), kept)

    return database.read(read)


def prune(database: Database, choice: Choice | None, *, replies: bool, watch: Watch | None = None) -> Pruned:
    """Delete runs with all their rows, a few hundred per transaction; an interrupted deletion can be repeated.

    Parameters
    ----------
    choice
        The runs; None for none.
    replies
        Delete the cached replies of models.

    Raises
    ------
    UsageError
        If a run or the study is unknown, or a worker holds one of the runs.
    """
    total = count_prunable(database, choice, replies=False).runs
    done = 0
    while choice is not None and (number := database.write(lambda connection: _delete(database, connection, choice))):
        done += number
        if watch is not None:
            watch(done, total)

    def rest(connection: sa.Connection) -> Pruned:
        studies = kept = 0
        if choice is not None and choice.is_whole_study:
            studies = connection.execute(sa.delete(_STUDIES).where(_STUDIES.c.name == choice.study)).rowcount
        if replies:
            kept = connection.execute(sa.delete(schema.calls)).rowcount
        return Pruned(done, studies, kept)

    return database.write(rest)


def _checked(database: Database, connection: sa.Connection, choice: Choice) -> int:
    """The number of chosen runs.

    Raises
    ------
    UsageError
        If a run or the study is unknown, or a worker holds one of the runs.
    """
    if choice.status is not None and choice.status not in STATUSES:
        raise unknown_name("status", choice.status, STATUSES)
    if choice.study is not None:
        known = list(connection.execute(sa.select(_STUDIES.c.name).order_by(_STUDIES.c.name)).scalars())
        if choice.study not in known:
            raise unknown_name("study", choice.study, known)
    for run_id in choice.runs:
        if connection.execute(sa.select(_RUNS.c.id).where(_RUNS.c.id == run_id)).one_or_none() is None:
            raise UsageError(f"there is no run '{run_id}' in the store {database.shown_url}")
    _refuse_working(database, connection, choice.where())
    number = _count(connection, _RUNS, choice.where())
    if not number and not choice.is_whole_study:
        raise UsageError("no runs match these filters")
    return number


def _refuse_working(database: Database, connection: sa.Connection, where: sa.ColumnElement[bool]) -> None:
    query = sa.select(_RUNS.c.id, _RUNS.c.worker, _RUNS.c.lease).where(where, _RUNS.c.status == "running")
    now = database.now(connection)
    for row in connection.execute(query):
        if not is_lost(row.worker, row.lease, now):
            raise UsageError(f"run {row.id} is running in {row.worker}: stop that first")


def _delete(database: Database, connection: sa.Connection, choice: Choice) -> int:
    query = sa.select(_RUNS.c.id).where(choice.where()).limit(_BATCH)
    ids = list(connection.execute(query.with_for_update()).scalars())
    _refuse_working(database, connection, _RUNS.c.id.in_(ids))
    return connection.execute(sa.delete(_RUNS).where(_RUNS.c.id.in_(ids))).rowcount if ids else 0


def _count(connection: sa.Connection, table: Any, where: sa.ColumnElement[bool]) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(table).where(where)).scalar_one())
