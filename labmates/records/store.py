"""The store: runs, their events and bodies, in SQLite or PostgreSQL.

Workers write steps and ends of runs with `labmates.records.steps`. All methods block: asynchronous callers use a
thread.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any, Final, TypeVar, cast

import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.bodies import Body
from labmates.records.database import Database, MissingStoreError, is_tried_again, portions
from labmates.records.digests import Chain, next_digest, stored_digests
from labmates.records.events import Event, EventBase, ScoreEvent, make_event
from labmates.records.rows import RUN_COLUMNS, event_rows, run_record, run_row, sealed
from labmates.records.run import RunRecord
from labmates.records.steps import costs, insert, is_there

_RUNS, _SEALS = schema.runs, schema.seals

_CHUNK = 500
_RUNS_READ: Final = 25
"""Runs whose events are read together."""
LAST: Final = "last"
"""In place of a run's id: the newest run."""
_LEAST_PREFIX: Final = 4
"""Fewer characters don't select a run: a typing error would."""
_MOST_NEAR = 5

E = TypeVar("E", bound=EventBase)


class Store(Database):
    """A database of runs; see `Database` for its parameters."""

    @classmethod
    @contextmanager
    def existing(cls, url: str | None = None) -> Iterator[Store | None]:
        """Open the store for the block; None if it is a file that does not exist yet."""
        with ExitStack() as stack:
            store: Store | None = None
            with suppress(MissingStoreError):
                store = stack.enter_context(cls(url, must_exist=True))
            yield store

    def create(
        self,
        run: RunRecord,
        *,
        lease: float = 0.0,
        events: Sequence[Event] = (),
        bodies: Sequence[Body] = (),
    ) -> None:
        """Insert a run.

        Parameters
        ----------
        lease
            Seconds for which its worker holds it.
        events, bodies
            Initial records, in the same transaction. The origin of a fork has paid for these.
        """
        numbered = list(enumerate(events))
        rows = event_rows(run.id, numbered)
        chain = Chain().longer(rows, stored_digests(bodies))
        entered = sealed(replace(run, chain=str(chain), spent=costs(numbered[run.taken_over :])))

        def write(connection: sa.Connection) -> None:
            row = {**run_row(entered), "lease": self.now(connection) + lease}
            if self.insert_new(connection, _RUNS, [row]):
                insert(connection, [(run.id, rows, bodies)])

        self.write(write)

    def add(self, run_id: str, events: Sequence[tuple[int, Event]], bodies: Sequence[Body]) -> None:
        """Add to an ended run, as judges do: events with their sequence numbers, and their bodies.

        Raises
        ------
        StoreError
            If an event or a body exists already.
        """

        def write(connection: sa.Connection) -> None:
            rows = event_rows(run_id, events)
            if is_tried_again(connection) and is_there(connection, rows):
                return
            row = _locked(connection, run_id)
            if row is None:
                raise UsageError(f"there is no run '{run_id}' in the store {self.shown_url}")
            chain = Chain.parse(row.chain).longer(rows, ((body.number, body.digest) for body in bodies))
            insert(connection, [(run_id, rows, bodies)])
            _add_to(connection, row, {"chain": str(chain), "spent": _RUNS.c.spent + costs(events)})

        self.write(write)

    def set_metrics(self, run_id: str, metrics: Mapping[str, float]) -> None:
        """Replace the metrics of an ended run after judging."""

        def write(connection: sa.Connection) -> None:
            if (row := _locked(connection, run_id)) is not None:
                _add_to(connection, row, {"metrics": dict(metrics)})

        self.write(write)

    def run(self, run_id: str) -> RunRecord:
        """The run with this id, or the only one whose id begins with these characters; ``last`` is the newest run.

        Raises
        ------
        UsageError
            If the run is unknown, or several ids begin with these characters.
        """
        query = sa.select(*RUN_COLUMNS).where(_RUNS.c.id == run_id)
        if run_id == LAST:
            begun = sa.select(*RUN_COLUMNS).where(_RUNS.c.status != "planned")
            query = begun.order_by(_RUNS.c.started.desc(), _RUNS.c.id.desc()).limit(1)
        row = self.read(lambda connection: connection.execute(query).one_or_none())
        return self._begun_with(run_id) if row is None else run_record(row)

    def _begun_with(self, start: str) -> RunRecord:
        """The only run whose id begins with `start`."""
        query = sa.select(*RUN_COLUMNS).where(_RUNS.c.id.startswith(start, autoescape=True)).order_by(_RUNS.c.id)
        rows = self.rows(query.limit(_MOST_NEAR)) if len(start) >= _LEAST_PREFIX and start != LAST else []
        if not rows:
            short = f"; the beginning of an id has at least {_LEAST_PREFIX} characters" * (len(start) < _LEAST_PREFIX)
            raise UsageError(f"there is no run '{start}' in the store {self.shown_url}{short}")
        if len(rows) > 1:
            raise UsageError(f"several runs begin with '{start}': {', '.join(row.id for row in rows)}")
        return run_record(rows[0])

    def runs(
        self, *, kind: str | None = None, study: str | None = None, keys: Sequence[str] | None = None
    ) -> Generator[RunRecord]:
        """All started runs; with `keys`, only those of these conditions.

        They come in an order that workers do not change: studies by age, the runs of each as in its file; other runs by
        their start, those that started together as they were given. Runs share equal conditions.
        """
        table, studies = schema.runs, schema.studies
        age = sa.func.coalesce(studies.c.created, table.c.started)
        query = sa.select(*RUN_COLUMNS).outerjoin_from(table, studies, table.c.study == studies.c.name)
        query = query.where(table.c.status != "planned")
        query = query.order_by(age, table.c.study, table.c.place, table.c.replicate, table.c.id)
        if kind is not None:
            query = query.where(table.c.kind == kind)
        if study is not None:
            query = query.where(table.c.study == study)
        if keys is not None:
            query = query.where(table.c.key.in_(keys))
        with (
            self.reading() as connection,
            connection.execution_options(yield_per=_CHUNK).execute(query) as rows,
        ):
            yield from map(run_record, rows)

    def events(self, run_id: str, *, kind: str | None = None) -> list[Event]:
        """The events of a run in order: all, or those of one type."""
        table = schema.events
        query = sa.select(table).where(table.c.run == run_id).order_by(table.c.seq)
        if kind is not None:
            query = query.where(table.c.type == kind)
        rows = self.rows(query)
        return list(map(event_of, rows))

    def scores(self, run_id: str) -> list[ScoreEvent]:
        """The scores of a run, in order."""
        return [event for event in self.events(run_id, kind="score") if isinstance(event, ScoreEvent)]

    def events_of(self, run_ids: Sequence[str], *types: type[E]) -> Iterator[tuple[str, E]]:
        """Yield the events of these types (by default all) of many runs, each with its run's id.

        Model calls are those of agents. Runs come in the given order, the events of each in theirs, a few runs at a
        time.
        """
        table = schema.events
        names = [kind.model_fields["type"].default for kind in types]
        for some in portions(run_ids, _RUNS_READ):
            wanted = [table.c.run.in_(some), *([table.c.type.in_(names)] if names else [])]
            query = sa.select(table).where(*wanted).order_by(table.c.run, table.c.seq)
            for row in sorted(self.rows(query), key=lambda row, some=some: some.index(row.run)):  # type: ignore[misc]
                yield row.run, cast(E, event_of(row))

    def score_values(self, run_ids: Sequence[str]) -> dict[str, dict[tuple[str, str], float | None]]:
        """The newest score by judge and metric of each of these runs; a failed rejudgement keeps the earlier score."""
        newest: dict[str, dict[tuple[str, str], float | None]] = {run_id: {} for run_id in run_ids}
        for run_id, score in self.events_of(run_ids, ScoreEvent):
            if not score.failed or (score.judge, score.metric) not in newest[run_id]:
                newest[run_id][score.judge, score.metric] = score.value
        return newest

    def bodies(self, run_id: str, first: int = 1, end: int | None = None) -> list[Body]:
        """The bodies of a run, packed: all, or those from one number up to, and without, another one."""
        table = schema.bodies
        query = sa.select(table).where(table.c.run == run_id, table.c.number >= first).order_by(table.c.number)
        rows = self.rows(query if end is None else query.where(table.c.number < end))
        return [Body(row.number, row.media, row.data) for row in rows]

    def attempts(self, run_id: str) -> list[tuple[int, str, str]]:
        """Number, status and reason of the attempts that did not complete the run."""
        table = schema.attempts
        query = sa.select(table).where(table.c.run == run_id).order_by(table.c.number)
        rows = self.rows(query)
        return [(row.number, row.status, row.reason) for row in rows]


