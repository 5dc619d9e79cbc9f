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
    error = run.error
    if error is not None:  # no database holds half a pair, nor PostgreSQL a NUL
        error = error.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    return {**values, "usage": asdict(run.usage), "error": error}


def run_record(row: Any) -> RunRecord:
    """Return the run that stands in a row with the `RUN_COLUMNS`, at least."""
    values = {column.name: row._mapping[column.name] for column in RUN_COLUMNS}
    return RunRecord(**{**values, "usage": Usage(**row.usage)})
