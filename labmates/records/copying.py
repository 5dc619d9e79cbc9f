"""Copying runs from one store into another, in SQLite or PostgreSQL alike.

Rows are copied as stored, a few hundred at a time, with complete runs in each transaction: after an interruption, the
same call completes the copy. The source is read in one snapshot, even while workers write to it. A run that a worker
holds is interrupted in the copy, and can be resumed there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.database import Database, portions
from labmates.records.digests import Chain
from labmates.records.notes import add_missing_notes, note_rows
from labmates.records.run import ENDED

_RUNS, _STUDIES = schema.runs, schema.studies
ROWS: Final = 500
"""Rows per read and write."""
_MOST_RUNS, _BEGUN_WEIGHS = 2000, 20
_THIN = [
    _RUNS.c[name] for name in ("id", "study", "key", "replicate", "status", "attempt", "worker", "chain", "digest")
]
_SHOWN = 5

Watch = Callable[[int, int], None]
"""Receives the number of runs examined, and of all."""
Unite = Callable[[str, dict[str, Any], dict[str, Any]], dict[str, Any]]
"""Unites two plans of a study: receives its name, the target's plan and the source's."""


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
        If a store can't be opened, source and target are the same, the study or a run is missing, or the target has
        data that the source lacks. An interrupted copy is completed.
    """
    with _opened(source, target, study, runs) as (origin, connection, goal):
        _check_room(origin, connection, goal)
        of_study = sa.true() if study is None else _RUNS.c.study == study
        chosen = sa.and_(of_study, _RUNS.c.id.in_(runs)) if runs else of_study
        return _copy(connection, goal, chosen, whole=study is None and not runs, unite=_newer, watch=watch)


def merge_stores(sources: Sequence[str], into: str, *, unite: Unite, watch: Watch | None = None) -> Copied:
    """Merge stores into one, in order; a refused store changes nothing.

    Of two copies of a run, the more advanced one is kept, with the notes of both: an ended run before one that has not
    ended, and a longer record before a shorter one. Planned runs give way to started ones.

    Parameters
    ----------
    unite
        Makes one plan of two different plans of a study.

    Raises
    ------
    UsageError
        If one of the stores can't be opened, two of them are the same, a run ended differently in two stores, a
        replicate of a study's condition was started twice, a run of the target that would be replaced is being worked
        on, or plans can't be united.
    """
    copied = Copied()
    for source in sources:
        with _opened(source, into) as (_, connection, goal):
            part = _copy(connection, goal, sa.true(), whole=True, unite=unite, watch=watch)
        parts = ((getattr(copied, name), getattr(part, name)) for name in Copied.__dataclass_fields__)
        copied = Copied(*(first + second for first, second in parts))
    return copied


