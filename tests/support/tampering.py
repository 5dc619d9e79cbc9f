"""Edits of single rows of a store in SQLite, as somebody makes them who can write the file, drawn by a seed."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from labmates.records.bodies import Body, Unpacker

LEFT_OUT: Final = {
    "runs.worker": "who executes the run; empty when it has ended",
    "runs.lease": "until when a worker holds the run",
    "runs.place": "the place in the queue, which changes when the study grows",
    "runs.most": "what the run was expected to cost at most, before it began",
    "attempts": "why earlier workers stopped; no number is computed from it",
    "studies": "plans and caps, which their owner changes",
    "calls": "a cache of replies; runs hold their own copies",
    "alembic_version": "the version of the tables",
}
"""Columns and tables that are legitimately changed, or of which nothing is computed, and why."""
TABLES: Final = ("runs", "events", "bodies", "seals")
_DELETED = 0.08


@dataclass(frozen=True)
class Edit:
    """One edited row.

    Attributes
    ----------
    runs
        The ids of the runs to which the row belonged and belongs.
    """

    table: str
    column: str
    what: str
    runs: tuple[str, ...]


@contextmanager
def edited(connection: sqlite3.Connection, draw: random.Random) -> Iterator[Edit]:
    """Draw a row and a column, change it, and put it back at the end."""
    table = draw.choices(TABLES, (3, 5, 2, 1))[0]
    rowids = [row[0] for row in connection.execute(f"select rowid from {table} order by rowid")]
    rowid = draw.choice(rowids)
    names = [row[1] for row in connection.execute(f"pragma table_info({table})")]
    row = dict(
        zip(names, connection.execute(f"select * from {table} where rowid = ?", [rowid]).fetchone(), strict=True)
    )
    own = row["id" if table == "runs" else "run"]
    column = draw.choice([name for name in names if f"{table}.{name}" not in LEFT_OUT])
    if table != "runs" and draw.random() < _DELETED:
        column, new = "", None
        connection.execute(f"delete from {table} where rowid = ?", [rowid])
    else:
        new = _changed(connection, table, column, row, draw)
        connection.execute(f"update {table} set {column} = ? where rowid = ?", [new, rowid])
    connection.commit()
    what = f"{table} {rowid} of {own}: {column or 'deleted'} {_short(row.get(column))} → {_short(new)}"
    yield Edit(table, column, what, (own, str(new)) if column in ("id", "run") else (own,))
    marks = ",".join("?" * len(names))
    connection.execute(
        f"insert or replace into {table} (rowid, {','.join(names)}) values (?,{marks})", [rowid, *row.values()]
    )
    connection.commit()


def _changed(connection: sqlite3.Connection, table: str, column: str, row: dict[str, Any], draw: random.Random) -> Any:
    value = row[column]
    if column == "status":
        return draw.choice(
            [one for one in ("planned", "completed", "exhausted", "failed", "interrupted") if one != value]
        )
    if column == "data" and table == "bodies":
        return _other_body(connection, row, draw)
    if column == "run":
        return "nobody"
    if column in ("seq", "number"):  # part of a key, as the run is: it must not be another row's
        return draw.choice((-1 - value, value + 10_000))
    if isinstance(value, str) and value[:1] in "{[" and value:
        return json.dumps(other_json(json.loads(value), draw))
    return other(value, draw)


def other(value: Any, draw: random.Random) -> Any:
    """Return another value of the same type."""
    match value:
        case None | "null":
            return '{"total": "1", "spent": "0", "remaining": "1"}' if value else "edited"
        case bool():
            return not value
        case int():
            return value + draw.choice((-1, 1, 1000))
        case float():
            return value + draw.choice((0.01, 1.0))
        case "":
            return "x"
        case str():
            place = draw.randrange(len(value))
            return value[:place] + ("y" if value[place] != "y" else "z") + value[place + 1 :]
    raise TypeError(type(value))


def other_json(data: Any, draw: random.Random) -> Any:
    """Return JSON data of which one leaf differs, or one entry is gone or new."""
    if isinstance(data, dict | list) and data and draw.random() < 0.9:
        place = draw.choice(list(data) if isinstance(data, dict) else range(len(data)))
        if draw.random() < 0.1:
            return {k: v for k, v in data.items() if k != place} if isinstance(data, dict) else data[:-1]
        copy = data.copy()
        copy[place] = other_json(data[place], draw)
        return copy
    if isinstance(data, dict):
        return {**data, "edited": 1}
    return [*data, 1] if isinstance(data, list) else other(data, draw)


def _other_body(connection: sqlite3.Connection, row: dict[str, Any], draw: random.Random) -> bytes:
    """Return the stored bytes of a body of which one byte differs, compressed as it was."""
    query = "select number, media, data from bodies where run = ? and number < ? order by number"
    unpacker = Unpacker()
    for number, media, data in connection.execute(query, [row["run"], row["number"]]):
        unpacker.raw(Body(number, media, data))
    before = unpacker.before
    raw = bytearray(unpacker.raw(Body(row["number"], row["media"], row["data"])))
    if raw:
        raw[draw.randrange(len(raw))] ^= 1
    return Body(row["number"], row["media"], bytes(raw or b"x"), None if row["media"] == "png" else before).data


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:60]}…"
