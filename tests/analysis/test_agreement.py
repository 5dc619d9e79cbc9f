"""Agreement of judges over the runs of a store: by metric and task, with intervals, or the reason why there is none."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from labmates.analysis.agreement import ALL_TASKS, CONSTANT, NO_VARIATION, agreement, ratings_frame
from labmates.records.events import ScoreEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store


def ratings(n: int, noise: float = 0.1, *, models: int = 1, tasks: int = 1, seed: int = 0) -> pd.DataFrame:
    """Return two judges' scores of n runs, the second one's with noise."""
    rng = np.random.default_rng(seed)
    first = rng.random(n)
    second = np.clip(first + noise * rng.standard_normal(n), 0, 1)
    return pd.DataFrame(
        [
            (f"run{i:04}", f"task{i % tasks}", f"model{i % models}", judge, "quality", float(value))
            for judge, values in (("a", first), ("b", second))
            for i, value in enumerate(values)
        ],
        columns=["run", "task", "models", "judge", "metric", "value"],
    )


def test_judges_that_agree_well_have_high_coefficients_within_their_intervals() -> None:
    [found] = agreement(ratings(200, 0.05))
    [pair] = found.pairs
    assert (pair.first, pair.second, pair.runs, found.metric, found.task) == ("a", "b", 200, "quality", "task0")
    for one in (pair.pearson, pair.kappa, pair.concordance, pair.alpha, found.alpha):
        assert one.value is not None
        assert one.low is not None
        assert one.high is not None
        assert 0.9 < one.low <= one.value <= one.high <= 1
    assert pair.mean_difference.value == pytest.approx(0, abs=0.02)


def test_independent_judges_have_intervals_around_zero() -> None:
    frame = ratings(300)
    rng = np.random.default_rng(5)
    frame.loc[frame["judge"] == "b", "value"] = rng.random(300)
    [found] = agreement(frame)
    low, high = found.pairs[0].pearson.low, found.pairs[0].pearson.high
    assert low is not None
    assert high is not None
    assert low < 0 < high


def test_every_task_is_told_apart_and_all_together_first() -> None:
    found = agreement(ratings(60, tasks=3))
    assert [one.task for one in found] == [ALL_TASKS, "task0", "task1", "task2"]
    assert [one.runs for one in found] == [60, 20, 20, 20]


def test_models_are_resampled_where_there_are_enough_of_them() -> None:
    [few], [many] = agreement(ratings(60, models=3)), agreement(ratings(60, models=20))
    assert (few.unit, many.unit) == ("run", "model")


def test_the_same_seed_gives_the_same_intervals() -> None:
    assert agreement(ratings(30), seed=1) == agreement(ratings(30), seed=1)
    assert agreement(ratings(30), seed=1) != agreement(ratings(30), seed=2)


@pytest.mark.parametrize("n", [1, 2])
def test_too_few_runs_are_stated(n: int) -> None:
    [found] = agreement(ratings(n))
    for one in (found.alpha, found.pairs[0].pearson, found.pairs[0].mean_difference):
        assert one.value is None
        assert "3 are needed" in one.reason


def test_a_few_runs_have_coefficients_without_intervals() -> None:
    [found] = agreement(ratings(4))
    assert found.pairs[0].pearson.value is not None
    assert found.pairs[0].pearson.low is None
    assert "no interval" in found.pairs[0].pearson.reason


def test_constant_scores_are_stated() -> None:
    frame = ratings(20)
    frame.loc[frame["judge"] == "b", "value"] = 0.5
    [one] = agreement(frame)
    assert (one.pairs[0].pearson.value, one.pairs[0].pearson.reason) == (None, CONSTANT)
    frame["value"] = 0.5
    [both] = agreement(frame)
    assert (both.alpha.value, both.alpha.reason) == (None, NO_VARIATION)
    assert both.pairs[0].kappa.value is None
    assert both.pairs[0].mean_difference.value == 0
    assert "NaN" not in json.dumps(asdict(both))


def test_scores_that_hardly_vary_have_no_interval() -> None:
    frame = ratings(20)
    frame["value"] = 0.5
    frame.loc[0, "value"] = frame.loc[20, "value"] = 1.0
    [found] = agreement(frame)
    assert found.pairs[0].pearson.value == pytest.approx(1)
    assert found.pairs[0].pearson.low is None


def test_judges_of_different_runs_have_no_pair_and_one_judge_alone_no_agreement() -> None:
    frame = ratings(10)
    apart = frame[(frame["judge"] == "a") == (frame["run"] < "run0005")]
    [found] = agreement(apart)
    assert (found.runs, found.pairs[0].runs) == (0, 0)
    assert found.alpha.value is None
    assert agreement(frame[frame["judge"] == "a"]) == []
    assert agreement(frame.iloc[:0]) == []


def test_missing_scores_leave_the_other_pairs_whole() -> None:
    frame = ratings(40)
    third = frame[frame["judge"] == "a"].assign(judge="c").iloc[::2]
    [found] = agreement(pd.concat([frame, third]))
    assert {(pair.first, pair.second): pair.runs for pair in found.pairs} == {
        ("a", "b"): 40, ("a", "c"): 20, ("b", "c"): 20
    }  # fmt: skip
    assert found.runs == 40
    assert found.judges == ("a", "b", "c")


def test_the_newest_score_of_each_judge_counts_and_unscored_ones_and_means_do_not(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    run = RunRecord("r1", "science", "k", 0, 0, {"task": "ecology"}, ["openai:m"], status="completed")
    store.create(run)
    said = [("a", 0.1), ("a", 0.2), ("b", 0.5), ("b", None), ("c", None), ("rubric", 0.9)]
    events = [ScoreEvent(judge=judge, version="1", metric="quality", value=value, reason="") for judge, value in said]
    store.add("r1", list(enumerate(events)), [])
    frame = ratings_frame(store, [run])
    store.close()
    assert frame[["run", "task", "models", "judge", "value"]].to_numpy().tolist() == [
        ["r1", "ecology", "openai:m", "a", 0.2],
        ["r1", "ecology", "openai:m", "b", 0.5],
    ]
