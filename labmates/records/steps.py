"""Writes of attempts into the store: finished steps and ends, many in one transaction.

Writes are fenced: a step is written only while its attempt holds the lease of its run (see `records.claims`). A
session's `Writer` groups concurrent steps of its runs into one transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from labmates.records import schema
from labmates.records.bodies import Body
from labmates.records.database import Database, StoreError, is_tried_again
from labmates.records.events import ChargeEvent, Event
from labmates.records.rows import RUN_COLUMNS, EventRow, run_row
from labmates.records.run import ENDED, RunRecord
from labmates.util.loops import Batches

_log = logging.getLogger(__name__)
_RUNS = schema.runs

_GROWS = ("spent", "chain", "made")
"""The columns of a run that each step writes."""
# Built once: building a statement takes longer than executing it.
_NEW_EVENTS, _NEW_BODIES = sa.insert(schema.events), sa.insert(schema.bodies)
_STEP = (
    sa.update(_RUNS)
    .where(
        _RUNS.c.id == sa.bindparam("held_run"),
        _RUNS.c.attempt == sa.bindparam("held_attempt"),
        _RUNS.c.status == "running",
    )
    .values({name: sa.bindparam(f"new_{name}") for name in _GROWS})
)
_END = _STEP.values({column.name: sa.bindparam(f"new_{column.name}") for column in (*RUN_COLUMNS, _RUNS.c.lease)})


Attempt = tuple[str, int]
"""A run's id and the number of an attempt to execute it."""


class LeaseLostError(StoreError):
    """Another worker has taken the run over, or the run has ended; later writes are refused."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"the run {run_id} was taken over by another worker")


class _NotAllError(Exception):
    """Some of several steps can't be written, or may be written already; all are rolled back."""


@dataclass(frozen=True)
class Step:
    """New records of an attempt, which are written together.

    `run` is the claimed run with the chain and the cost up to the step; at the end of the attempt, the ended run with
    its digest. `rows` are the events' `event_rows`.
    """

    run: RunRecord
    rows: Sequence[EventRow]
    bodies: Sequence[Body]
    ends: bool = False

    @property
    def attempt(self) -> Attempt:
        """The attempt that writes the step."""
        return self.run.id, self.run.attempt


def write_step(database: Database, step: Step) -> None:
    """Write a step, which may have been written already, without confirmation.

    Raises `LeaseLostError` if another attempt has the run; `StoreError` if another event or body is in its place.
    """
    database.write(lambda connection: _write(database, connection, step))


def write_steps(database: Database, steps: Sequence[Step], broken: dict[Attempt, Exception]) -> list[Exception | None]:
    """Write steps, in one transaction if possible, and return the error of each; steps of a run keep their order.

    `broken` are attempts with an earlier failed step, whose later steps are refused; new failures are added to it.
    """
    errors = [broken.get(step.attempt) for step in steps]
    places = [place for place, error in enumerate(errors) if error is None]
    writable = [steps[place] for place in places]
    for step in writable:
        for body in step.bodies:
            _ = body.data  # compressed before a lock is taken
    # An attempt that ends without ending its run writes more; that is rare.
    if writable and all(step.run.status in ENDED for step in writable if step.ends):
        try:
            database.write(lambda connection: _write_together(connection, writable))
        except StoreError as error:
            broken.update({step.attempt: error for step in writable})
        except Exception:  # At least one step is invalid.
            _log.debug("%d steps are written one by one", len(writable), exc_info=True)
        else:
            return errors
    for place, step in zip(places, writable, strict=True):
        wrong = errors[place] = broken.get(step.attempt) or _error_of(database, step)
        if wrong is not None:
            broken[step.attempt] = wrong
    return errors


def _error_of(database: Database, step: Step) -> Exception | None:
    try:
        write_step(database, step)
    except Exception as error:
        return error
    return None


