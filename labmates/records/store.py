"""The store: runs, their events and bodies, in SQLite or any database that SQLAlchemy reaches.

While a run goes on, its finished steps are appended; its end (outcome, last events, scores) is one transaction. All
methods block: asynchronous callers put them on a thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from labmates.errors import LabmatesError, UsageError
from labmates.records import schema
from labmates.records.bodies import Body
from labmates.records.events import Event, ScoreEvent, event_data, make_event
from labmates.records.run import RunRecord, Usage

DEFAULT_STORE = "sqlite:///labmates.db"


class StoreError(LabmatesError):
    """The store could not be written or read."""


class Store:
    """A database of runs.

    Parameters
    ----------
    url
        SQLAlchemy URL, for instance ``sqlite:///labmates.db``.
    must_exist
        Refuse to make a new SQLite file: for reading.

    Raises
    ------
    UsageError
        If the URL is malformed, or the database can't be opened, written, or is of another version.
    """

    def __init__(self, url: str = DEFAULT_STORE, *, must_exist: bool = False) -> None:
        self.url = url
        self._engine = _engine(url, must_exist)
        try:
            schema.metadata.create_all(self._engine)
            self._check_version()
        except DBAPIError as error:
            self._engine.dispose()
            raise UsageError(f"can't open the store '{self.shown_url}': {error.orig}") from error
        except UsageError:
            self._engine.dispose()
            raise

    @property
    def shown_url(self) -> str:
        """The URL without its password."""
        return sa.make_url(self.url).render_as_string(hide_password=True)

    @property
    def sqlite_path(self) -> str | None:
        """Path of the SQLite file, or None for another database."""
        url = sa.make_url(self.url)
        return url.database if url.get_backend_name() == "sqlite" else None

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def create(self, run: RunRecord) -> None:
        """Enter a new run."""
        with self._transaction() as connection:
            connection.execute(sa.insert(schema.runs), _run_row(run))

    def append(self, run_id: str, events: Sequence[tuple[int, Event]], bodies: Sequence[Body]) -> None:
        """Append finished steps: events with their sequence numbers, and the new bodies that they name."""
        with self._transaction() as connection:
            _append(connection, run_id, events, bodies)

    def finish(self, run: RunRecord, events: Sequence[tuple[int, Event]], bodies: Sequence[Body]) -> None:
        """Write the end of a run (its row, its last events and scores) in one transaction."""
        with self._transaction() as connection:
            _append(connection, run.id, events, bodies)
            row = _run_row(run)
            connection.execute(sa.update(schema.runs).where(schema.runs.c.id == run.id).values(row))

    def reopen(self, run_id: str) -> None:
        """Set a run that did not end back to ``running``, because it is taken up again."""
        with self._transaction() as connection:
            connection.execute(
                sa.update(schema.runs).where(schema.runs.c.id == run_id).values(status="running", error=None)
            )

    def run(self, run_id: str) -> RunRecord:
        """Return the run with this id.

        Raises
        ------
        UsageError
            If there is none.
        """
        with self._transaction() as connection:
            row = connection.execute(sa.select(schema.runs).where(schema.runs.c.id == run_id)).one_or_none()
        if row is None:
            raise UsageError(f"there is no run '{run_id}' in the store {self.shown_url}")
        return _record(row)

    def runs(self, *, kind: str | None = None) -> Iterator[RunRecord]:
        """Return all runs, oldest first."""
        query = sa.select(schema.runs).order_by(schema.runs.c.started, schema.runs.c.id)
        if kind is not None:
            query = query.where(schema.runs.c.kind == kind)
        with self._transaction() as connection:
            yield from map(_record, connection.execute(query))

    def events(self, run_id: str, *, kind: str | None = None) -> list[Event]:
        """Return the events of a run in order, all or those of one type."""
        table = schema.events
        query = sa.select(table).where(table.c.run == run_id).order_by(table.c.seq)
        if kind is not None:
            query = query.where(table.c.type == kind)
        with self._transaction() as connection:
            rows = connection.execute(query).all()
        return [make_event(row.type, row.at, row.step, row.team, row.agent, row.data) for row in rows]

    def scores(self, run_id: str) -> list[ScoreEvent]:
        """Return the scores of a run, in the order in which they were given."""
        return [event for event in self.events(run_id, kind="score") if isinstance(event, ScoreEvent)]

    def bodies(self, run_id: str) -> list[Body]:
        """Return the bodies of a run, packed as they are stored."""
        table = schema.bodies
        with self._transaction() as connection:
            rows = connection.execute(sa.select(table).where(table.c.run == run_id).order_by(table.c.number)).all()
        return [Body(row.number, row.media, row.data) for row in rows]

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise StoreError(f"the store '{self.shown_url}' failed: {error.orig}") from error

    def _check_version(self) -> None:
        with self._engine.begin() as connection:
            query = sa.select(schema.meta.c.value).where(schema.meta.c.name == "schema")
            found = connection.execute(query).scalar_one_or_none()
            if found is None:
                connection.execute(sa.insert(schema.meta).values(name="schema", value=str(schema.VERSION)))
            elif found != str(schema.VERSION):
                raise UsageError(
                    f"the store '{self.shown_url}' is of version {found}; this labmates reads version {schema.VERSION}"
                )


def _engine(url: str, must_exist: bool) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
        backend = parsed.get_backend_name()
        if backend == "sqlite" and must_exist and parsed.database:
            engine = sa.create_engine(
                "sqlite://",
                creator=lambda: sqlite3.connect(
                    f"file:{parsed.database}?mode=rw", uri=True, timeout=30, check_same_thread=False
                ),
                poolclass=sa.QueuePool,  # By its bare URL it would be taken for a database in memory.
            )
        elif backend == "sqlite":
            engine = sa.create_engine(parsed, connect_args={"timeout": 30})
        else:
            engine = sa.create_engine(parsed)
    except (ArgumentError, NoSuchModuleError) as error:
        raise UsageError(f"'{url}' is no store: give a URL such as {DEFAULT_STORE} ({error})") from error
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the store '{backend}' needs the Python package '{error.name}', which is not installed"
        ) from error
    if backend == "sqlite":
        sa.event.listen(engine, "connect", _set_pragmas)
    return engine


def _set_pragmas(connection: Any, _record: Any) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "busy_timeout=30000"):
        connection.execute(f"PRAGMA {pragma}")


def _append(
    connection: sa.Connection, run_id: str, events: Iterable[tuple[int, Event]], bodies: Iterable[Body]
) -> None:
    if rows := [{"run": run_id, "number": b.number, "media": b.media, "data": b.data} for b in bodies]:
        connection.execute(sa.insert(schema.bodies), rows)
    if rows := [
        {
            "run": run_id,
            "seq": seq,
            "type": event.type,
            "at": event.at,
            "step": event.step,
            "team": event.team,
            "agent": event.agent,
            "data": event_data(event),
        }
        for seq, event in events
    ]:
        connection.execute(sa.insert(schema.events), rows)


def _run_row(run: RunRecord) -> dict[str, Any]:
    return asdict(run)


def _record(row: Any) -> RunRecord:
    return replace(RunRecord(**row._mapping), usage=Usage(**row.usage))
