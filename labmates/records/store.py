"""The store: runs, their events and bodies, in SQLite or PostgreSQL.

While a run goes on, its finished steps are appended; its end (outcome, last events, scores) is one transaction. Both
are fenced: only the attempt that holds the run's lease can write (see `records.claims`). All methods block:
asynchronous callers put them on a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.bodies import Body
from labmates.records.database import Database, StoreError
from labmates.records.events import ChargeEvent, Event, JudgeCallEvent, ScoreEvent, event_data, make_event
from labmates.records.run import ENDED, RunRecord, Usage

DEFAULT_STORE = "sqlite:///labmates.db"

RUN_COLUMNS = [schema.runs.c[field.name] for field in fields(RunRecord)]
"""The columns that make a `RunRecord`."""
_CHUNK = 500


class LeaseLostError(StoreError):
    """Another worker has taken the run over, or it was ended: what this one still does is not kept."""


class Store:
    """A database of runs.

    Parameters
    ----------
    url
        SQLAlchemy URL, for instance ``sqlite:///labmates.db`` or ``postgresql://user@host/labmates``.
    must_exist
        Refuse to make a new SQLite file: for reading.

    Raises
    ------
    UsageError
        If the URL is malformed, or the database can't be opened, written, or is of another version.
    """

    def __init__(self, url: str = DEFAULT_STORE, *, must_exist: bool = False) -> None:
        self.database = Database(url, must_exist=must_exist)

    @property
    def url(self) -> str:
        """The URL as it was given."""
        return self.database.url

    @property
    def shown_url(self) -> str:
        """The URL without its password."""
        return self.database.shown_url

    @property
    def sqlite_path(self) -> str | None:
        """Path of the SQLite file, or None for another database."""
        return sa.make_url(self.url).database if self.database.is_sqlite else None

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def create(
        self,
        run: RunRecord,
        *,
        lease: float = 0.0,
        events: Sequence[Event] = (),
        bodies: Sequence[Body] = (),
    ) -> None:
        """Enter a run as it is.

        Parameters
        ----------
        lease
            For how many seconds its worker holds it.
        events, bodies
            What it has from the start, in the same transaction.
        """

        def write(connection: sa.Connection) -> None:
            row = {**run_row(run), "lease": self.database.now(connection) + lease}
            self.database.insert_new(connection, schema.runs, [row])
            _append(connection, run.id, list(enumerate(events)), bodies)

        self.database.write(write)

    def append(self, run: RunRecord | str, events: Sequence[tuple[int, Event]], bodies: Sequence[Body]) -> None:
        """Append finished steps: events with their sequence numbers, and the new bodies that they name.

        Parameters
        ----------
        run
            The run that goes on; its attempt must hold the lease. For a run that has ended, its id: judges add to it.

        Raises
        ------
        LeaseLostError
            If another attempt has the run.
        StoreError
            If one of the events or bodies is there already.
        """

        def write(connection: sa.Connection) -> None:
            if isinstance(run, RunRecord) and not _holds(connection, run):
                raise LeaseLostError(f"the run {run.id} was taken over by another worker")
            _append(connection, run if isinstance(run, str) else run.id, events, bodies)

        self.database.write(write)

    def finish(self, run: RunRecord, events: Sequence[tuple[int, Event]], bodies: Sequence[Body]) -> None:
        """Write the end of an attempt (the run's row, its last events and scores) in one transaction.

        Raises
        ------
        LeaseLostError
            If another attempt has the run.
        """

        def write(connection: sa.Connection) -> None:
            if not _holds(connection, run):
                if _is_written(connection, run):
                    return
                raise LeaseLostError(f"the run {run.id} was taken over by another worker")
            _append(connection, run.id, events, bodies)
            row = {**run_row(run), "worker": None, "lease": None}
            connection.execute(sa.update(schema.runs).where(schema.runs.c.id == run.id).values(row))
            if run.status not in ENDED:
                at = self.database.now(connection)
                attempt = {"run": run.id, "number": run.attempt, "worker": run.worker, "status": run.status, "at": at}
                self.database.insert_new(connection, schema.attempts, [{**attempt, "reason": run.error or ""}])

        self.database.write(write)

    def run(self, run_id: str) -> RunRecord:
        """Return the run with this id.

        Raises
        ------
        UsageError
            If there is none.
        """
        query = sa.select(*RUN_COLUMNS).where(schema.runs.c.id == run_id)
        row = self.database.read(lambda connection: connection.execute(query).one_or_none())
        if row is None:
            raise UsageError(f"there is no run '{run_id}' in the store {self.shown_url}")
        return run_record(row)

    def runs(self, *, kind: str | None = None, study: str | None = None) -> Iterator[RunRecord]:
        """Return all runs that were begun, oldest first."""
        table = schema.runs
        query = sa.select(*RUN_COLUMNS).where(table.c.status != "planned").order_by(table.c.started, table.c.id)
        if kind is not None:
            query = query.where(table.c.kind == kind)
        if study is not None:
            query = query.where(table.c.study == study)
        with self.database.reading() as connection:
            for row in connection.execution_options(yield_per=_CHUNK).execute(query):
                yield run_record(row)

    def events(self, run_id: str, *, kind: str | None = None) -> list[Event]:
        """Return the events of a run in order, all or those of one type."""
        table = schema.events
        query = sa.select(table).where(table.c.run == run_id).order_by(table.c.seq)
        if kind is not None:
            query = query.where(table.c.type == kind)
        rows = self.database.read(_all(query))
        return [_event(row) for row in rows]

    def scores(self, run_id: str) -> list[ScoreEvent]:
        """Return the scores of a run, in the order in which they were given."""
        return [event for event in self.events(run_id, kind="score") if isinstance(event, ScoreEvent)]

    def scores_of(self, run_ids: Sequence[str]) -> dict[str, list[ScoreEvent]]:
        """Return the scores of many runs, by run."""
        table = schema.events
        found: dict[str, list[ScoreEvent]] = {run_id: [] for run_id in run_ids}
        for start in range(0, len(run_ids), _CHUNK):
            some = run_ids[start : start + _CHUNK]
            query = sa.select(table).where(table.c.run.in_(some), table.c.type == "score").order_by(table.c.seq)
            for row in self.database.read(_all(query)):
                event = _event(row)
                assert isinstance(event, ScoreEvent)
                found[row.run].append(event)
        return found

    def bodies(self, run_id: str) -> list[Body]:
        """Return the bodies of a run, packed as they are stored."""
        table = schema.bodies
        query = sa.select(table).where(table.c.run == run_id).order_by(table.c.number)
        rows = self.database.read(_all(query))
        return [Body(row.number, row.media, row.data) for row in rows]

    def attempts(self, run_id: str) -> list[tuple[int, str, str]]:
        """Return number, status and reason of the attempts that did not end the run."""
        table = schema.attempts
        query = sa.select(table).where(table.c.run == run_id).order_by(table.c.number)
        rows = self.database.read(_all(query))
        return [(row.number, row.status, row.reason) for row in rows]


def _all(query: sa.Select[Any]) -> Callable[[sa.Connection], Sequence[Any]]:
    return lambda connection: connection.execute(query).all()


def run_row(run: RunRecord) -> dict[str, Any]:
    """Return the columns of a run."""
    return {**asdict(run), "error": None if run.error is None else run.error.replace("\0", "")}


def run_record(row: Any) -> RunRecord:
    """Return the run that stands in a row with the `RUN_COLUMNS`, at least."""
    values = {column.name: row._mapping[column.name] for column in RUN_COLUMNS}
    return RunRecord(**{**values, "usage": Usage(**row.usage)})


def _holds(connection: sa.Connection, run: RunRecord) -> bool:
    """Tell whether the run's attempt still holds it, and see to it that this stays so until the transaction ends."""
    table = schema.runs
    mine = sa.and_(table.c.id == run.id, table.c.attempt == run.attempt, table.c.status == "running")
    return connection.execute(sa.select(table.c.id).where(mine).with_for_update()).one_or_none() is not None


def _is_written(connection: sa.Connection, run: RunRecord) -> bool:
    """Tell whether the end of this attempt is there: the connection may have been lost after it was written."""
    table = schema.runs
    same = sa.and_(table.c.id == run.id, table.c.attempt == run.attempt, table.c.status == run.status)
    return connection.execute(sa.select(table.c.id).where(same)).one_or_none() is not None


def _append(
    connection: sa.Connection, run_id: str, events: Sequence[tuple[int, Event]], bodies: Iterable[Body]
) -> None:
    if events and _is_there(connection, run_id, *events[0]):
        return  # written by a transaction whose answer was lost
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
    if cost := sum(_cost(event) for _, event in events):
        table = schema.runs
        connection.execute(sa.update(table).where(table.c.id == run_id).values(spent=table.c.spent + cost))


def _is_there(connection: sa.Connection, run_id: str, seq: int, event: Event) -> bool:
    table = schema.events
    query = sa.select(table.c.at, table.c.type).where(table.c.run == run_id, table.c.seq == seq)
    return connection.execute(query).one_or_none() == (event.at, event.type)


def _cost(event: Event) -> int:
    """Return what an event has really cost, in micro-dollars."""
    if isinstance(event, ChargeEvent):
        return 0 if event.cached else event.amount
    return event.cost if isinstance(event, JudgeCallEvent) else 0


def _event(row: Any) -> Event:
    return make_event(row.type, row.at, row.step, row.team, row.agent, row.data)
