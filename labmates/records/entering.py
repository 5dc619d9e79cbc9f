"""Entering the runs of a study into a store, in short transactions: workers go on meanwhile, and memory stays small.

An entry that was cut off leaves a study with a part of its runs; entering it again completes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.database import Database, StoreError, is_tried_again, portions
from labmates.records.rows import run_row
from labmates.records.run import STOPPED, RunRecord, new_run_id
from labmates.records.studies import WAITING, StudyRecord

_RUNS, _STUDIES = schema.runs, schema.studies
_BATCH = 20_000
_TRIES = 10
_OWN = ("id", "replicate", "seed", "place", "key", "most", "models", "condition")
_KNOWN = [_RUNS.c[name] for name in ("id", "key", "replicate", "place", "status", "seed", "most", "invalid")]


class Cell(NamedTuple):
    """The part that all replicates of a condition share.

    Attributes
    ----------
    most
        The most that a run may cost, in micro-dollars.
    models, condition
        As JSON texts.
    """

    key: str
    most: int
    models: str
    condition: str


class Planned(NamedTuple):
    """A run that a study wants.

    Attributes
    ----------
    place
        Its place in the queue.
    """

    cell: Cell
    replicate: int
    seed: int
    place: int


class _Template:
    """The common columns of a study's runs, as the driver of the database takes them: JSON is text.

    Parameters
    ----------
    run
        One of them.
    """

    def __init__(self, run: RunRecord) -> None:
        row = run_row(run)
        shared = [name for name in row if name not in _OWN]
        self.columns = (*_OWN, *shared)
        self._shared = tuple(
            json.dumps(row[name]) if isinstance(_RUNS.c[name].type, sa.JSON) else row[name] for name in shared
        )

    def row(self, run: Planned) -> tuple[Any, ...]:
        """The columns of a new run."""
        return (new_run_id(), run.replicate, run.seed, run.place, *run.cell, *self._shared)


class _NotAllError(Exception):
    """A run has an id that another has, or was entered by somebody else meanwhile."""


def enter_study(
    database: Database,
    study: StudyRecord,
    template: RunRecord,
    wanted: Iterable[Planned],
    wants: Callable[[str, int], bool],
    *,
    seed: int | None = None,
    watch: Callable[[int], None] | None = None,
) -> tuple[int, int]:
    """Enter a study, or what it has grown by since it was entered, and return how many runs it wants and are new.

    Parameters
    ----------
    template
        One of its runs, for all that they have in common.
    wanted
        The study's runs. Existing ones stay as they are, but for their place in the queue, and what they
        may cost and how they are to be executed while they wait. Runs that stopped at a lower bound than they have now
        wait again.
    wants
        Tells by condition key and replicate whether a run is among these. Runs that the study no longer wants and that
        were not begun leave it.
    seed
        Seed of replicate 0, if replicate r has ``seed + r``: another one is refused before anything is written.
    watch
        Told how many runs were looked at.

    Raises
    ------
    UsageError
        If a run that is wanted was begun with another seed, or somebody else enters another plan meanwhile.
    """
    if seed is not None:
        _check_seeds(database, study.name, wants, seed)
    fresh = database.write(lambda connection: _enter_plan(database, connection, study, template))
    shared = _Template(template)
    number = new = 0
    runs = iter(wanted)
    while batch := list(islice(runs, _BATCH)):
        new += _enter(database, study, shared, batch, fresh)
        number += len(batch)
        if watch is not None:
            watch(number)
    _drop(database, study.name, number, wants)
    return number, new


def _enter_plan(database: Database, connection: sa.Connection, study: StudyRecord, template: RunRecord) -> bool:
    """Enter the plan and return whether the study is new."""
    values = {"spec": study.spec, "cap": study.cap}
    mine = _STUDIES.c.name == study.name
    before = connection.execute(sa.select(_STUDIES.c.spec).where(mine).with_for_update()).scalar_one_or_none()
    database.insert_new(connection, _STUDIES, [{"name": study.name, "created": study.created, **values}])
    connection.execute(sa.update(_STUDIES).where(mine).values(values))
    if before not in (None, study.spec):
        waiting = sa.and_(_RUNS.c.study == study.name, _RUNS.c.status.in_(WAITING))
        connection.execute(sa.update(_RUNS).where(waiting).values(settings=template.settings))
    return before is None


def _enter(database: Database, study: StudyRecord, template: _Template, batch: Sequence[Planned], fresh: bool) -> int:
    for _ in range(_TRIES):
        try:
            return database.write(lambda connection, fresh=fresh: _write(connection, study, template, batch, fresh))  # type: ignore[misc]
        except _NotAllError:
            fresh = False
    raise StoreError(f"runs of the study '{study.name}' could not be added: other commands add them at the same time")


def _write(
    connection: sa.Connection, study: StudyRecord, template: _Template, batch: Sequence[Planned], fresh: bool
) -> int:
    """Enter some runs and return how many are new."""
    plan = connection.execute(sa.select(_STUDIES.c.spec).where(_STUDIES.c.name == study.name).with_for_update())
    if plan.scalar_one_or_none() != study.spec:
        raise UsageError(
            f"the study '{study.name}' was changed or deleted by another command while this one added it: add one plan "
            "at a time"
        )
    known = {} if fresh and not is_tried_again(connection) else _known(connection, study.name, batch)
    new, changed = [], []
    # In the order of the indexes, so that neighbours there are written together.
    for run in sorted(batch, key=lambda run: run.cell.key):
        row = known.get((run.cell.key, run.replicate))
        if row is None:
            new.append(template.row(run))
        elif (change := _change(study.name, row, run)) is not None:
            changed.append(change)
    if changed:
        update = sa.update(_RUNS).where(_RUNS.c.id == sa.bindparam("run"))
        update = update.values(place=sa.bindparam("to"), seed=sa.bindparam("of"), most=sa.bindparam("costs"))
        connection.execute(update, changed)
    here = ((known.get((run.cell.key, run.replicate)), run) for run in batch)
    if extended := [row.id for row, run in here if row is not None and _is_extended(row, run)]:
        back = {"status": "interrupted", "invalid": None, "digest": None}
        connection.execute(sa.update(_RUNS).where(_RUNS.c.id.in_(extended)).values(back))
        connection.execute(sa.delete(schema.seals).where(schema.seals.c.run.in_(extended)))
    if new and _insert(connection, template.columns, new) < len(new):
        raise _NotAllError
    return len(new)


def _insert(connection: sa.Connection, columns: Sequence[str], rows: list[tuple[Any, ...]]) -> int:
    """Insert the rows that conflict with none in the table, and return how many; twice as fast by the driver alone."""
    names = ", ".join(columns)
    marks = ", ".join(["?" if connection.dialect.name == "sqlite" else "%s"] * len(columns))
    insert = f"insert into runs ({names}) values ({marks}) on conflict do nothing"  # noqa: S608 - of the schema
    return int(connection.exec_driver_sql(insert, rows).rowcount)


def _known(connection: sa.Connection, study: str, batch: Sequence[Planned]) -> dict[tuple[str, int], Any]:
    keys, replicates = list({run.cell.key for run in batch}), [run.replicate for run in batch]
    among = _RUNS.c.replicate.between(min(replicates), max(replicates))
    query = sa.select(*_KNOWN).where(_RUNS.c.study == study, _RUNS.c.key.in_(keys), among)
    return {(row.key, row.replicate): row for row in connection.execute(query)}


def _change(study: str, row: Any, run: Planned) -> dict[str, Any] | None:
    """The changed columns of a run that exists already."""
    if row.seed != run.seed and row.status != "planned":
        raise _other_seed(study, row, run.seed)
    most = run.cell.most if row.status in WAITING or _is_extended(row, run) else row.most
    if (row.place, row.seed, row.most) == (run.place, run.seed, most):
        return None
    return {"run": row.id, "to": run.place, "of": run.seed, "costs": most}


def _is_extended(row: Any, run: Planned) -> bool:
    """Whether a run has stopped at a lower bound than it has now."""
    stopped = row.status == "exhausted" and (row.invalid or "").startswith(STOPPED)
    return stopped and run.cell.most > row.most


def _check_seeds(database: Database, study: str, wants: Callable[[str, int], bool], seed: int) -> None:
    other = sa.and_(_RUNS.c.study == study, _RUNS.c.status != "planned", _RUNS.c.seed != _RUNS.c.replicate + seed)
    with database.reading() as connection:
        for row in connection.execute(sa.select(_RUNS.c.key, _RUNS.c.replicate, _RUNS.c.seed).where(other)):
            if wants(row.key, row.replicate):
                raise _other_seed(study, row, seed + row.replicate)


def _other_seed(study: str, row: Any, seed: int) -> UsageError:
    return UsageError(
        f"runs of the study '{study}' were begun with other seeds (replicate {row.replicate} with {row.seed}, not "
        f"{seed}): keep its seed, or give the study another name"
    )


def _drop(database: Database, study: str, number: int, wants: Callable[[str, int], bool]) -> None:
    """Delete the runs that the study no longer wants and that were not begun."""
    mine = _RUNS.c.study == study
    count = sa.select(sa.func.count()).where(mine)
    if database.read(lambda connection: connection.execute(count).scalar_one()) <= number:
        return
    unwanted = list(_unwanted(database, sa.and_(mine, _RUNS.c.status == "planned"), wants))
    for some in portions(unwanted, _BATCH):
        drop = sa.delete(_RUNS).where(_RUNS.c.id.in_(some), _RUNS.c.status == "planned")
        database.write(lambda connection, drop=drop: connection.execute(drop))  # type: ignore[misc]


def _unwanted(database: Database, where: sa.ColumnElement[bool], wants: Callable[[str, int], bool]) -> Iterator[str]:
    query = sa.select(_RUNS.c.id, _RUNS.c.key, _RUNS.c.replicate).where(where)
    with database.reading() as connection:
        for row in connection.execute(query, execution_options={"yield_per": _BATCH}):
            if not wants(row.key, row.replicate):
                yield row.id
