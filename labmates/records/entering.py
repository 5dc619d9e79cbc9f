"""Insertion of a study's runs into a store, in short transactions, so that workers continue and memory stays small.

After an interruption, a study has a part of its runs; inserting it again completes it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.database import Database, is_tried_again, portions
from labmates.records.rows import run_row
from labmates.records.run import STOPPED, RunRecord, new_run_id
from labmates.records.studies import WAITING, StudyRecord

_RUNS, _STUDIES = schema.runs, schema.studies
_BATCH = 20_000
_OWN = ("id", "replicate", "seed", "place", "key", "most", "models", "condition")
_KNOWN = [_RUNS.c[name] for name in ("id", "key", "replicate", "place", "status", "seed", "most", "invalid")]


class Cell(NamedTuple):
    """The common part of a condition's replicates."""

    key: str
    most: int  # the bound of a run, in micro-dollars
    models: str  # JSON
    condition: str  # JSON


class Planned(NamedTuple):
    """A planned run of a study."""

    cell: Cell
    replicate: int
    seed: int
    place: int  # in the queue

    @property
    def name(self) -> tuple[str, int]:
        """What tells it from the study's other runs."""
        return self.cell.key, self.replicate


class _Template:
    """The common columns of a study's runs, taken from one of them, in the driver's format: JSON is text."""

    def __init__(self, run: RunRecord) -> None:
        row = run_row(run)
        shared = [name for name in row if name not in _OWN]
        self.columns = (*_OWN, *shared)
        self._shared = tuple(_stored(_RUNS.c[name].type, row[name]) for name in shared)

    def row(self, run: Planned) -> tuple[Any, ...]:
        """The columns of a new run."""
        return (new_run_id(), run.replicate, run.seed, run.place, *run.cell, *self._shared)


def _stored(kind: Any, value: Any) -> Any:
    is_text = isinstance(kind, sa.JSON) and not (value is None and kind.none_as_null)
    return json.dumps(value) if is_text else value


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
    """Insert a study, or extend it to its new plan, and return the number of all its runs and of new ones.

    Raises `UsageError` if a run of the study was started with another seed, or another process inserts a different plan
    meanwhile.

    Parameters
    ----------
    template
        One of the runs, for the common columns.
    wanted
        The study's runs. Existing runs keep everything except their place in the queue and, while they wait, their
        bound and settings. Runs that stopped at a lower bound wait again.
    wants
        Whether a run, by condition key and replicate, is wanted. Unwanted runs that have not started are deleted.
    seed
        Seed of replicate 0, if replicate r has ``seed + r``; other seeds are refused before anything is written.
    watch
        Receives the number of runs examined.
    """
    if seed is not None:
        _check_seeds(database, study.name, seed)
    fresh = database.write(lambda connection: _enter_plan(database, connection, study, template))
    shared = _Template(template)
    number = new = 0
    runs = iter(wanted)
    while batch := list(islice(runs, _BATCH)):
        new += database.write(lambda connection, batch=batch: _write(connection, study, shared, batch, fresh))  # type: ignore[misc]
        number += len(batch)
        if watch is not None:
            watch(number)
    _drop(database, study.name, number, wants)
    return number, new


def _enter_plan(database: Database, connection: sa.Connection, study: StudyRecord, template: RunRecord) -> bool:
    values = {"spec": study.spec, "cap": study.cap}
    mine = _STUDIES.c.name == study.name
    before = connection.execute(sa.select(_STUDIES.c.spec).where(mine).with_for_update()).scalar_one_or_none()
    database.insert_new(connection, _STUDIES, [{"name": study.name, "created": study.created, **values}])
    connection.execute(sa.update(_STUDIES).where(mine).values(values))
    if before not in (None, study.spec):
        waiting = sa.and_(_RUNS.c.study == study.name, _RUNS.c.status.in_(WAITING))
        connection.execute(sa.update(_RUNS).where(waiting).values(settings=template.settings))
    return before is None


def _write(
    connection: sa.Connection, study: StudyRecord, template: _Template, batch: Sequence[Planned], fresh: bool
) -> int:
    plan = connection.execute(sa.select(_STUDIES.c.spec).where(_STUDIES.c.name == study.name).with_for_update())
    if plan.scalar_one_or_none() != study.spec:
        raise UsageError(
            f"the study '{study.name}' was changed or deleted by another command while this one added it: add one plan "
            "at a time"
        )
    known = {} if fresh and not is_tried_again(connection) else _known(connection, study.name, batch)
    _change(connection, study.name, [(known[run.name], run) for run in batch if run.name in known])
    # In index order, so that neighbours are written together.
    missing = sorted((run for run in batch if run.name not in known), key=lambda run: run.cell.key)
    new = 0
    while missing:
        added = _insert(connection, template.columns, list(map(template.row, missing)))
        new += added
        if added == len(missing):
            break
        known = _known(connection, study.name, missing)  # others are there already, or their random ids are taken
        missing = [run for run in missing if run.name not in known]
    return new


