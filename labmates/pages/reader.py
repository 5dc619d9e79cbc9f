"""Reads of one run for a page: its record, and only the events and bodies on the page."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from labmates.records.bodies import Value
from labmates.records.events import Event
from labmates.records.notes import Note, notes_of
from labmates.records.reading import (
    BodyReader,
    event_counts,
    event_numbers,
    event_rows,
    event_span,
    events_of,
    last_event,
)
from labmates.records.run import RunRecord
from labmates.records.store import Store

_MOST_CACHED: Final = 16


@dataclass
class RunReader:
    """Reads one run for one page or export; `run` is its record at the time of the request."""

    store: Store
    run: RunRecord
    bodies: BodyReader
    _events: dict[str, dict[int, Any]] = field(default_factory=dict)
    _numbers: dict[str, list[int]] = field(default_factory=dict)

    def events(self, *types: str) -> dict[int, Any]:
        """The events of these types by number, in order."""
        if missing := [name for name in types if name not in self._events]:
            read = events_of(self.store, self.run.id, *missing)
            for name in missing:
                self._events[name] = {number: event for number, event in read.items() if event.type == name}
        return dict(sorted((item for name in types for item in self._events[name].items()), key=lambda item: item[0]))

    def all(self, *types: str) -> list[Any]:
        """The events of these types, in order."""
        return list(self.events(*types).values())

    def rows(self, *types: str, holding: str = "", to_others: bool = False) -> list[Any]:
        """Events as rows, fast for thousands; see `labmates.records.reading.event_rows`."""
        return event_rows(self.store, self.run.id, *types, holding=holding, to_others=to_others)

    def span(self, first: int, last: int) -> dict[int, Event]:
        """The events from one number to another."""
        return event_span(self.store, self.run.id, first, last)

    def numbers(self, **wanted: Any) -> list[int]:
        """The numbers of selected events; see `labmates.records.reading.event_numbers`."""
        key = repr(wanted)
        if key not in self._numbers:  # an export asks once for each event
            self._numbers[key] = event_numbers(self.store, self.run.id, **wanted)
        return self._numbers[key]

    def values(self, numbers: Iterable[int]) -> Mapping[int, Value]:
        """Bodies by number."""
        return self.bodies.values(numbers)

    @cached_property
    def notes(self) -> list[Note]:
        """Notes on the run and its events."""
        return notes_of(self.store.database, self.run.id)

    @cached_property
    def counts(self) -> dict[tuple[str, str, str], int]:
        """Numbers of events by type, team and agent."""
        return event_counts(self.store, self.run.id)

    @cached_property
    def last(self) -> int:
        """The number of the newest event; -1 without events."""
        return last_event(self.store, self.run.id)


class Readers:
    """Opens readers of runs, and caches starting points in the bodies of recent ones."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._bodies: OrderedDict[str, BodyReader] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, run_id: str) -> RunReader:
        """A reader of a run. Raises `UsageError` if the run is unknown."""
        run = self.store.run(run_id)
        with self._lock:
            bodies = self._bodies.pop(run.id, None) or BodyReader(self.store, run.id)
            self._bodies[run.id] = bodies
            if len(self._bodies) > _MOST_CACHED:
                self._bodies.popitem(last=False)
        return RunReader(self.store, run, bodies)
