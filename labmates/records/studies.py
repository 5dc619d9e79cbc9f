"""What the store knows of studies: their plans, and how far their runs have come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from labmates.errors import unknown_name
from labmates.records import schema
from labmates.records.claims import committed
from labmates.records.run import RunRecord
from labmates.records.store import Store, run_row

_RUNS, _STUDIES = schema.runs, schema.studies


@dataclass(frozen=True)
class StudyRecord:
    """A study as it stands in the store.

    Attributes
    ----------
    spec
        Its plan, as JSON data.
    cap
        What it may spend in all, in micro-dollars; None for no limit.
    created
        Unix time in seconds.
    """

    name: str
    spec: dict[str, Any]
    cap: int | None
    created: float


@dataclass(frozen=True)
class Counts:
    """How far a study has come.

    Attributes
    ----------
    runs
        Number of runs by status.
    spent
        What it has cost, in micro-dollars.
    committed
        The same, with what the runs that go on may still spend.
    next_cost
        The least that a run which waits may cost, in micro-dollars; None if none waits.
    workers
        Number of runs that each worker holds.
    """

    runs: Mapping[str, int]
    spent: int = 0
    committed: int = 0
    next_cost: int | None = None
    workers: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of all runs."""
        return sum(self.runs.values())

    def of(self, *statuses: str) -> int:
        """Return the number of runs in these states."""
        return sum(self.runs.get(status, 0) for status in statuses)


def enter_study(store: Store, study: StudyRecord, runs: Sequence[tuple[RunRecord, int]]) -> int:
    """Enter a study, or what it has grown by since it was entered, and return how many runs are new.

    Parameters
    ----------
    runs
        The study's runs in the order in which they are to be begun, each with the most that it may cost, in
        micro-dollars. Those that are there already stay as they are, but for their place.
    """
    rows = [{**run_row(run), "place": place, "most": most} for place, (run, most) in enumerate(runs)]

    def write(connection: sa.Connection) -> int:
        database = store.database
        values = {"spec": study.spec, "cap": study.cap}
        database.insert_new(connection, _STUDIES, [{"name": study.name, "created": study.created, **values}])
        connection.execute(sa.update(_STUDIES).where(_STUDIES.c.name == study.name).values(values))
        known = sa.select(_RUNS.c.key, _RUNS.c.replicate, _RUNS.c.place).where(_RUNS.c.study == study.name)
        places = {(row.key, row.replicate): row.place for row in connection.execute(known)}
        moved = [
            {"of": study.name, "k": row["key"], "r": row["replicate"], "p": row["place"]}
            for row in rows
            if places.get((row["key"], row["replicate"]), row["place"]) != row["place"]
        ]
        if moved:
            mine = (_RUNS.c.study == sa.bindparam("of"), _RUNS.c.key == sa.bindparam("k"))
            update = sa.update(_RUNS).where(*mine, _RUNS.c.replicate == sa.bindparam("r"))
            connection.execute(update.values(place=sa.bindparam("p")), moved)
        new = [row for row in rows if (row["key"], row["replicate"]) not in places]
        return database.insert_new(connection, _RUNS, new)

    return store.database.write(write)


def study_record(store: Store, name: str) -> StudyRecord:
    """Return a study of the store.

    Raises
    ------
    UsageError
        If there is none of this name.
    """

    def read(connection: sa.Connection) -> tuple[Any, list[str]]:
        row = connection.execute(sa.select(_STUDIES).where(_STUDIES.c.name == name)).one_or_none()
        return row, list(connection.execute(sa.select(_STUDIES.c.name)).scalars()) if row is None else []

    row, known = store.database.read(read)
    if row is None:
        raise unknown_name("study", name, known)
    return StudyRecord(row.name, row.spec, row.cap, row.created)


def study_names(store: Store) -> list[str]:
    """Return the names of the studies in the store, newest first."""
    query = sa.select(_STUDIES.c.name).order_by(_STUDIES.c.created.desc())
    return store.database.read(lambda connection: list(connection.execute(query).scalars()))


def study_counts(store: Store, name: str) -> Counts:
    """Return how far a study has come."""

    def read(connection: sa.Connection) -> Counts:
        mine = _RUNS.c.study == name
        by_status = sa.select(_RUNS.c.status, sa.func.count(), sa.func.sum(_RUNS.c.spent)).where(mine)
        rows = connection.execute(by_status.group_by(_RUNS.c.status)).all()
        held = sa.select(_RUNS.c.worker, sa.func.count()).where(mine, _RUNS.c.status == "running")
        waits = sa.select(sa.func.min(_RUNS.c.most - _RUNS.c.spent)).where(
            mine, _RUNS.c.status.in_(("planned", "interrupted"))
        )
        return Counts(
            runs={row[0]: row[1] for row in rows},
            spent=int(sum(row[2] for row in rows)),
            committed=committed(connection, name),
            next_cost=connection.execute(waits).scalar_one(),
            workers={str(row[0]): row[1] for row in connection.execute(held.group_by(_RUNS.c.worker))},
        )

    return store.database.read(read)


def retry_failed(store: Store, name: str) -> int:
    """Put the failed runs of a study back into its queue and return how many they are.

    They go on where they stopped; why they failed stays in the list of their attempts.
    """
    failed = sa.and_(_RUNS.c.study == name, _RUNS.c.status == "failed")
    back = sa.update(_RUNS).where(failed).values(status="interrupted")
    return store.database.write(lambda connection: connection.execute(back).rowcount)
