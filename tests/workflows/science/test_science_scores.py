"""The metrics of a run that judges give: the newest of each, and 0 where a report can't be read."""

from __future__ import annotations

from typing import Any

import pytest

from labmates.records.events import ScoreEvent
from labmates.workflows.science.analyses.page import findings
from labmates.workflows.science.experiment import judged_metrics


def score(metric: str, value: float | None, version: str = "2", judge: str = "verified", **more: Any) -> ScoreEvent:
    return ScoreEvent(judge=judge, version=version, metric=metric, value=value, reason="", **more)


def test_each_metric_is_the_newest_score_that_was_given() -> None:
    scores = [
        score("accuracy", 0.2, details={"readable": True}),
        score("skill", -0.3),
        score("provenance", 0.4),
        score("completeness", 0.5, judge="heuristic"),
        score("heuristic_quality", 0.6, judge="heuristic"),
        score("accuracy", 0.9, judge="heuristic"),
        score("accuracy", None, failed=True),
        score("skill", -0.1),
    ]
    assert judged_metrics(scores) == {
        "skill": -0.1,
        "accuracy": 0.2,
        "provenance": 0.4,
        "completeness": 0.5,
        "heuristic_quality": 0.6,
        "readable": 1.0,
    }
    assert judged_metrics([]) == judged_metrics([score("accuracy", None, failed=True)]) == {}


@pytest.mark.parametrize(
    ("one", "accuracy", "readable"),
    [
        (score("accuracy", 0.0, details={"readable": False}), 0.0, False),
        (score("accuracy", 0.0, details={"readable": True}), 0.0, True),
        (score("accuracy", None, "2", failed=True), None, None),
        (score("accuracy", None, "2+model@d"), None, None),
        (score("accuracy", 0.3, "1", judge="heuristic"), 0.3, None),
    ],
)
def test_only_a_judge_that_failed_leaves_a_run_without_accuracy(
    one: ScoreEvent, accuracy: float | None, readable: bool | None
) -> None:
    assert (one.value, one.readable) == (accuracy, readable)


def test_an_entry_of_a_stated_finding_stands_on_one_line() -> None:
    credit = {"finding": "events", "credit": 1.0, "weight": 1.0, "reason": ""}
    stated = {"events": [{"start": 1, "sensors": ["A", "B"]}, {"start": 2, "sensors": []}]}
    [shown] = findings({"credits": [credit], "findings": stated})
    assert shown.stated.splitlines() == ["1, A, B", "2, "]