def _change(connection: sa.Connection, study: str, pairs: Iterable[tuple[Any, Planned]]) -> None:
    """Change the rows of known runs to their new plan; runs that stopped at a lower bound wait again."""
    changed, extended = list[dict[str, Any]](), list[str]()
    for row, run in pairs:
        if row.seed != run.seed and row.status != "planned":
            raise _other_seed(study, row, run.seed)
        stopped = row.status == "exhausted" and (row.invalid or "").startswith(STOPPED)
        if is_extended := stopped and run.cell.most > row.most:
            extended.append(row.id)
        most = run.cell.most if row.status in WAITING or is_extended else row.most
        if (row.place, row.seed, row.most) != (run.place, run.seed, most):
            changed.append({"run": row.id, "to": run.place, "of": run.seed, "costs": most})
    if changed:
        update = sa.update(_RUNS).where(_RUNS.c.id == sa.bindparam("run"))
        update = update.values(place=sa.bindparam("to"), seed=sa.bindparam("of"), most=sa.bindparam("costs"))
        connection.execute(update, changed)
    if extended:
        back = {"status": "interrupted", "invalid": None, "digest": None}
        connection.execute(sa.update(_RUNS).where(_RUNS.c.id.in_(extended)).values(back))
        connection.execute(sa.delete(schema.seals).where(schema.seals.c.run.in_(extended)))


def _insert(connection: sa.Connection, columns: Sequence[str], rows: list[tuple[Any, ...]]) -> int:
    """Insert the rows without conflicts and return their number; the driver alone is twice as fast as SQLAlchemy."""
    names = ", ".join(columns)
    marks = ", ".join(["?" if connection.dialect.name == "sqlite" else "%s"] * len(columns))
    insert = f"insert into runs ({names}) values ({marks}) on conflict do nothing"  # noqa: S608 - of the schema
    return int(connection.exec_driver_sql(insert, rows).rowcount)


def _known(connection: sa.Connection, study: str, batch: Sequence[Planned]) -> dict[tuple[str, int], Any]:
    keys, replicates = list({run.cell.key for run in batch}), [run.replicate for run in batch]
    among = _RUNS.c.replicate.between(min(replicates), max(replicates))
    query = sa.select(*_KNOWN).where(_RUNS.c.study == study, _RUNS.c.key.in_(keys), among)
    return {(row.key, row.replicate): row for row in connection.execute(query)}


def _check_seeds(database: Database, study: str, seed: int) -> None:
    """Refuse other seeds, also if their conditions are no longer wanted: conditions are compared seed by seed."""
    other = sa.and_(_RUNS.c.study == study, _RUNS.c.status != "planned", _RUNS.c.seed != _RUNS.c.replicate + seed)
    query = sa.select(_RUNS.c.replicate, _RUNS.c.seed).where(other).limit(1)
    for row in database.rows(query):
        raise _other_seed(study, row, seed + row.replicate)


def runs_elsewhere(database: Database, study: str, wants: Callable[[str, int], bool], seed: int) -> Counter[str]:
    """The number of begun runs of other studies that a new study would repeat; none if it is in the store already."""
    known = sa.select(_STUDIES.c.name).where(_STUDIES.c.name == study).exists()
    begun = sa.and_(_RUNS.c.study.is_not(None), _RUNS.c.status != "planned", _RUNS.c.seed == _RUNS.c.replicate + seed)
    query = sa.select(_RUNS.c.study, _RUNS.c.key, _RUNS.c.replicate).where(begun, ~known)
    with database.reading() as connection:
        rows = connection.execute(query, execution_options={"yield_per": _BATCH})
        return Counter(row.study for row in rows if wants(row.key, row.replicate))


def _other_seed(study: str, row: Any, seed: int) -> UsageError:
    return UsageError(
        f"runs of the study '{study}' were begun with other seeds (replicate {row.replicate} with {row.seed}, not "
        f"{seed}): keep its seed, or give the study another name"
    )


def _drop(database: Database, study: str, number: int, wants: Callable[[str, int], bool]) -> None:
    """Delete the runs that the study no longer wants and that have not started."""
    mine, planned = _RUNS.c.study == study, _RUNS.c.status == "planned"
    count = sa.select(sa.func.count()).where(mine)
    if database.read(lambda connection: connection.execute(count).scalar_one()) <= number:
        return
    query = sa.select(_RUNS.c.id, _RUNS.c.key, _RUNS.c.replicate).where(mine, planned)
    with database.reading() as connection:
        rows = connection.execute(query, execution_options={"yield_per": _BATCH})
        unwanted = [row.id for row in rows if not wants(row.key, row.replicate)]
    for some in portions(unwanted, _BATCH):
        drop = sa.delete(_RUNS).where(_RUNS.c.id.in_(some), planned)
        database.write(lambda connection, drop=drop: connection.execute(drop))  # type: ignore[misc]
