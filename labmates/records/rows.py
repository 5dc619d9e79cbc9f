"""Conversion of runs and events to rows, and of rows to runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, fields, replace
from functools import lru_cache
from sys import intern
from typing import Any

import sqlalchemy as sa

from labmates.records import schema
from labmates.records.digests import run_digest
from labmates.records.events import Event, event_data
from labmates.records.run import ENDED, RunRecord, Usage

RUN_COLUMNS = [schema.runs.c[field.name] for field in fields(RunRecord)]
"""The columns of a `RunRecord`."""
_RUN_NAMES = [column.name for column in RUN_COLUMNS]
_REPEATED = ("condition", "settings", "models", "made")
SHARED_COLUMNS = [
    sa.cast(column, sa.Text).label(column.name) if column.name in _REPEATED else column for column in RUN_COLUMNS
]
"""The same, with the text of those that are equal in many runs."""


def run_row(run: RunRecord) -> dict[str, Any]:
    """The columns of a run."""
    values = {column.name: getattr(run, column.name) for column in RUN_COLUMNS}
    texts = {name: _storable(values[name]) for name in ("error", "invalid")}
    return {**values, **texts, "usage": asdict(run.usage)}


def run_record(row: Any) -> RunRecord:
    """The run in a row with at least the `RUN_COLUMNS`."""
    mapping = row._mapping
    return _run({name: mapping[name] for name in _RUN_NAMES})


def sharing() -> Callable[[Any], RunRecord]:
    """A reader of rows of `SHARED_COLUMNS`: an equal condition is read once, and its runs share it."""
    read = lru_cache(maxsize=1000)(json.loads)

    def record(row: Any) -> RunRecord:
        values = dict(zip(_RUN_NAMES, row, strict=True))
        values |= {name: read(values[name]) for name in _REPEATED if values[name] is not None}
        values["metrics"] = {intern(name): value for name, value in values["metrics"].items()}
        return _run(values)

    return record


def _run(values: dict[str, Any]) -> RunRecord:
    values["usage"] = Usage(**values["usage"])
    # Not by __init__, which sets the fields of a frozen class one by one and takes ten times as long.
    run = object.__new__(RunRecord)
    vars(run).update(values)
    return run


def sealed(run: RunRecord) -> RunRecord:
    """A run with its digest; None unless it has ended."""
    return replace(run, digest=run_digest(run_row(run)) if run.status in ENDED else None)


EventRow = dict[str, Any]
"""The columns of an event."""


def event_rows(run_id: str, events: Iterable[tuple[int, Event]]) -> list[EventRow]:
    """The rows of events with their sequence numbers."""
    return [
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
    ]


def _storable(text: str | None) -> str | None:
    """A text without lone surrogates, which databases refuse, and without NUL, which PostgreSQL refuses."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
