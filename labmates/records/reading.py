"""Partial reads of a run: its record, selected events, the bodies they refer to, and its artifacts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import Any, Final

import sqlalchemy as sa

from labmates.records import schema
from labmates.records.bodies import Bodies, StoredBodies
from labmates.records.event_text import artifact_text
from labmates.records.events import Event
from labmates.records.run import RunRecord
from labmates.records.store import Store, event_of

_EVENTS = schema.events
_SHOWN_BY: Final = ("reply", "reasoning", "arguments", "result", "text", "content", "findings")
"""Fields of events that hold the number of a body."""


def stored_bodies(store: Store, run_id: str) -> StoredBodies:
    """The bodies of a run, read on demand."""
    return StoredBodies(partial(store.bodies, run_id))


class RunReader:
    """Reads one run for one page or export; `run` is its record at the time of the request."""

    def __init__(self, store: Store, run: RunRecord) -> None:
        self.store = store
        self.run = run
        self.bodies = stored_bodies(store, run.id)
        self.values = self.bodies.values
        self._events: dict[str, dict[int, Any]] = {}
        self._numbers: dict[str, list[int]] = {}

    def events(self, *types: str) -> dict[int, Any]:
        """The events of these types by number, in order."""
        if missing := [name for name in types if name not in self._events]:
            read = self._where(_EVENTS.c.type.in_(missing))
            for name in missing:
                self._events[name] = {number: event for number, event in read.items() if event.type == name}
        return dict(sorted((item for name in types for item in self._events[name].items()), key=lambda item: item[0]))

    def _where(self, condition: sa.ColumnElement[bool]) -> dict[int, Event]:
        query = sa.select(_EVENTS).where(_EVENTS.c.run == self.run.id, condition).order_by(_EVENTS.c.seq)
        return {row.seq: event_of(row) for row in self.store.rows(query)}

    def all(self, *types: str) -> list[Any]:
        """The events of these types, in order."""
        return list(self.events(*types).values())

    def rows(self, *types: str, holding: str = "", to_others: bool = False) -> list[Any]:
        """The events of some types as rows of number, time, type, team, agent and data.

        Fast for thousands of events: rows are not validated, and their data lack defaults. `holding` requires a field
        in the data; `to_others` leaves out messages within a team.
        """
        columns = [_EVENTS.c[name] for name in ("seq", "at", "type", "team", "agent", "data")]
        query = sa.select(*columns).where(_EVENTS.c.run == self.run.id, _EVENTS.c.type.in_(types))
        text = sa.cast(_EVENTS.c.data, sa.Text)
        if holding:
            query = query.where(text.contains(f'"{holding}":', autoescape=True))
        if to_others:
            query = query.where(sa.func.replace(text, '"to": "' + _EVENTS.c.team + '"', "") == text)
        return self.store.rows(query.order_by(_EVENTS.c.seq))

    def span(self, first: int, last: int) -> dict[int, Event]:
        """The events from one number to another."""
        return self._where(_EVENTS.c.seq.between(first, last))

    def numbers(
        self, *, types: Sequence[str] = (), without: Sequence[str] = (), team: str = "", agent: str = ""
    ) -> list[int]:
        """The numbers of events in order, filtered by included and excluded types, team and agent."""
        key = repr((types, without, team, agent))
        if key not in self._numbers:  # an export asks once for each event
            wanted = [_EVENTS.c[name] == value for name, value in (("team", team), ("agent", agent)) if value]
            wanted += [_EVENTS.c.type.in_(types)] if types else []
            wanted += [_EVENTS.c.type.not_in(without)] if without else []
            query = sa.select(_EVENTS.c.seq).where(_EVENTS.c.run == self.run.id, *wanted).order_by(_EVENTS.c.seq)
            self._numbers[key] = [row.seq for row in self.store.rows(query)]
        return self._numbers[key]

    def places(self, bodies: Iterable[int]) -> dict[int, int]:
        """For each of these bodies, the number of the event that shows it, or of the first call that sent it."""
        wanted = set(bodies)
        fields = [_EVENTS.c.data[name].as_integer() for name in _SHOWN_BY]
        mine = sa.select(_EVENTS.c.seq, *fields).where(_EVENTS.c.run == self.run.id).order_by(_EVENTS.c.seq.desc())
        rows = self.store.rows(mine.where(sa.or_(*(field.in_(wanted) for field in fields))))
        places = {body: seq for seq, *shown in rows for body in shown if body in wanted}
        if missing := wanted - set(places):
            for row in reversed(self.rows("llm_call", "judge_call")):
                places |= dict.fromkeys(missing.intersection(row.data.get("messages", ())), row.seq)
        return places

    @cached_property
    def counts(self) -> dict[tuple[str, str, str], int]:
        """Numbers of events by type, team and agent, in order of first appearance."""
        by = (_EVENTS.c.type, _EVENTS.c.team, _EVENTS.c.agent)
        query = sa.select(*by, sa.func.count()).where(_EVENTS.c.run == self.run.id).group_by(*by)
        rows = self.store.rows(query.order_by(sa.func.min(_EVENTS.c.seq)))
        return {(row[0], row[1], row[2]): row[3] for row in rows}

    @cached_property
    def last(self) -> int:
        """The number of the newest event; -1 without events."""
        query = sa.select(sa.func.coalesce(sa.func.max(_EVENTS.c.seq), -1)).where(_EVENTS.c.run == self.run.id)
        return int(self.store.rows(query)[0][0])


def newest_artifact(store: Store, run_id: str, name: str) -> str | None:
    """The newest version of an artifact; None if the run has no such artifact."""
    artifacts = (event for event in store.events(run_id, kind="artifact") if event.type == "artifact")
    versions = [event for event in artifacts if event.name == name]
    return artifact_text(Bodies(store.bodies(run_id))[versions[-1].content]) if versions else None


def plain_name(name: str) -> str:
    """A file name without folders and leading dots."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    return plain.strip(".")[:150] or "unnamed"
