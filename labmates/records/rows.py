"""Runs as rows of the table of runs, and back."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from labmates.records import schema
from labmates.records.run import RunRecord, Usage

RUN_COLUMNS = [schema.runs.c[field.name] for field in fields(RunRecord)]
"""The columns that make a `RunRecord`."""


def run_row(run: RunRecord) -> dict[str, Any]:
    """Return the columns of a run."""
    values = {column.name: getattr(run, column.name) for column in RUN_COLUMNS}
    texts = {name: _storable(values[name]) for name in ("error", "invalid")}
    return {**values, **texts, "usage": asdict(run.usage)}


def run_record(row: Any) -> RunRecord:
    """Return the run that stands in a row with the `RUN_COLUMNS`, at least."""
    values = {column.name: row._mapping[column.name] for column in RUN_COLUMNS}
    return RunRecord(**{**values, "usage": Usage(**row.usage)})


def _storable(text: str | None) -> str | None:
    """Return a text that any database holds: SQLite and PostgreSQL refuse half a pair, PostgreSQL also a NUL."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
