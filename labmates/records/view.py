"""Exports of a run: a JSON object, or a flat row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from labmates.records.events import ScoreEvent
from labmates.records.run import RunRecord

_KEYS: Final = (
    "id", "kind", "study", "condition", "key", "replicate", "seed", "status", "error", "metrics", "scores", "sandbox",
    "valid", "invalid", "usage", "bill", "budget", "seconds", "models", "digest",
)  # fmt: skip


def run_json(run: RunRecord, scores: Sequence[ScoreEvent]) -> dict[str, Any]:
    """A run and its scores as JSON data; the keys are documented in the reference of the command line."""
    told = {
        "scores": [{name: getattr(score, name) for name in ("judge", "metric", "value", "reason")} for score in scores],
        "usage": {name: value for name, value in vars(run.usage).items() if name != "bill"},
    }
    return {name: told[name] if name in told else getattr(run, name) for name in _KEYS}


def flat_run(run: RunRecord, scores: Mapping[tuple[str, str], float | None]) -> dict[str, Any]:
    """A run as one row: the keys of its JSON record, nested keys joined by dots, and version, times and origin.

    Parameters
    ----------
    scores
        Scores by judge and metric.
    """
    row: dict[str, Any] = {}
    for key, value in run_json(run, []).items():
        if key == "scores":
            row |= {f"scores.{judge}.{metric}": score for (judge, metric), score in scores.items()}
        elif key == "models":
            row[key] = ";".join(value)
        elif key == "condition":
            for name, parameter in value.items():
                row[f"condition.{name}"] = shown_parameter(parameter)  # also of a mapping: runs are grouped by it
                flatten(f"condition.{name}", parameter, row)
        elif type(value) is dict:
            flatten(key, value, row)
        else:
            row[key] = value
    row |= {"version": run.version, "started": run.started, "attempt": run.attempt, "origin": run.origin}
    return row


def shown_parameter(value: Any) -> Any:
    """The value of a parameter; a mapping by its name, else as JSON."""
    if not isinstance(value, dict):
        return value
    return value["name"] if isinstance(value.get("name"), str) else json.dumps(value, sort_keys=True)


def flatten(name: str, value: Any, row: dict[str, Any]) -> None:
    """Add a value to a row: entries of mappings one by one, names joined by dots; lists as JSON."""
    if not isinstance(value, dict):
        row[name] = json.dumps(value) if isinstance(value, list) else value
    elif _NESTED.isdisjoint(map(type, value.values())):
        row.update(zip(_names_below(name, tuple(value)), value.values(), strict=True))
    else:
        for key, inner in value.items():
            flatten(f"{name}.{key}", inner, row)


_NESTED: Final = {dict, list}


@lru_cache(maxsize=1_000)
def _names_below(name: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}.{key}" for key in keys)
