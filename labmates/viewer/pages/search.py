"""Full-text search: excerpts of matching texts, with their events."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from markupsafe import Markup
from starlette.datastructures import QueryParams

from labmates.errors import LabmatesError, UsageError
from labmates.pages.links import Links
from labmates.pages.rendering import render
from labmates.records.database import Database
from labmates.records.listing import Chosen, conditions, facets
from labmates.records.reading import RunReader
from labmates.records.run import RunRecord
from labmates.records.search import Query, excerpt, hits, index_texts, parse_query, unindexed
from labmates.records.store import Store
from labmates.reports.results import listed_parameters
from labmates.viewer.pages.runs import asked_for

_log = logging.getLogger(__name__)
_SHOWN: Final = 20
_PATIENCE: Final = 2.0
"""Seconds that a page waits for the index."""


class Indexer:
    """Indexes the texts of a store in a thread, so that pages don't wait; the thread has a writable connection."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def catch_up(self) -> int:
        """The number of runs that are unindexed after a short wait; the thread continues with them."""
        if unindexed(self._store):
            with self._lock:
                if self._thread is None or not self._thread.is_alive():
                    self._thread = threading.Thread(target=self._work, daemon=True)
                    self._thread.start()
            self._thread.join(_PATIENCE)
        return unindexed(self._store)

    def _work(self) -> None:
        try:
            with Database(self._store.url, must_exist=True) as database:
                index_texts(database)
        except LabmatesError:
            _log.warning("the texts of the store can't be indexed", exc_info=True)


@dataclass(frozen=True)
class Match:
    """The text around a match, in pieces, and the numbers of the events with it."""

    events: list[int]
    pieces: tuple[tuple[str, bool], ...]


def search_page(store: Store, indexer: Indexer, query: QueryParams, links: Links) -> tuple[int, Markup]:
    """The status and the page of a search; the error of an invalid query appears beside the field."""
    known = facets(store)
    chosen = asked_for(query, known).chosen
    matches: list[tuple[RunRecord, list[Match]]] = []
    error, left, more = "", 0, 0
    if chosen.search:
        try:
            parsed, left = parse_query(chosen.search), indexer.catch_up()
            matches, more = _matches(store, parsed, chosen, query.get("before", ""))
        except UsageError as wrong:
            error = str(wrong).removeprefix("search: ")
    page = render(
        "search.html",
        links=links,
        chosen=chosen,
        facets=known,
        found=matches,
        chips=listed_parameters([run for run, _ in matches]),
        error=error,
        left=left,
        more=more,
    )
    return (400 if error else 200), page


def _matches(
    store: Store, query: Query, chosen: Chosen, before: str
) -> tuple[list[tuple[RunRecord, list[Match]]], int]:
    """The matching texts by run, and the position of the next page; 0 at the end."""
    if before and not (before.isdecimal() and len(before) < 12):
        raise UsageError(f"'{before[:40]}' is not a position in this list")
    where = conditions(Chosen(study=chosen.study, kind=chosen.kind), is_sqlite=store.is_sqlite)
    matching = hits(store, query, where, before=int(before or 0), most=_SHOWN + 1)
    shown = []
    for run, group in groupby(matching[:_SHOWN], key=lambda hit: hit.run):
        numbers = list(dict.fromkeys(hit.number for hit in group))
        reader = RunReader(store, store.run(run))
        events = reader.places(numbers)
        excerpts: dict[tuple[tuple[str, bool], ...], list[int]] = {}
        for number in numbers:
            if number in events:  # texts without an event have no page
                excerpts.setdefault(tuple(excerpt(reader.bodies.get(number), query)), []).append(events[number])
        if excerpts:
            shown.append((reader.run, [Match(sorted(places), pieces) for pieces, places in excerpts.items()]))
    return shown, matching[_SHOWN - 1].place if len(matching) > _SHOWN else 0
