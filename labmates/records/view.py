"""A run as other programs read it: one JSON object, and data frames of runs, scores and events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from labmates.records.events import ScoreEvent, event_data
from labmates.records.run import RunRecord

if TYPE_CHECKING:
    import pandas as pd

    from labmates.records.store import Store


def run_json(run: RunRecord, scores: Sequence[ScoreEvent]) -> dict[str, Any]:
    """Return a run and its scores as JSON data; the keys are documented in the reference of the command line."""
    return {
        "id": run.id,
        "kind": run.kind,
        "study": run.study,
        "condition": run.condition,
        "key": run.key,
        "replicate": run.replicate,
        "seed": run.seed,
        "status": run.status,
        "error": run.error,
        "metrics": run.metrics,
        "scores": [
            {"judge": score.judge, "metric": score.metric, "value": score.value, "reason": score.reason}
            for score in scores
        ],
        "sandbox": run.sandbox,
        "usage": asdict(run.usage),
        "budget": run.budget,
        "seconds": run.seconds,
        "models": run.models,
    }


def flat_run(run: RunRecord, scores: Mapping[tuple[str, str], float | None]) -> dict[str, Any]:
    """Return a run as one row: the keys of its JSON record, those of its parts joined by dots.

    Parameters
    ----------
    scores
        By judge and metric.
    """
    row: dict[str, Any] = {}
    for key, value in run_json(run, []).items():
        if key == "scores":
            row |= {f"scores.{judge}.{metric}": score for (judge, metric), score in scores.items()}
        elif key == "models":
            row[key] = ";".join(value)
        else:
            _flatten(key, value, row)
    return row


def _flatten(name: str, value: Any, row: dict[str, Any]) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _flatten(f"{name}.{key}", inner, row)
    else:
        row[name] = json.dumps(value) if isinstance(value, list) else value


def runs_frame(store: Store, *, kind: str | None = None) -> pd.DataFrame:
    """Return one row per run.

    Columns: those of the run, and the fields of its condition, metrics, usage and budget as ``condition.task``,
    ``metrics.accuracy`` and so on.
    """
    return _flat(
        {key: value for key, value in asdict(run).items() if key != "settings"} for run in store.runs(kind=kind)
    )


def scores_frame(store: Store, *, kind: str | None = None) -> pd.DataFrame:
    """Return one row per score: ``run``, ``judge``, ``version``, ``metric``, ``value`` (NaN: unscored), ``reason``."""
    import pandas as pd

    columns = ["run", "judge", "version", "metric", "value", "reason", "at"]
    rows = [
        {"run": run.id, **{name: getattr(score, name) for name in columns[1:]}}
        for run in store.runs(kind=kind)
        for score in store.scores(run.id)
    ]
    return pd.DataFrame(rows, columns=columns)


def events_frame(store: Store, run_id: str) -> pd.DataFrame:
    """Return one row per event of a run, in order; what an event says beyond the common columns stands in ``data``."""
    import pandas as pd

    columns = ["at", "type", "step", "team", "agent", "data"]
    rows = [
        [event.at, event.type, event.step, event.team, event.agent, event_data(event)] for event in store.events(run_id)
    ]
    return pd.DataFrame(rows, columns=columns)


def _flat(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.json_normalize(list(rows))