def _locked(connection: sa.Connection, run_id: str) -> Any | None:
    """A run's row, locked for an addition."""
    query = sa.select(*(_RUNS.c[name] for name in ("id", "metrics", "chain", "digest")))
    return connection.execute(query.where(_RUNS.c.id == run_id).with_for_update()).one_or_none()


def _add_to(connection: sa.Connection, row: Any, changes: dict[str, Any]) -> None:
    """Change the row of a run; an ended run gets a new digest, and the old one is stored."""
    before = row._asdict()
    after = before | {name: value for name, value in changes.items() if name in before}
    if row.digest is not None and after != before:
        had = sa.select(sa.func.count()).where(_SEALS.c.run == row.id)
        number = connection.execute(had.select_from(_SEALS)).scalar_one()
        seal = {name: before[name] for name in ("metrics", "chain", "digest")}
        connection.execute(sa.insert(_SEALS).values(run=row.id, number=number, **seal))
        changes = {**changes, "digest": next_digest(row.digest, after["metrics"], after["chain"])}
    connection.execute(sa.update(_RUNS).where(_RUNS.c.id == row.id).values(changes))


def event_of(row: Any) -> Event:
    """The event in a row of the table of events."""
    return make_event(row.type, row.at, row.step, row.team, row.agent, row.data)
