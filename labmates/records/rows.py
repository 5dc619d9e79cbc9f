"""Conversion of runs and events to rows, and of rows to runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from functools import lru_cache
from sys import intern
from typing import Any

import sqlalchemy as sa

from labmates.records import schema
from labmates.records.digests import run_digest
from labmates.records.events import Event, event_data
from labmates.records.run import ENDED, RunRecord, Usage

_REPEATED = ("condition", "settings", "models", "made")
_RUN_NAMES = [field.name for field in fields(RunRecord)]
RUN_COLUMNS = [
    sa.cast(schema.runs.c[name], sa.Text).label(name) if name in _REPEATED else schema.runs.c[name]
    for name in _RUN_NAMES
]
"""The columns of a `RunRecord`, with the JSON text of those that are equal in many runs."""
_read = lru_cache(maxsize=1000)(json.loads)


def run_row(run: RunRecord) -> dict[str, Any]:
    """The columns of a run."""
    values = {name: getattr(run, name) for name in _RUN_NAMES}
    texts = {name: _storable(values[name]) for name in ("error", "invalid")}
    return {**values, **texts, "usage": asdict(run.usage)}


def run_record(row: Any) -> RunRecord:
    """The run in a row that begins with the `RUN_COLUMNS`; runs share equal conditions."""
    values = dict(zip(_RUN_NAMES, row, strict=False))
    values |= {name: _read(values[name]) for name in _REPEATED if values[name] is not None}
    values["metrics"] = {intern(name): value for name, value in values["metrics"].items()}
    values["usage"] = Usage(**values["usage"])
    # Not by __init__, which sets the fields of a frozen class one by one and takes ten times as long.
    run = object.__new__(RunRecord)
    vars(run).update(values)
    return run


def sealed(run: RunRecord) -> RunRecord:
    """A run with its digest; None unless it has ended."""
    return replace(run, digest=run_digest(run_row(run)) if run.status in ENDED else None)


_OF_ALL = ("type", "at", "step", "team", "agent")
EventRow = dict[str, Any]
"""The columns of an event."""


def event_rows(run_id: str, events: Iterable[tuple[int, Event]]) -> list[EventRow]:
    """The rows of events with their sequence numbers."""
    return [
        {"run": run_id, "seq": seq, **{name: getattr(event, name) for name in _OF_ALL}, "data": event_data(event)}
        for seq, event in events
    ]


def _storable(text: str | None) -> str | None:
    """A text without lone surrogates, which databases refuse, and without NUL, which PostgreSQL refuses."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
