"""What analyses of known quality earn: the ideal one nearly all, a competent one most, a lazy one little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.task_scores import by_finding
from labmates.tasks.base import Difficulty, accuracy
from labmates.tasks.registry import get_task

NAMES = ("ecology", "anomaly", "biomarker", "geospatial")
HERE = "tests/tasks/test_ideal.py"


def ideal_credits(name: str, difficulty: Difficulty, seeds: range) -> dict[str, float]:
    """Return the mean credit of each finding of the ideal analysis, and the mean accuracy."""
    task: Any = get_task(name)
    totals: dict[str, float] = {}
    for seed in seeds:
        data = task.generate(seed, difficulty)
        scored = task.score(data.ideal(), data.truth)
        for finding, credit in [*((c.finding, c.credit) for c in scored), ("accuracy", accuracy(scored))]:
            totals[finding] = totals.get(finding, 0.0) + credit / len(seeds)
    return totals


@pytest.mark.parametrize(
    "name", ["ecology", "anomaly", "biomarker", pytest.param("geospatial", marks=pytest.mark.slow(HERE))]
)
def test_an_ideal_analysis_earns_nearly_everything(name: str) -> None:
    assert ideal_credits(name, "medium", range(4))["accuracy"] >= 0.9


@pytest.mark.slow(HERE)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("difficulty", "least", "least_in_all"), [
    ("easy", 0.9, 0.95), ("medium", 0.9, 0.95), ("hard", 0.85, 0.85),
])  # fmt: skip
def test_an_ideal_analysis_can_have_each_finding(
    name: str, difficulty: Difficulty, least: float, least_in_all: float
) -> None:
    credits = ideal_credits(name, difficulty, range(30))
    assert credits.pop("accuracy") >= least_in_all
    assert {finding: credit for finding, credit in credits.items() if credit < least} == {}


def test_a_realised_difference_is_asked_for_and_true() -> None:
    data: Any = get_task("biomarker").generate(3)
    frame = data.frame.drop_duplicates("patient")
    arm = frame["arm"].str.strip().str.lower()
    frame["improvement"] *= np.sign(frame["improvement"].groupby(frame["patient"].str[:2]).transform("median"))
    stayed = frame[frame["improvement"].abs() < 60].groupby(arm)["improvement"].mean()
    # Those who left move the difference by a few tenths of a point, not by the points of a patient's chance.
    assert stayed["active"] - stayed["placebo"] == pytest.approx(data.truth.average_treatment_effect, abs=0.6)


@pytest.mark.parametrize("name", ["ecology", "anomaly", "biomarker"])
def test_a_lazy_analysis_earns_little(name: str) -> None:
    assert by_finding(get_task(name), "medium", range(2), ("lazy", "hasty")).loc["accuracy"].max() <= 0.3


@pytest.mark.slow(HERE)
@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        ("ecology", range(20)),
        ("anomaly", range(20)),
        ("biomarker", range(20)),
        ("geospatial", range(10)),
        ("geospatial", range(10, 20)),
    ],
)
def test_a_competent_analysis_earns_most_and_a_lazy_one_little(name: str, seeds: range) -> None:
    earned = by_finding(get_task(name), "medium", seeds, ("competent", "lazy", "hasty")).loc["accuracy"]
    assert earned["competent"] >= 0.6
    assert earned[["lazy", "hasty"]].max() <= 0.25
