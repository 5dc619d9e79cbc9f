"""Studies in the store: their plans and the progress of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from labmates.errors import UsageError, unknown_name
from labmates.records import schema
from labmates.records.database import Database
from labmates.records.run import ENDED, PAUSED, WORKED

_RUNS, _STUDIES = schema.runs, schema.studies

_MOST_PAUSES = 20
WAITING: Final = ("planned", "interrupted")
"""States of a study's runs that wait for a worker."""
_MAY_SPEND = sa.case(
    (sa.and_(_RUNS.c.status == "running", _RUNS.c.most > _RUNS.c.spent), _RUNS.c.most), else_=_RUNS.c.spent
)


@dataclass(frozen=True)
class Amount:
    """Numbers of runs, studies and cached replies of models that are copied or deleted."""

    runs: int = 0
    studies: int = 0
    replies: int = 0


@dataclass(frozen=True)
class StudyRecord:
    """A study in the store.

    `spec` is the plan as JSON data; `cap` the spending cap in micro-dollars (None: unlimited); `created` a Unix time.
    """

    name: str
    spec: dict[str, Any]
    cap: int | None
    created: float


@dataclass(frozen=True)
class Counts:
    """The progress of a study."""

    runs: Mapping[str, int]  # number of runs by status
    spent: int = 0  # cost so far, in micro-dollars
    committed: int = 0  # cost so far, plus the possible further cost of running runs, in micro-dollars
    next_cost: int | None = None  # smallest remaining bound of a waiting run, in micro-dollars; None if no run waits
    workers: Mapping[str, int] = field(default_factory=dict)  # number of runs by worker
    invalid: int = 0  # number of ended, invalid runs
    idle: int = 0  # number of ended runs without work

    def cannot_go_on(self, cap: int | None) -> bool:
        """Whether runs wait, but `cap` (micro-dollars) can't pay any of them."""
        return cap is not None and self.next_cost is not None and self.committed + max(0, self.next_cost) > cap

    def overspent(self, cap: int | None) -> int:
        """The excess of the cost over `cap`, in micro-dollars; 0 if none."""
        return 0 if cap is None else max(0, self.spent - cap)

    @property
    def total(self) -> int:
        """Number of all runs."""
        return sum(self.runs.values())

    def of(self, *statuses: str) -> int:
        """The number of runs in these states."""
        return sum(self.runs.get(status, 0) for status in statuses)


def uncertain_cost(database: Database, name: str) -> int:
    """The part of a study's cost for attempts whose bill is unknown, in micro-dollars, without runs in progress."""
    query = sa.select(sa.func.sum(_RUNS.c.usage["uncertain"].as_integer())).where(_RUNS.c.study == name)
    return int(database.read(lambda connection: connection.execute(query).scalar()) or 0)


def study_record(database: Database, name: str | None) -> StudyRecord:
    """A study in the store; without a name, the only one.

    Raises `UsageError` if the study is missing, or the name is missing among several studies.
    """

    def read(connection: sa.Connection) -> tuple[Any, list[str]]:
        known = list(connection.execute(sa.select(_STUDIES.c.name)).scalars())
        wanted = known[0] if name is None and len(known) == 1 else name
        return connection.execute(sa.select(_STUDIES).where(_STUDIES.c.name == wanted)).one_or_none(), known

    row, known = database.read(read)
    if row is not None:
        return StudyRecord(row.name, row.spec, row.cap, row.created)
    if name is not None:
        raise unknown_name("study", name, known)
    if known:
        raise UsageError(f"name a study of {database.shown_url}: {', '.join(known)}")
    raise UsageError(f"no study in {database.shown_url}; start one with: labmates study run FILE")


def study_records(database: Database) -> list[StudyRecord]:
    """All studies in the store, sorted by name."""
    query = sa.select(_STUDIES).order_by(_STUDIES.c.name)
    rows = database.rows(query)
    return [StudyRecord(row.name, row.spec, row.cap, row.created) for row in rows]


