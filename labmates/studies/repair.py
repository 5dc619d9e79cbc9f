"""Repair of a damaged store: readable data go into a new file, and damaged runs are interrupted at the damage.

Such a run keeps its complete steps before the damage and returns to its study's queue; readable steps are not paid
again. A run with an unreadable row is lost; the plan of its study inserts it anew.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError

from labmates.records import schema
from labmates.records.bodies import Body, Unpacker
from labmates.records.copying import new_file
from labmates.records.database import Database
from labmates.records.digests import Chain, stored_digests
from labmates.records.events import Event, body_numbers, make_event
from labmates.records.pruning import prune
from labmates.records.run import Usage
from labmates.records.salvage import Salvaged, salvage
from labmates.records.standing import at_rest
from labmates.records.steps import costs
from labmates.records.upgrade import upgrade_store
from labmates.studies.fork import whole_steps

_RUNS, _EVENTS, _BODIES = schema.runs, schema.events, schema.bodies
_OF_JSON = [column.name for column in _RUNS.c if isinstance(column.type, sa.JSON)]
_BATCH = 500


@dataclass(frozen=True)
class Requeued:
    """A damaged run, interrupted at the end of its readable record.

    Attributes
    ----------
    kept, events
        Numbers of its remaining events, and of its original events as far as known.
    """

    run: str
    study: str | None
    kept: int
    events: int


@dataclass(frozen=True)
class Repaired:
    """The state of a store after its repair.

    Attributes
    ----------
    whole
        Number of undamaged runs.
    lost
        Ids of unreadable runs.
    gaps
        Number of unreadable places by table.
    studies_without_plan
        Names of studies with lost plans; inserting these studies again restores the plans.
    """

    whole: int
    requeued: tuple[Requeued, ...]
    lost: tuple[str, ...]
    gaps: dict[str, int]
    studies_without_plan: tuple[str, ...]


def repair(source: Path, target: Path, *, watch: Callable[[str, int], None] | None = None) -> Repaired:
    """Write the readable data of a damaged SQLite store to a new file; the damaged file stays unchanged.

    Parameters
    ----------
    watch
        Receives the current table or stage, and a count.

    Raises
    ------
    UsageError
        If the file is missing or entirely unreadable, or the target exists.
    """
    with new_file(target) as part:
        salvaged = salvage(source, part, watch)
        upgrade_store(f"sqlite:///{part}")
        with Database(f"sqlite:///{part}", verbatim=True) as database:
            repaired = _mend(database, salvaged, watch)
            prune(database, None, leftovers=True, replies=False)
    return repaired


def _mend(database: Database, salvaged: Salvaged, watch: Callable[[str, int], None] | None) -> Repaired:
    whole, requeued, there = 0, [], set()
    for number, run in enumerate(_runs(database)):
        if not all(_is_json(run[name]) for name in _OF_JSON):
            database.write(lambda connection, run=run: connection.execute(_delete(_RUNS, _RUNS.c.id == run["id"])))  # type: ignore[misc]
            continue
        there.add(run["id"])
        kept = database.write(lambda connection, run=run: _mend_run(connection, run, salvaged))  # type: ignore[misc]
        whole += kept is None
        requeued += [] if kept is None else [kept]
        if watch is not None:
            watch("runs checked", number + 1)

    def unplanned(connection: sa.Connection) -> Sequence[str]:
        names = sa.select(_RUNS.c.study).where(_RUNS.c.study.not_in(sa.select(schema.studies.c.name))).distinct()
        return connection.execute(names.order_by(_RUNS.c.study)).scalars().all()

    lost = tuple(sorted(salvaged.runs - there))
    gaps = {table: number for table, number in salvaged.gaps.items() if number}
    return Repaired(whole, tuple(requeued), lost, gaps, tuple(database.read(unplanned)))


def _runs(database: Database) -> Iterator[dict[str, Any]]:
    last = ""
    while True:
        query = sa.select(_RUNS).where(_RUNS.c.id > last).order_by(_RUNS.c.id).limit(_BATCH)
        rows = database.read(lambda connection, query=query: connection.execute(query).all())  # type: ignore[misc]
        if not rows:
            return
        yield from (dict(row._mapping) for row in rows)
        last = rows[-1].id


def _mend_run(connection: sa.Connection, run: dict[str, Any], salvaged: Salvaged) -> Requeued | None:
    """Cut a run at its damage; None if it is undamaged."""
    mine = _RUNS.c.id == run["id"]
    values = {name: value for name, value in at_rest(run).items() if name not in _OF_JSON}
    stored = connection.execute(sa.select(sa.func.count()).where(_EVENTS.c.run == run["id"])).scalar_one()
    had = max(salvaged.events.get(run["id"], 0), stored)
    events = list(_events(connection, run["id"], _readable_bodies(connection, run["id"])))
    is_known = not salvaged.gaps["events"] or run["id"] in salvaged.events
    if len(events) == had and is_known:
        if run["status"] == "running":
            connection.execute(sa.update(_RUNS).where(mine).values(values))
        return None
    events = _whole(events)
    last = max((number for event in events for number in body_numbers(event)), default=0)
    connection.execute(_delete(_EVENTS, sa.and_(_EVENTS.c.run == run["id"], _EVENTS.c.seq >= len(events))))
    connection.execute(_delete(_BODIES, sa.and_(_BODIES.c.run == run["id"], _BODIES.c.number > last)))
    error = f"damaged: {len(events)} of {had} events could be read"
    values |= {"status": "interrupted", "error": error, "invalid": None, "spent": costs(enumerate(events))}
    values |= {"metrics": "{}", "usage": json.dumps(asdict(Usage())), "budget": None}
    if run["origin"]:
        origin, _, at = run["origin"].rpartition("@")
        values["origin"] = f"{origin}@{min(int(at), len(events))}"
    connection.execute(_delete(schema.seals, schema.seals.c.run == run["id"]))
    values |= {"digest": None, "chain": str(_chain(connection, run["id"]))}
    connection.execute(sa.update(_RUNS).where(mine).values(values))
    return Requeued(run["id"], run["study"], len(events), had)


def _chain(connection: sa.Connection, run_id: str) -> Chain:
    """The hash chains of a run's remaining record."""
    events = connection.execute(sa.select(_EVENTS).where(_EVENTS.c.run == run_id).order_by(_EVENTS.c.seq))
    bodies = connection.execute(sa.select(_BODIES).where(_BODIES.c.run == run_id).order_by(_BODIES.c.number))
    rows = ({**row._mapping, "data": json.loads(row.data)} for row in events)
    return Chain().longer(rows, stored_digests(Body(row.number, row.media, row.data) for row in bodies))


