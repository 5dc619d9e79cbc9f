"""People's notes and flags on runs and events; they are separate from the record and outside its digest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from labmates.errors import UsageError, unknown_name
from labmates.records import schema
from labmates.records.database import Database

FLAGS: Final = ("interesting", "discuss", "wrong")
LONGEST_NOTE: Final = 4_000
LONGEST_AUTHOR: Final = 80
_NOTES, _RUNS, _EVENTS = schema.notes, schema.runs, schema.events


@dataclass(frozen=True)
class Note:
    """A note.

    `number` counts the notes of the run from 1; `event` is the number of the annotated event (None: the whole run);
    `flag` is one of `FLAGS` or empty.
    """

    number: int
    at: float
    event: int | None
    flag: str
    author: str
    text: str


def add_note(
    database: Database, run_id: str, text: str, *, flag: str = "", author: str = "", event: int | None = None
) -> None:
    """Add a note or a flag to a run or to one of its events.

    Raises `UsageError` if the note is empty or too long, or the flag, the run or the event is unknown.
    """
    text, author = (part.replace("\0", "").strip() for part in (text, author))
    if flag and flag not in FLAGS:
        raise unknown_name("flag", flag[:40], FLAGS)
    if not text and not flag:
        raise UsageError("a note needs a text or a flag")
    for name, said, most in (("note", text, LONGEST_NOTE), ("author", author, LONGEST_AUTHOR)):
        if len(said) > most:
            raise UsageError(f"the {name} has {len(said):,} characters; {most:,} are allowed")

    def write(connection: sa.Connection) -> None:
        run = sa.select(_RUNS.c.id).where(_RUNS.c.id == run_id).with_for_update()
        if connection.execute(run).one_or_none() is None:
            raise UsageError(f"there is no run '{run_id}' in the store {database.shown_url}")
        there = sa.select(_EVENTS.c.seq).where(_EVENTS.c.run == run_id, _EVENTS.c.seq == event)
        if event is not None and connection.execute(there).one_or_none() is None:
            raise UsageError(f"the run '{run_id}' has no event {event}")
        newest = sa.select(sa.func.coalesce(sa.func.max(_NOTES.c.number), 0)).where(_NOTES.c.run == run_id)
        row = {"flag": flag, "author": author, "text": text, "event": event, "at": database.now(connection)}
        number = connection.execute(newest).scalar_one() + 1
        connection.execute(sa.insert(_NOTES).values(run=run_id, number=number, **row))

    database.write(write)


def remove_note(database: Database, run_id: str, number: int) -> None:
    """Remove a note, if it exists."""
    mine = sa.and_(_NOTES.c.run == run_id, _NOTES.c.number == number)
    database.write(lambda connection: connection.execute(sa.delete(_NOTES).where(mine)))


def notes_of(database: Database, run_id: str) -> list[Note]:
    """The notes of a run, the oldest first."""
    columns = [_NOTES.c[name] for name in Note.__dataclass_fields__]
    query = sa.select(*columns).where(_NOTES.c.run == run_id).order_by(_NOTES.c.number)
    return [Note(*row) for row in database.rows(query)]


def flagged_runs(flag: str) -> sa.Select[Any]:
    """The ids of runs with a note with this flag, as a database query."""
    return sa.select(_NOTES.c.run).where(_NOTES.c.flag == flag)
