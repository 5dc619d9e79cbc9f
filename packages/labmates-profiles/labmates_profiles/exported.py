"""Runs from a CSV file of ``labmates export``, to analyse runs of others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast, get_args

from labmates.errors import UsageError
from labmates.records.run import RunRecord, RunStatus
from labmates.util.csv_rows import finite

_SCORES, _METRICS = "scores.", "metrics."
_NEEDED = frozenset({"id", "kind", "status", "models", "key", "replicate", "seed"})
_LITERALS: dict[str, Any] = {"true": True, "false": False}


@dataclass(frozen=True)
class ExportedRun:
    """A run with its newest scores by judge and metric (None: unscored)."""

    record: RunRecord
    scores: Mapping[tuple[str, str], float | None]


def is_export(columns: Sequence[str]) -> bool:
    """Whether a file with these columns is an export of runs."""
    return set(columns) >= _NEEDED


def exported_runs(rows: Sequence[Mapping[str, str]], file: object) -> list[ExportedRun]:
    """The runs in the rows of a `file`, whose name appears in errors.

    Raises `UsageError` if a number is invalid, or a status is unknown.
    """
    return [_run(row, f"{file}, line {line}") for line, row in enumerate(rows, 2)]


def _run(row: Mapping[str, str], where: str) -> ExportedRun:
    if row["status"] not in get_args(RunStatus):
        raise UsageError(
            f"{where}: the status of a run is one of {', '.join(get_args(RunStatus))}, not '{row['status']}'"
        )
    condition: dict[str, Any] = {}
    scores: dict[tuple[str, str], float | None] = {}
    metrics: dict[str, float] = {}
    for name, text in row.items():
        if name.startswith(_SCORES):
            judge, _, metric = name.removeprefix(_SCORES).rpartition(".")
            scores[judge, metric] = _number(name, text, where) if text else None
        elif name.startswith(_METRICS) and text:
            metrics[name.removeprefix(_METRICS)] = _number(name, text, where)
        elif name.startswith("condition.") and text:
            _put(condition, name.split(".")[1:], _value(text))
    record = RunRecord(
        id=row["id"],
        kind=row["kind"],
        key=row["key"],
        replicate=int(_number("replicate", row["replicate"], where)),
        seed=int(_number("seed", row["seed"], where)),
        condition=condition,
        models=[name for name in row["models"].split(";") if name],
        status=cast("RunStatus", row["status"]),
        study=row.get("study") or None,
        error=row.get("error") or None,
        invalid=row.get("invalid") or None,
        metrics=metrics,
    )
    return ExportedRun(record, scores)


def _put(condition: dict[str, Any], path: Sequence[str], value: object) -> None:
    for name in path[:-1]:
        inner = condition.get(name)
        if not isinstance(inner, dict):
            inner = condition[name] = {}
        condition = inner
    condition[path[-1]] = value


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if text.startswith("{"):
        with suppress(ValueError):
            return json.loads(text)
    return _LITERALS.get(text.lower(), text)


def _number(name: str, text: str, where: str) -> float:
    value = finite(text)
    if value is None:
        raise UsageError(f"{where}: {name} must be a finite number, not '{text}'")
    return value