def _whole(events: list[Event]) -> list[Event]:
    """The events without an incomplete last step and without the judges' events."""
    events = events[: whole_steps(events, len(events))]
    step = events[-1].step if events else ""
    types = {event.type for event in events if step and event.step == step}
    is_cut = "llm_call" in types and "charge" not in types  # the charge comes last
    return [event for event in events if event.step != step] if is_cut else events


def _events(connection: sa.Connection, run_id: str, bodies: int) -> Iterator[Event]:
    """Yield the events of a run up to the first one that is missing or damaged, or whose bodies are."""
    rows = connection.execute(sa.select(_EVENTS).where(_EVENTS.c.run == run_id).order_by(_EVENTS.c.seq)).all()
    for number, row in enumerate(rows):
        try:
            event = make_event(row.type, row.at, row.step, row.team, row.agent, json.loads(row.data))
        except (ValueError, KeyError, TypeError, ValidationError):
            return
        if row.seq != number or any(body > bodies for body in body_numbers(event)):
            return
        yield event


def _readable_bodies(connection: sa.Connection, run_id: str) -> int:
    """The number of readable bodies of a run: each requires all before it."""
    unpacker = Unpacker()
    query = sa.select(_BODIES).where(_BODIES.c.run == run_id).order_by(_BODIES.c.number)
    number = 0
    for number, row in enumerate(connection.execute(query), 1):
        try:
            unpacker.value(Body(row.number, row.media, row.data))
        except (zlib.error, ValueError):
            return number - 1
        if row.number != number:
            return number - 1
    return number


def _delete(table: sa.Table, where: sa.ColumnElement[bool]) -> sa.Delete:
    return sa.delete(table).where(where)


def _is_json(text: str | None) -> bool:
    try:
        json.loads(text or "null")
    except ValueError:
        return False
    return True
