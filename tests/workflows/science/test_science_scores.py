"""The metrics of a run that judges give: the newest of each, and 0 where a report can't be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labmates.records import schema
from labmates.records.events import ScoreEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.records.upgrade import upgrade_store
from labmates.workflows.science.experiment import judged_metrics
from labmates.workflows.science.page import findings
from tests.support.older import make_older


def score(metric: str, value: float | None, version: str = "2", judge: str = "verified", **more: Any) -> ScoreEvent:
    return ScoreEvent(judge=judge, version=version, metric=metric, value=value, reason="", **more)


def test_each_metric_is_the_newest_score_that_was_given() -> None:
    scores = [
        score("accuracy", 0.2, details={"readable": True}),
        score("skill", -0.3),
        score("provenance", 0.4),
        score("completeness", 0.5, judge="heuristic"),
        score("quality", 0.6, judge="heuristic"),
        score("accuracy", 0.9, judge="heuristic"),
        score("accuracy", None, failed=True),
        score("skill", -0.1),
    ]
    assert judged_metrics(scores) == {
        "skill": -0.1, "accuracy": 0.2, "quality": 0.4, "completeness": 0.5, "heuristic_quality": 0.6, "readable": 1.0
    }  # fmt: skip
    assert judged_metrics([]) == judged_metrics([score("accuracy", None, failed=True)]) == {}


@pytest.mark.parametrize(
    ("one", "accuracy", "readable"),
    [
        (score("accuracy", 0.0, details={"readable": False}), 0.0, False),
        (score("accuracy", 0.0, details={"readable": True}), 0.0, True),
        (score("accuracy", None, "1"), 0.0, False),
        (score("accuracy", 0.0, "1", details={"handoff": {}}), 0.0, False),
        (score("accuracy", 0.3, "1", details={"credits": []}), 0.3, True),
        (score("accuracy", None, "1+model@d"), None, None),
        (score("accuracy", None, "1", failed=True), None, None),
        (score("accuracy", None, "2+model@d"), None, None),
        (score("accuracy", 0.3, "1", judge="heuristic"), 0.3, None),
    ],
)
def test_only_a_judge_that_failed_leaves_a_run_without_accuracy(
    one: ScoreEvent, accuracy: float | None, readable: bool | None
) -> None:
    assert (one.intended, one.readable) == (accuracy, readable)


def test_old_runs_get_the_present_names_and_unread_reports_accuracy_zero(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/old.db"
    old = {
        "read": (score("accuracy", 0.3, "1", details={"credits": []}), {"accuracy": 0.3, "quality": 0.8}),
        "unread": (score("accuracy", None, "1"), {"quality": 0.1, "completeness": 0.2}),
        "failed": (score("accuracy", None, "1", failed=True), {"quality": 0.1}),
    }
    with Store(url) as store:
        for place, (name, (event, metrics)) in enumerate(old.items()):
            run = RunRecord(name, "science", "k", place, 0, {}, ["m"], "completed", metrics=metrics)
            store.create(run)
            store.add(name, [(0, event)], [])
        store.create(RunRecord("game", "game", "k", 9, 0, {}, ["m"], "completed", metrics={"quality": 0.5}))
        near = {"pareto_proximity": 0.25, "welfare_proximity": 1.0, "level": 3.0}
        store.create(RunRecord("near", "game", "k", 10, 0, {}, ["m"], "completed", metrics=near))
        make_older(store, "0004")
    assert upgrade_store(url) == ("0004", schema.VERSION)
    with Store(url) as store:
        found = {run.id: run.metrics for run in store.runs()}
    assert json.loads(json.dumps(found)) == {
        "read": {"accuracy": 0.3, "readable": 1.0, "heuristic_quality": 0.8},
        "unread": {"accuracy": 0.0, "readable": 0.0, "heuristic_quality": 0.1, "completeness": 0.2},
        "failed": {"heuristic_quality": 0.1},
        "game": {"quality": 0.5},
        "near": {"pareto_proximity": 0.25, "level": 3.0, "cooperation": 0.75, "efficiency": 0.0},
    }


def test_an_entry_of_a_stated_finding_stands_on_one_line() -> None:
    credit = {"finding": "events", "credit": 1.0, "weight": 1.0, "reason": ""}
    stated = {"events": [{"start": 1, "sensors": ["A", "B"]}, {"start": 2, "sensors": []}]}
    [shown] = findings({"credits": [credit], "findings": stated}, "")
    assert shown.stated.splitlines() == ["1, A, B", "2, "]
