"""Upload of studies to LangSmith: the cases as a dataset, the runs of each model as an experiment."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from labmates.errors import LabmatesError, UsageError
from labmates.records.run import ENDED
from labmates.records.store import Store
from labmates.records.studies import study_record
from labmates.studies.execution import feedback
from labmates.studies.result import Run

_MODEL_FIELDS = frozenset({"model", "models", "model_for"})
"""Parameters that vary between experiments on one dataset."""
_TIMEOUT_MS = (5_000, 120_000)
_ATTEMPTS = 3


@dataclass(frozen=True)
class Uploaded:
    """An experiment in LangSmith.

    `name` consists of the study and its models; `id` is LangSmith's, empty if unknown; `runs` is their number.
    """

    name: str
    id: str
    runs: int


def upload_study(store: Store, name: str | None) -> Iterator[Uploaded]:
    """Upload a study (by default the only one in the store) to LangSmith and yield the new experiments.

    A case of the dataset is a condition without its models, and a seed; it has the same id in all experiments, so
    LangSmith compares models case by case. Each call creates new experiments on the same dataset.

    Raises
    ------
    UsageError
        If the study is unknown, none of its runs has ended, or LangSmith's key is not set.
    LabmatesError
        If LangSmith is unreachable or refuses an experiment.

    References
    ----------
    https://docs.langchain.com/langsmith/upload-existing-experiments
    """
    from langsmith import Client
    from urllib3.util import Retry

    study = study_record(store.database, name)
    runs = [run for run in store.runs(study=study.name) if run.status in ENDED]
    if not runs:
        raise UsageError(f"no run of the study '{study.name}' has ended; start them with: labmates study run FILE")
    key = os.environ.get("LANGSMITH_API_KEY") or os.environ.get("LANGCHAIN_API_KEY")
    if not key:
        raise UsageError("LANGSMITH_API_KEY is not set; create a key in the settings of LangSmith")
    client = Client(api_key=key, timeout_ms=_TIMEOUT_MS, retry_config=Retry(total=0))
    for models, group in groupby(sorted(runs, key=lambda run: run.shown_models), lambda run: run.shown_models):
        records = list(group)
        body = _experiment(f"{study.name}: {models}", study.name, study.spec, [Run.of(run, store) for run in records])
        yield Uploaded(body["experiment_name"], _sent(client, body), len(records))


def _experiment(name: str, study: str, spec: Mapping[str, Any], runs: Sequence[Run]) -> dict[str, Any]:
    return {
        "experiment_name": name,
        "experiment_start_time": _moment(min(run.started for run in runs)),
        "experiment_end_time": _moment(max(run.started + run.seconds for run in runs)),
        "experiment_metadata": {"kind": runs[0].kind, "models": runs[0].models, "labmates": runs[0].version},
        "dataset_name": f"labmates: {study}",
        "dataset_description": str(spec.get("description") or ""),
        "results": [_row(study, run) for run in runs],
    }


def _row(study: str, run: Run) -> dict[str, Any]:
    case = {name: value for name, value in run.condition.items() if name not in _MODEL_FIELDS}
    inputs = {"kind": run.kind, **case, "seed": run.seed}
    return {
        "row_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"labmates:{study}:{json.dumps(inputs, sort_keys=True)}")),
        "inputs": inputs,
        "actual_outputs": {"status": run.status, "report": run.report, "metrics": run.metrics},
        "evaluation_scores": [
            {"key": key, "score": value, "comment": reason} for key, value, reason in feedback(run, run.events)
        ],
        "start_time": _moment(run.started),
        "end_time": _moment(run.started + run.seconds),
        "run_name": f"{run.kind} {run.id}",
        "run_metadata": {"run": run.id, "condition": run.key, "invalid": run.invalid, "bill": run.bill},
    }


def _sent(client: Any, body: Mapping[str, Any]) -> str:
    from langsmith.utils import LangSmithConnectionError, LangSmithError

    where = {"data": json.dumps(body), "stop_after_attempt": _ATTEMPTS}
    try:
        answer = client.request_with_retries("POST", "/datasets/upload-experiment", **where)
    except LangSmithConnectionError as error:  # its text holds a part of the key
        raise LabmatesError(f"LangSmith at {client.api_url} is unreachable") from error
    except LangSmithError as error:
        reason = str(error).partition("\n")[0][:500]
        raise LabmatesError(f"LangSmith refused '{body['experiment_name']}': {reason}") from error
    return str(answer.json().get("experiment", {}).get("id", ""))


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