def archive_store(source: str, path: Path, *, watch: Watch | None = None) -> Copied:
    """Write a store as a single SQLite file, readable even in a read-only folder.

    Raises
    ------
    UsageError
        If the store can't be opened, or the file exists or can't be created.
    StoreError
        If reading or writing fails; then no file is left.
    """
    with _new_file(path) as part:
        copied = copy_store(source, f"sqlite:///{part}", watch=watch)
    path.chmod(0o400)
    return copied


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path for a new SQLite file, which gets its name only when it is complete.

    Raises
    ------
    UsageError
        If the file exists or can't be created.
    """
    import sqlite3

    if path.exists():
        raise UsageError(f"the file '{path}' exists already; name a new one")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"can't write '{path}': its folder is missing or read-only")
    part = path.with_name(f"{path.name}.part")
    beside = [part.with_name(part.name + ending) for ending in ("", "-wal", "-shm", "-journal")]
    try:
        for old in beside:
            old.unlink(missing_ok=True)
        os.close(os.open(part, os.O_RDWR | os.O_CREAT, 0o600))
        yield part
        connection = sqlite3.connect(part)
        connection.execute("PRAGMA journal_mode=DELETE")  # a single file, without a log beside it
        connection.close()
        part.replace(path)
    finally:
        for left in beside:
            left.unlink(missing_ok=True)


@contextmanager
def _opened(
    source: str, target: str, study: str | None = None, runs: Sequence[str] = ()
) -> Iterator[tuple[Database, sa.Connection, Database]]:
    with Database(source, read_only=True, verbatim=True) as origin, origin.reading(snapshot=True) as connection:
        if _is_same_file(origin.url, target):
            raise UsageError(f"the store {origin.shown_url} can't be copied into itself")
        _check_chosen(origin, connection, study, runs)
        with Database(target, verbatim=True) as goal:
            if not goal.is_sqlite and not origin.is_sqlite and _server(origin) == _server(goal):
                raise UsageError(f"the store {origin.shown_url} can't be copied into itself")
            yield origin, connection, goal


def _is_same_file(source: str, target: str) -> bool:
    paths = [Path(sa.make_url(url).database or "") for url in (source, target) if url.startswith("sqlite")]
    return len(paths) == 2 and all(path.exists() for path in paths) and paths[0].samefile(paths[1])


def _server(database: Database) -> Any:
    query = "select current_database(), current_schema(), pg_postmaster_start_time(), inet_server_port()"
    return database.read(lambda connection: tuple(connection.execute(sa.text(query)).one()))


def _check_chosen(origin: Database, connection: sa.Connection, study: str | None, runs: Sequence[str]) -> None:
    if study is not None:
        known = list(connection.execute(sa.select(_STUDIES.c.name).order_by(_STUDIES.c.name)).scalars())
        if study not in known:
            raise UsageError(f"no study '{study}' in {origin.shown_url}; it has: {', '.join(known) or 'none'}")
    for run_id in runs:
        if connection.execute(sa.select(_RUNS.c.id).where(_RUNS.c.id == run_id)).one_or_none() is None:
            raise UsageError(f"there is no run '{run_id}' in the store {origin.shown_url}")


def _check_room(origin: Database, connection: sa.Connection, goal: Database) -> None:
    """Check that the target holds only data of the source."""
    for what, name in ((_RUNS.c.id, "run"), (_STUDIES.c.name, "study")):
        with goal.reading() as reading:
            for names in _streamed(reading, sa.select(what)):
                mine = [row[0] for row in names]
                here = set(connection.execute(sa.select(what).where(what.in_(mine))).scalars())
                if other := [value for value in mine if value not in here]:
                    raise UsageError(
                        f"the store {goal.shown_url} is not empty: it holds the {name} '{other[0]}', which "
                        f"{origin.shown_url} does not; merge stores with: labmates store merge SOURCE --into TARGET"
                    )


def _copy(
    connection: sa.Connection,
    goal: Database,
    chosen: sa.ColumnElement[bool],
    *,
    whole: bool,
    unite: Unite,
    watch: Watch | None,
) -> Copied:
    total = connection.execute(sa.select(sa.func.count()).select_from(_RUNS).where(chosen)).scalar_one()
    fresh = goal.read(lambda reading: reading.execute(sa.select(_RUNS.c.id).limit(1)).first()) is None
    plans = _plans(connection, goal, chosen, whole, unite)
    if not fresh:
        _refuse(goal, _conflicts(connection, goal, chosen))
    done = written = 0
    for rows in _batches(connection, chosen):
        written += goal.write(lambda writing, rows=rows: _write(connection, writing, goal, rows, fresh))  # type: ignore[misc]
        done += len(rows)
        if watch is not None:
            watch(done, total)
    for name, plan in plans.items():
        goal.write(lambda writing, name=name, plan=plan: _write_plan(writing, goal, name, plan))  # type: ignore[misc]
    return Copied(written, done - written, len(plans), _copy_replies(connection, goal) if whole else 0)


def _conflicts(connection: sa.Connection, goal: Database, chosen: sa.ColumnElement[bool]) -> Iterator[str]:
    with goal.reading() as reading:
        for rows in _batches(connection, chosen):
            yield from _classified(connection, reading, rows)[2]


def _refuse(goal: Database, conflicts: Iterable[str]) -> None:
    reasons = list(conflicts)
    if reasons:
        more = f"\nand {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
        raise UsageError(
            f"the store can't be written into {goal.shown_url}; nothing was changed. Remove one of each two with "
            "'labmates runs delete RUN', or leave the stores apart:\n" + "\n".join(reasons[:_SHOWN]) + more
        )


def _write(
    connection: sa.Connection, writing: sa.Connection, goal: Database, rows: Sequence[sa.Row[Any]], fresh: bool
) -> int:
    ids, replaced, conflicts = ([row.id for row in rows], [], []) if fresh else _classified(connection, writing, rows)
    _refuse(goal, conflicts)
    notes = note_rows(writing, replaced)
    for some in portions(replaced):
        writing.execute(sa.delete(_RUNS).where(_RUNS.c.id.in_(some)))
    for some in portions(ids):
        whole = connection.execute(sa.select(_RUNS).where(_RUNS.c.id.in_(some)))
        goal.insert_new(writing, _RUNS, [_at_rest(row._mapping) for row in whole])
        for table in schema.OF_RUNS:
            query = sa.select(table).where(table.c.run.in_(some)).order_by(*table.primary_key)
            for part in _streamed(connection, query):
                goal.insert_new(writing, table, [dict(row._mapping) for row in part])
    if not fresh:
        add_missing_notes(writing, [*notes, *note_rows(connection, [row.id for row in rows])])
    return len(ids)


def _classified(
    connection: sa.Connection, other: sa.Connection, rows: Sequence[sa.Row[Any]]
) -> tuple[list[str], list[str], list[str]]:
    """The ids of the source's runs to copy, the ids of the target's runs to replace, and the conflicts in words."""
    copied, replaced, conflicts = [], [], []
    ids, keys = [row.id for row in rows], {row.key for row in rows if row.study is not None}
    there = {row.id: row for row in _of(other, _RUNS.c.id, ids)}
    twins = {_cell(row): row for row in _of(other, _RUNS.c.key, list(keys)) if row.study is not None}
    for row in rows:
        mine = there.get(row.id, twins.get(_cell(row)))
        if mine is None:
            copied.append(row.id)
            continue
        is_ahead = _progress(row) > _progress(mine)
        if mine.id != row.id and not _is_unbegun(mine) and not _is_unbegun(row):
            conflicts.append(f"run {row.id}: the target's run '{mine.id}' is the same replicate of its study")
        elif row.status in ENDED and mine.status in ENDED and row.digest != mine.digest:
            is_ahead = mine.digest in _seals(connection, row)  # a judge added scores to the source's run later
            if not is_ahead and row.digest not in _seals(other, mine):
                conflicts.append(f"run {row.id}: it ended differently in the target")
        if is_ahead:
            copied.append(row.id)
            replaced.append(mine.id)
            if mine.status == "running":
                conflicts.append(f"run {row.id}: in the target, {mine.worker} works on it")
    return copied, replaced, conflicts


def _seals(connection: sa.Connection, row: Any) -> Sequence[str]:
    """The digests that an ended run had before later scores."""
    return connection.execute(sa.select(schema.seals.c.digest).where(schema.seals.c.run == row.id)).scalars().all()


def _progress(row: Any) -> tuple[bool, int, int]:
    """What orders two copies of a run by their progress: has it ended, its attempt, its number of events."""
    return row.status in ENDED, row.attempt, Chain.parse(row.chain).events


def _is_unbegun(row: Any) -> bool:
    """Whether a run was never started."""
    return bool(row.status == "planned" and row.attempt == 0)


def _at_rest(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The columns of a run in a copy, where no worker holds it."""
    values = dict(row)
    if values["status"] == "running":
        values |= {"status": "interrupted", "error": "interrupted"}
    return {**values, "worker": None, "lease": None}