def _write_together(connection: sa.Connection, steps: Sequence[Step]) -> None:
    if is_tried_again(connection):
        raise _NotAllError
    for statement, ends in ((_STEP, False), (_END, True)):
        rows = [_held(step) for step in steps if step.ends == ends]
        rows.sort(key=itemgetter("held_run"))  # the same order in all processes prevents deadlocks
        if rows and connection.execute(statement, rows).rowcount != len(rows):
            raise _NotAllError
    try:
        insert(connection, [(step.run.id, step.rows, step.bodies) for step in steps])
    except sa.exc.IntegrityError as error:
        raise _NotAllError from error


def _write(database: Database, connection: sa.Connection, step: Step) -> None:
    run = step.run
    if not step.ends and is_there(connection, step.rows):
        return
    if not connection.execute(_END if step.ends else _STEP, _held(step)).rowcount:
        if step.ends and _has_ended(connection, run):
            return
        raise LeaseLostError(run.id)
    insert(connection, [(run.id, step.rows, step.bodies)])
    if step.ends and run.status not in ENDED:
        at = database.now(connection)
        attempt = {"run": run.id, "number": run.attempt, "worker": run.worker, "status": run.status, "at": at}
        database.insert_new(connection, schema.attempts, [{**attempt, "reason": run_row(run)["error"] or ""}])


def _held(step: Step) -> dict[str, Any]:
    """The parameters of the statement that updates a step's run."""
    run = step.run
    row = (
        {**run_row(run), "worker": None, "lease": None} if step.ends else {name: getattr(run, name) for name in _GROWS}
    )
    return {"held_run": run.id, "held_attempt": run.attempt, **{f"new_{name}": value for name, value in row.items()}}


def _has_ended(connection: sa.Connection, run: RunRecord) -> bool:
    """Whether the attempt's end was written, before the connection was lost."""
    same = sa.and_(_RUNS.c.id == run.id, _RUNS.c.attempt == run.attempt, _RUNS.c.status == run.status)
    return connection.execute(sa.select(_RUNS.c.id).where(same)).one_or_none() is not None


def is_there(connection: sa.Connection, rows: Sequence[EventRow]) -> bool:
    """Whether the store has the first of these events, and so all of them."""
    table = schema.events
    for row in rows[:1]:
        query = sa.select(table.c.at, table.c.type).where(table.c.run == row["run"], table.c.seq == row["seq"])
        return connection.execute(query).one_or_none() == (row["at"], row["type"])
    return False


def insert(connection: sa.Connection, runs: Iterable[tuple[str, Sequence[EventRow], Sequence[Body]]]) -> None:
    """Insert the rows of events, and bodies of runs."""
    events: list[EventRow] = []
    bodies: list[dict[str, Any]] = []
    for run_id, new_events, new_bodies in runs:
        bodies += [{"run": run_id, "number": b.number, "media": b.media, "data": b.data} for b in new_bodies]
        events += new_events
    if bodies:
        connection.execute(_NEW_BODIES, bodies)
    if events:
        connection.execute(_NEW_EVENTS, events)


def costs(events: Iterable[tuple[int, Event]]) -> int:
    """The total cost of events, in micro-dollars."""
    return sum(_cost(event) for _, event in events)


def charges(events: Iterable[Event]) -> int:
    """The amount charged to a run's bound for events, in micro-dollars: costs, and savings by a cache."""
    return sum(event.amount if isinstance(event, ChargeEvent) and event.cached else _cost(event) for event in events)


def _cost(event: Event) -> int:
    if isinstance(event, ChargeEvent):
        return event.real_cost
    return event.cost if event.type == "judge_call" else 0


class Writer:
    """Writes steps of runs in order of arrival; for one event loop.

    Steps that arrive during a transaction are collected for the next one. A submitted step is written even if its
    caller is cancelled. After a failed step, later steps of the attempt are refused: a record with a gap is unreadable.
    """

    def __init__(self, database: Database) -> None:
        broken: dict[Attempt, Exception] = {}
        self._steps = Batches[Step, None](lambda steps: write_steps(database, steps, broken))

    async def write(self, step: Step) -> None:
        """Write a step. Raises `LeaseLostError` if another attempt has the run."""
        await self._steps.result(step)

    async def close(self) -> None:
        """Wait until all submitted steps are written."""
        await self._steps.close()
