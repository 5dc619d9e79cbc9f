"""Partial reads of a run: selected events, and the bodies they refer to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import sqlalchemy as sa

from labmates.records import schema
from labmates.records.bodies import Body, Unpacker, Value
from labmates.records.events import Event, make_event
from labmates.records.store import Store

_EVENTS, _BODIES = schema.events, schema.bodies
_MARK_EACH: Final = 64
"""Interval of bodies from which reading can start: unpacking a body requires its predecessors."""


def event_numbers(
    store: Store,
    run_id: str,
    *,
    types: Iterable[str] = (),
    without: Iterable[str] = (),
    team: str = "",
    agent: str = "",
) -> list[int]:
    """The numbers of a run's events in order, filtered by included and excluded types, team and agent."""
    query = sa.select(_EVENTS.c.seq).where(_EVENTS.c.run == run_id).order_by(_EVENTS.c.seq)
    if wanted := list(types):
        query = query.where(_EVENTS.c.type.in_(wanted))
    if unwanted := list(without):
        query = query.where(_EVENTS.c.type.not_in(unwanted))
    if team:
        query = query.where(_EVENTS.c.team == team)
    if agent:
        query = query.where(_EVENTS.c.agent == agent)
    return store.database.read(lambda connection: list(connection.execute(query).scalars()))


def event_span(store: Store, run_id: str, first: int, last: int) -> dict[int, Event]:
    """The events of a run from number `first` to `last`, by number."""
    query = sa.select(_EVENTS).where(_EVENTS.c.run == run_id, _EVENTS.c.seq.between(first, last))
    return _events(store, query.order_by(_EVENTS.c.seq))


def events_of(store: Store, run_id: str, *types: str) -> dict[int, Event]:
    """The events of a run of some types, by number."""
    query = sa.select(_EVENTS).where(_EVENTS.c.run == run_id, _EVENTS.c.type.in_(types))
    return _events(store, query.order_by(_EVENTS.c.seq))


def event_rows(store: Store, run_id: str, *types: str, holding: str = "", to_others: bool = False) -> list[Any]:
    """The events of a run of some types as rows of number, time, type, team, agent and data.

    Fast for thousands of events: rows are not validated, and their data lack defaults. `holding` requires a field in
    the data; `to_others` leaves out messages within a team.
    """
    columns = [_EVENTS.c[name] for name in ("seq", "at", "type", "team", "agent", "data")]
    query = sa.select(*columns).where(_EVENTS.c.run == run_id, _EVENTS.c.type.in_(types)).order_by(_EVENTS.c.seq)
    if holding:
        query = query.where(sa.cast(_EVENTS.c.data, sa.Text).contains(f'"{holding}":', autoescape=True))
    if to_others:
        text, within = sa.cast(_EVENTS.c.data, sa.Text), '"to": "' + _EVENTS.c.team + '"'
        query = query.where(sa.func.replace(text, within, "") == text)
    return store.database.rows(query)


_SHOWN_BY: Final = ("reply", "reasoning", "arguments", "result", "text", "content", "findings")
"""Fields of events that hold the number of a body."""


def events_of_bodies(store: Store, run_id: str, numbers: Iterable[int]) -> dict[int, int]:
    """For each of these bodies of a run, the number of the event that shows it, or of the first call that sent it."""
    wanted = set(numbers)
    fields = [_EVENTS.c.data[name].as_integer() for name in _SHOWN_BY]
    mine = sa.select(_EVENTS.c.seq, *fields).where(_EVENTS.c.run == run_id).order_by(_EVENTS.c.seq.desc())
    query = mine.where(sa.or_(*(field.in_(wanted) for field in fields)))
    rows = store.database.rows(query)
    places = {body: seq for seq, *bodies in rows for body in bodies if body in wanted}
    if missing := wanted - set(places):
        for row in reversed(event_rows(store, run_id, "llm_call", "judge_call")):
            places |= dict.fromkeys(missing.intersection(row.data.get("messages", ())), row.seq)
    return places


def event_counts(store: Store, run_id: str) -> dict[tuple[str, str, str], int]:
    """Numbers of a run's events by type, team and agent, in order of first appearance."""
    by = (_EVENTS.c.type, _EVENTS.c.team, _EVENTS.c.agent)
    query = sa.select(*by, sa.func.count()).where(_EVENTS.c.run == run_id).group_by(*by)
    query = query.order_by(sa.func.min(_EVENTS.c.seq))
    rows = store.database.rows(query)
    return {(row[0], row[1], row[2]): row[3] for row in rows}


def last_event(store: Store, run_id: str) -> int:
    """The number of the newest event of a run; -1 without events."""
    query = sa.select(sa.func.max(_EVENTS.c.seq)).where(_EVENTS.c.run == run_id)
    number = store.database.read(lambda connection: connection.execute(query).scalar_one())
    return -1 if number is None else int(number)


class BodyReader:
    """The bodies of one run, read on demand.

    Starting points are remembered, so only the first read of a late body reads all bodies before it.
    """

    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._run = run_id
        self._marks: dict[int, bytes] = {0: b""}

    def values(self, numbers: Iterable[int]) -> Mapping[int, Value]:
        """The bodies with these numbers, except missing ones."""
        wanted = sorted(set(numbers))
        values: dict[int, Value] = {}
        while wanted:
            mark = max(place for place in self._marks if place < max(1, wanted[0]))
            # One stretch: up to the last body without a nearer mark.
            stretch = [number for number in wanted if not any(mark < place < number for place in self._marks)]
            self._read(mark, stretch[-1], set(stretch), values)
            wanted = wanted[len(stretch) :]
        return values

    def _read(self, mark: int, last: int, wanted: set[int], values: dict[int, Value]) -> None:
        table = _BODIES.c
        span = sa.select(_BODIES).where(table.run == self._run, table.number > mark, table.number <= last)
        rows = self._store.database.rows(span.order_by(table.number))
        unpacker = Unpacker(self._marks[mark])
        for row in rows:
            body = Body(row.number, row.media, row.data)
            if row.number in wanted:
                values[row.number] = unpacker.value(body)
            else:
                unpacker.raw(body)
            if row.number % _MARK_EACH == 0:
                self._marks[row.number] = unpacker.before


def _events(store: Store, query: sa.Select[Any]) -> dict[int, Event]:
    rows = store.database.rows(query)
    return {row.seq: make_event(row.type, row.at, row.step, row.team, row.agent, row.data) for row in rows}
