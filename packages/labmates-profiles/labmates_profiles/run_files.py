"""CSV files of runs: those of ``labmates export``, and others with a run per row."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast, get_args

from labmates.errors import UsageError
from labmates.records.run import RunRecord, RunStatus
from labmates.util.csv_rows import finite

_SCORES, _METRICS, _CONDITION = "scores.", "metrics.", "condition."
_NEEDED = frozenset({"id", "kind", "status", "models", "key", "replicate", "seed"})
_LITERALS: dict[str, Any] = {"true": True, "false": False}
Scores = Mapping[tuple[str, str], float | None]
"""By judge and metric; None if unscored."""
Line = Mapping[str, str]


def is_export(columns: Sequence[str]) -> bool:
    """Whether a file with these columns is an export of runs."""
    return set(columns) >= _NEEDED


def exported_runs(rows: Sequence[Line], file: object) -> list[tuple[RunRecord, Scores]]:
    """The runs in the rows of a `file`, whose name appears in errors, with their newest scores.

    Raises `UsageError` if a number is invalid, or a status is unknown.
    """
    return [(_run(row, where), scores_of(row, where)) for where, row in located(rows, file)]


def located(rows: Sequence[Line], file: object) -> list[tuple[str, Line]]:
    """Each row with its place in the file."""
    return [(f"{file}, line {line}", row) for line, row in enumerate(rows, 2)]


def plain(rows: Sequence[Line], file: object, *needed: str) -> list[tuple[str, Line]]:
    """The rows of a file, with their places and without the prefixes of an export's columns.

    Raises `UsageError` if a needed column is missing, or empty in a row.
    """
    named = [{name.removeprefix(_CONDITION).removeprefix(_METRICS): text for name, text in row.items()} for row in rows]
    require(named[0], file, *needed)
    for where, row in located(named, file):
        if empty := [name for name in needed if not row[name]]:
            raise UsageError(f"{where}: there is no {empty[0]}")
    return located(named, file)


def require(row: Line, file: object, *needed: str) -> None:
    """Raise `UsageError` if a column is missing."""
    if missing := [name for name in needed if name not in row]:
        raise UsageError(f"'{file}' has no column {', '.join(missing)}; it has {', '.join(row)}")


def number(row: Line, name: str, where: str, least: float = -math.inf) -> float:
    """A finite number in a row of at least a value, or a `UsageError`."""
    value = finite(row[name])
    if value is None or value < least:
        more = "" if least == -math.inf else f", {least:g} or more"
        raise UsageError(f"{where}: {name} must be a finite number{more}, not '{row[name]}'")
    return value


def scores_of(row: Line, where: str, outcomes: Sequence[str] = (), judge: str = "") -> Scores:
    """The scores in a row, in columns ``scores.JUDGE.METRIC``, and of a judge in columns of outcomes."""
    scores: dict[tuple[str, str], float | None] = {}
    for name, text in row.items():
        if name.startswith(_SCORES) or name in outcomes:
            by, _, metric = name.removeprefix(_SCORES).rpartition(".")
            scores[by or judge, metric] = number(row, name, where) if text else None
    return scores


def _run(row: Line, where: str) -> RunRecord:
    if row["status"] not in get_args(RunStatus):
        raise UsageError(
            f"{where}: the status of a run is one of {', '.join(get_args(RunStatus))}, not '{row['status']}'"
        )
    condition: dict[str, Any] = {}
    metrics: dict[str, float] = {}
    for name, text in row.items():
        if name.startswith(_METRICS) and text:
            metrics[name.removeprefix(_METRICS)] = number(row, name, where)
        elif name.startswith(_CONDITION) and text:
            _put(condition, name.split(".")[1:], _value(text))
    return RunRecord(
        id=row["id"],
        kind=row["kind"],
        key=row["key"],
        replicate=int(number(row, "replicate", where)),
        seed=int(number(row, "seed", where)),
        condition=condition,
        models=[name for name in row["models"].split(";") if name],
        status=cast("RunStatus", row["status"]),
        study=row.get("study") or None,
        error=row.get("error") or None,
        invalid=row.get("invalid") or None,
        metrics=metrics,
    )


def _put(condition: dict[str, Any], path: Sequence[str], value: object) -> None:
    for name in path[:-1]:
        inner = condition.get(name)
        if not isinstance(inner, dict):
            inner = condition[name] = {}
        condition = inner
    condition[path[-1]] = value


def _value(text: str) -> Any:
    for kind in (int, float, json.loads if text.startswith("{") else float):
        with suppress(ValueError):
            return kind(text)
    return _LITERALS.get(text.lower(), text)