def study_counts(database: Database, name: str) -> Counts:
    """The progress of a study."""

    def read(connection: sa.Connection) -> Counts:
        of = [_RUNS.c.status, sa.func.count(), sa.func.sum(_RUNS.c.spent), sa.func.sum(_MAY_SPEND)]
        least = sa.func.min(_RUNS.c.most - _RUNS.c.spent)
        invalid = sa.func.count(_RUNS.c.invalid)
        idle = sa.func.sum(sa.case((_RUNS.c.metrics[WORKED].as_float() == 0, 1), else_=0))
        mine = _RUNS.c.study == name
        rows = connection.execute(sa.select(*of, least, invalid, idle).where(mine).group_by(_RUNS.c.status)).all()
        held = sa.select(_RUNS.c.worker, sa.func.count()).where(mine, _RUNS.c.status == "running")
        return Counts(
            runs={row[0]: row[1] for row in rows},
            spent=int(sum(row[2] for row in rows)),
            committed=int(sum(row[3] for row in rows)),
            next_cost=min((row[4] for row in rows if row[0] in WAITING), default=None),
            workers={str(row[0]): row[1] for row in connection.execute(held.group_by(_RUNS.c.worker))},
            invalid=sum(row[5] for row in rows),
            idle=int(sum(row[6] for row in rows)),
        )

    return database.read(read)


def kinds_of(database: Database, name: str) -> list[str]:
    """The kinds of a study's started runs."""
    query = sa.select(_RUNS.c.kind).where(_RUNS.c.study == name, _RUNS.c.status != "planned").distinct()
    return database.read(lambda connection: list(connection.execute(query.order_by(_RUNS.c.kind)).scalars()))


def failure_reasons(database: Database, name: str, most: int) -> list[tuple[str, int]]:
    """Errors of a study's failed runs, with the number of runs, most frequent first."""
    return _reasons(database, _RUNS.c.error, sa.and_(_RUNS.c.study == name, _RUNS.c.status == "failed"), most)


def pauses(database: Database, name: str) -> list[tuple[str, int]]:
    """When to resume a study's paused runs, and why they are paused, with the number of runs."""
    paused = sa.and_(_RUNS.c.status == "interrupted", _RUNS.c.error.startswith(PAUSED))
    found = _reasons(database, _RUNS.c.error, sa.and_(_RUNS.c.study == name, paused), _MOST_PAUSES)
    return [(reason.removeprefix(PAUSED), number) for reason, number in found]


def invalid_reasons(database: Database, name: str, most: int) -> list[tuple[str, int]]:
    """Reasons of a study's invalid runs, with the number of runs, most frequent first."""
    return _reasons(database, _RUNS.c.invalid, sa.and_(_RUNS.c.study == name, _RUNS.c.invalid.is_not(None)), most)


def unusable_replies(database: Database, name: str, most: int) -> list[tuple[str, int]]:
    """Why replies in a study's invalid runs could not be used, with their number, most frequent first."""
    events = schema.events.c
    runs = sa.select(_RUNS.c.id).where(_RUNS.c.study == name, _RUNS.c.invalid.is_not(None))
    chosen = sa.and_(events.type == "failed_reply", events.run.in_(runs))
    return _reasons(database, events.data["reason"].as_string(), chosen, most)


def _reasons(
    database: Database, column: sa.ColumnElement[Any], chosen: sa.ColumnElement[bool], most: int
) -> list[tuple[str, int]]:
    number = sa.func.count()
    query = sa.select(column, number).where(chosen).group_by(column).order_by(number.desc(), column).limit(most)
    rows = database.rows(query)
    return [(row[0] or "", row[1]) for row in rows]


def retry_failed(database: Database, name: str) -> int:
    """Requeue the failed runs of a study and return their number; their errors stay in the list of attempts."""
    failed = sa.and_(_RUNS.c.study == name, _RUNS.c.status == "failed")
    back = sa.update(_RUNS).where(failed).values(status="interrupted")
    return database.write(lambda connection: connection.execute(back).rowcount)


def ended_replicates(database: Database, name: str) -> set[tuple[str, int]]:
    """Condition key and replicate number of a study's ended runs."""
    query = sa.select(_RUNS.c.key, _RUNS.c.replicate).where(_RUNS.c.study == name, _RUNS.c.status.in_(ENDED))
    rows = database.rows(query)
    return {(row.key, row.replicate) for row in rows}


def committed(connection: sa.Connection, study: str) -> int:
    """The cost of a study plus the possible further cost of its running runs, in micro-dollars."""
    query = sa.select(sa.func.coalesce(sa.func.sum(_MAY_SPEND), 0)).where(_RUNS.c.study == study)
    return int(connection.execute(query).scalar_one())
