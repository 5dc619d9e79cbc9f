"""Means of scores: their intervals claim nothing of unreadable reports that no run shows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from labmates.records.run import RunRecord
from labmates.workflows.science.analyses.score_tables import scores_table


def row(*values: float | None) -> dict[str, Any]:
    """The row of runs on as many data sets; None is an unreadable report."""
    runs = [RunRecord(f"{at}", "science", "", at, at, {"task": "anomaly"}, ["a"]) for at in range(len(values))]
    judged: Any = [SimpleNamespace(run=run, readable=values[run.seed] is not None) for run in runs]
    [found] = scores_table(judged, {run.id: {("verified", "accuracy"): values[run.seed] or 0.0} for run in runs}).rows
    return found


def test_readable_reports_have_an_interval_of_their_own_beside_that_of_unreadable_ones() -> None:
    found = row(0.9, 0.92, 0.88, 0.9)
    assert (found["score"], found["protocol"]) == (pytest.approx(0.9), pytest.approx(0.9))
    assert found["score_low"] < 0.0125**0.25 * 0.9, "four runs tell little of how many can be read"
    assert 0.8 < found["protocol_low"] < 0.9 < found["protocol_high"] < 0.95
    assert (found["unreadable_low"], found["unreadable_high"]) == (0.0, pytest.approx(1 - 0.025**0.25))


def test_an_unreadable_report_widens_the_interval_of_the_score() -> None:
    found = row(0.9, 0.92, 0.88, None)
    assert found["score"] == pytest.approx(0.675)
    assert found["score_low"] < 0.45 < 0.89 < found["score_high"]
    assert found["protocol_low"] > 0.8
