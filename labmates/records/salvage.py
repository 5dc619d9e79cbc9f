"""Salvage of readable rows from a damaged SQLite file into a new one.

Rows are read in storage order. Behind an unreadable page, a binary search finds the next readable row: the distance is
doubled until a row is found, then halved. `labmates.studies.repair` interprets the rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from labmates.errors import UsageError
from labmates.records import schema

_TABLES: Final = [table.name for table in schema.metadata.sorted_tables]
_ROWS = 500
_LARGEST_ROWID = 2**63 - 1


@dataclass
class Salvaged:
    """The readable part of a store.

    `rows` and `gaps` count rows and unreadable places by table. `runs` are the ids of all runs named in rows, indices
    and events; `events` is the number of events by run, where the index of events is readable.
    """

    rows: dict[str, int] = field(default_factory=dict)
    gaps: dict[str, int] = field(default_factory=dict)
    runs: set[str] = field(default_factory=set)
    events: dict[str, int] = field(default_factory=dict)


def salvage(source: Path, target: Path, watch: Callable[[str, int], None] | None = None) -> Salvaged:
    """Write the readable rows of a store's file to a new file, with the same tables.

    `watch` receives the table and the number of its rows read. Raises `UsageError` if the file is missing, or its list
    of tables is unreadable.
    """
    if not source.is_file():
        raise UsageError(f"there is no file '{source}'")
    salvaged = Salvaged()
    with closing(_damaged(source)) as old, closing(sqlite3.connect(target, isolation_level=None)) as new:
        new.execute("PRAGMA foreign_keys=OFF")
        made = _make_tables(source, old, new)
        for table in made:
            new.execute("BEGIN")
            salvaged.rows[table] = salvaged.gaps[table] = 0
            for rows in _readable(old, table, salvaged):
                marks = ",".join("?" * len(rows[0]))
                new.executemany(f"insert or ignore into {table} values ({marks})", rows)  # noqa: S608 - of the schema
                salvaged.rows[table] += len(rows)
                if watch is not None:
                    watch(table, salvaged.rows[table])
            new.execute("COMMIT")
        if not new.execute("select count(*) from alembic_version").fetchone()[0]:
            new.execute("insert into alembic_version values (?)", [schema.VERSION])
        for table, column in (("runs", "id"), ("events", "run"), ("bodies", "run")):
            salvaged.runs |= {row[0] for row in new.execute(f"select distinct {column} from {table}")}  # noqa: S608
        _look_at_indices(old, salvaged)
    return salvaged


def _damaged(source: Path) -> sqlite3.Connection:
    # The file must not be written; a log beside it is read if SQLite can.
    for options in ("mode=ro", "mode=ro&immutable=1"):
        connection = sqlite3.connect(f"file:{quote(str(source))}?{options}", uri=True)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        with suppress(sqlite3.Error):
            connection.execute("select count(*) from sqlite_master").fetchone()
            return connection
        connection.close()
    raise UsageError(f"'{source}' is unreadable, even its list of tables; use a copy or an archive")


def _make_tables(source: Path, old: sqlite3.Connection, new: sqlite3.Connection) -> list[str]:
    query = "select type, tbl_name, sql from sqlite_master where sql is not null order by type = 'index'"
    try:
        parts: list[tuple[str, str, str]] = old.execute(query).fetchall()
    except sqlite3.Error as error:
        raise UsageError(f"the list of tables of '{source}' can't be read: {error}") from error
    made = [name for kind, name, _ in parts if kind == "table" and name in _TABLES]
    if "runs" not in made:
        raise UsageError(f"'{source}' is not a store: it has no table of runs")
    for _, name, sql in parts:
        if name in made:
            new.execute(sql)
    return made


def _readable(old: sqlite3.Connection, table: str, salvaged: Salvaged) -> Iterator[list[tuple[Any, ...]]]:
    after = 0
    while True:
        rows, end = _read_on(old, table, after)
        if rows:
            after = rows[-1][0]
            yield [row[1:] for row in rows]
        if end:
            return
        if len(rows) < _ROWS:
            salvaged.gaps[table] += 1
            behind = _behind(old, table, after)
            if behind is None:
                return
            after = behind - 1


def _read_on(old: sqlite3.Connection, table: str, after: int) -> tuple[list[tuple[Any, ...]], bool]:
    """The next rows up to an unreadable one, and whether the table ends there."""
    rows: list[tuple[Any, ...]] = []
    query = f"select rowid, * from {table} where rowid > ? order by rowid limit {_ROWS}"  # noqa: S608 - of the schema
    try:
        rows.extend(old.execute(query, [after]))
    except sqlite3.Error:
        return rows, False
    return rows, len(rows) < _ROWS


def _behind(old: sqlite3.Connection, table: str, after: int) -> int | None:
    """The number of the first readable row behind the unreadable one after `after`; None if there is none."""
    query = f"select rowid, * from {table} where rowid >= ? order by rowid limit 1"  # noqa: S608 - of the schema

    def first(place: int) -> int | None:
        with suppress(sqlite3.Error):
            row = old.execute(query, [place]).fetchone()
            return None if row is None else int(row[0])
        return -1

    step = 1
    while (there := first(after + 1 + step)) == -1:
        step *= 2
        if after + 1 + step > _LARGEST_ROWID:
            return None
    if there is None:
        there = _LARGEST_ROWID
    low, high = after + 1 + step // 2, after + 1 + step  # `low` is unreadable, `high` readable
    while high - low > 1:
        middle = (low + high) // 2
        if (at := first(middle)) == -1:
            low = middle
        else:
            high, there = middle, _LARGEST_ROWID if at is None else at
    return None if there == _LARGEST_ROWID else there


def _look_at_indices(old: sqlite3.Connection, salvaged: Salvaged) -> None:
    """Read run ids and numbers of events from the indices, which are stored apart from their tables."""
    with suppress(sqlite3.Error):
        for row in old.execute("select id from runs indexed by sqlite_autoindex_runs_1 order by id"):
            salvaged.runs.add(row[0])
    for run_id in sorted(salvaged.runs):
        with suppress(sqlite3.Error):
            query = "select count(*) from events indexed by sqlite_autoindex_events_1 where run = ?"
            salvaged.events[run_id] = old.execute(query, [run_id]).fetchone()[0]