def _cell(row: Any) -> tuple[str, str, int]:
    return row.study, row.key, row.replicate


def _of(connection: sa.Connection, column: sa.ColumnElement[Any], values: Sequence[Any]) -> Iterator[Any]:
    for some in portions(values):
        yield from connection.execute(sa.select(*_THIN).where(column.in_(some)))


def _batches(connection: sa.Connection, chosen: sa.ColumnElement[bool]) -> Iterator[list[Any]]:
    """Yield the chosen runs in batches of one transaction."""
    batch: list[Any] = []
    weight = 0
    for rows in _streamed(connection, sa.select(*_THIN).where(chosen).order_by(_RUNS.c.id)):
        for row in rows:
            batch.append(row)
            weight += 1 if _is_unbegun(row) else _BEGUN_WEIGHS
            if weight >= _MOST_RUNS:
                yield batch
                batch, weight = [], 0
    if batch:
        yield batch


def _streamed(connection: sa.Connection, query: sa.Select[Any]) -> Iterator[Sequence[Any]]:
    with connection.execute(query, execution_options={"yield_per": ROWS}) as rows:
        yield from rows.partitions()


def _plans(
    connection: sa.Connection, goal: Database, chosen: sa.ColumnElement[bool], whole: bool, unite: Unite
) -> dict[str, dict[str, Any]]:
    """The study rows to write, by name."""
    query = sa.select(_STUDIES)
    if not whole:
        named = sa.select(_RUNS.c.study).where(chosen).distinct()
        query = query.where(_STUDIES.c.name.in_(list(connection.execute(named).scalars())))
    plans = {}
    for row in connection.execute(query).all():
        plan = dict(row._mapping)
        mine = sa.select(_STUDIES.c.spec).where(_STUDIES.c.name == row.name)
        before = goal.read(lambda reading, mine=mine: reading.execute(mine).scalar_one_or_none())  # type: ignore[misc]
        if before is not None and before != row.spec:
            plan["spec"] = json.dumps(unite(row.name, json.loads(before), json.loads(row.spec)))
        plans[row.name] = plan
    return plans


def _newer(_name: str, _target: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    return source


def _write_plan(writing: sa.Connection, goal: Database, name: str, plan: Mapping[str, Any]) -> None:
    if not goal.insert_new(writing, _STUDIES, [dict(plan)]):
        writing.execute(sa.update(_STUDIES).where(_STUDIES.c.name == name).values(spec=plan["spec"]))


def _copy_replies(connection: sa.Connection, goal: Database) -> int:
    number = 0
    for part in _streamed(connection, sa.select(schema.calls)):
        rows = [dict(row._mapping) for row in part]
        number += goal.write(lambda writing, rows=rows: goal.insert_new(writing, schema.calls, rows))  # type: ignore[misc]
    return number
