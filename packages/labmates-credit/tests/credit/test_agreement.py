"""Agreement of judges over the runs of a store: by metric and task, with intervals, or the reason why there is none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from labmates.records.events import ScoreEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates_credit.agreement import (
    ALL_TASKS,
    CONSTANT,
    NO_VARIATION,
    NOT_WITHIN,
    agreement,
    coefficients_over_models,
    ratings_frame,
)


def ratings(n: int, noise: float = 0.1, *, models: int = 1, tasks: int = 1, seed: int = 0) -> pd.DataFrame:
    """Return two judges' scores of n runs, the second one's with noise."""
    rng = np.random.default_rng(seed)
    first = rng.random(n)
    second = np.clip(first + noise * rng.standard_normal(n), 0, 1)
    return pd.DataFrame(
        [
            (f"run{i:04}", f"task{i % tasks}", f"model{i % models}", judge, "1", "quality", float(value))
            for judge, values in (("a", first), ("b", second))
            for i, value in enumerate(values)
        ],
        columns=["run", "task", "models", "judge", "version", "metric", "value"],
    )


def test_judges_that_agree_well_have_high_coefficients_within_their_intervals() -> None:
    [row] = agreement(ratings(200, 0.05, models=10)).rows
    head = [row[name] for name in ("first", "second", "runs", "metric", "task")]
    assert head == ["a", "b", 200, "quality", "task0"]
    for name in ("pearson", "kappa", "concordance", "alpha"):
        assert 0.9 < row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] <= 1
    assert row["mean_difference"] == pytest.approx(0, abs=0.02)


def test_independent_judges_have_intervals_around_zero() -> None:
    frame = ratings(300, models=10)
    rng = np.random.default_rng(5)
    frame.loc[frame["judge"] == "b", "value"] = rng.random(300)
    [row] = agreement(frame).rows
    assert row["pearson_low"] < 0 < row["pearson_high"]


def test_p_is_below_5_percent_where_the_interval_excludes_0_and_is_adjusted() -> None:
    rng = np.random.default_rng(0)
    names = np.repeat([f"m{model}" for model in range(6)], 8)
    for _ in range(20):
        a = rng.random(48)
        for one in coefficients_over_models(a, np.clip(a + rng.normal(0, 0.8, 48), 0, 1), names).values():
            assert one.low is not None
            assert one.high is not None
            assert one.p is not None
            assert (one.p < 0.05) == (one.low > 0 or one.high < 0)
    table = agreement(ratings(60, 0.6, models=5, tasks=3))
    four = ("pearson", "within", "kappa", "concordance")
    least, adjusted = min((row[f"{name}_p"], row[f"{name}_p_holm"]) for row in table.rows for name in four)
    assert adjusted == pytest.approx(min(1, 24 * least))
    assert "†" in next(table.cells())[4]
    [good] = agreement(ratings(60, 0.1, models=5)).cells()
    assert "‡" in good[4]


def test_every_task_is_told_apart_and_all_together_first() -> None:
    rows = agreement(ratings(60, tasks=3)).rows
    assert [row["task"] for row in rows] == [ALL_TASKS, "task0", "task1", "task2"]
    assert [row["runs"] for row in rows] == [60, 20, 20, 20]


@pytest.mark.parametrize("models", [3, 4, 9, 20])
def test_intervals_hold_for_new_models_also_where_judges_differ_from_model_to_model(models: int) -> None:
    rng = np.random.default_rng(models)
    # Scores are quality, plus a judge's lenience to the model, plus error: r over all models is 1 / 2.
    studies, held, names = 150, np.zeros(2), np.repeat([f"m{model}" for model in range(models)], 8)
    for _ in range(studies):
        quality = rng.normal(0.5, 0.1, len(names))
        a, b = (quality + np.repeat(rng.normal(0, 0.08, models), 8) + rng.normal(0, 0.06, len(names)) for _ in "ab")
        found = coefficients_over_models(a, b, names)
        for place, (name, truth) in enumerate((("pearson", 0.5), ("mean_difference", 0.0))):
            low, high = found[name].low, found[name].high
            assert low is not None
            assert high is not None
            held[place] += low <= truth <= high
    assert (held / studies >= 0.93 - 3 * (0.93 * 0.07 / studies) ** 0.5).all()


def test_intervals_need_three_models_and_say_so() -> None:
    few, enough = agreement(ratings(60, models=2)), agreement(ratings(60, models=3))
    assert (few.rows[0]["pearson_low"], few.rows[0]["pearson_reason"]) == (None, "needs 3 models")
    [row] = enough.rows
    assert (row["pearson_n"], row["pearson_df"]) == (3, 2)
    assert row["pearson_method"] == "jackknife over models, t on the logit scale"
    assert "No interval: needs 3 models (6)." in few.notes


@pytest.mark.parametrize("n", [1, 2])
def test_too_few_runs_are_stated(n: int) -> None:
    table = agreement(ratings(n))
    [row] = table.rows
    assert row["pearson"] is row["alpha"] is row["mean_difference"] is None
    assert f"quality, task0, a and b: {n} common runs; 3 are needed." in table.notes


def test_constant_scores_are_stated() -> None:
    frame = ratings(20)
    frame.loc[frame["judge"] == "b", "value"] = 0.5
    one = agreement(frame)
    assert one.rows[0]["pearson"] is None
    assert f"quality, task0, a and b: {CONSTANT}." in one.notes
    frame["value"] = 0.5
    both = agreement(frame)
    [row] = both.rows
    assert row["alpha"] is row["kappa"] is None
    assert f"quality, task0, a and b: {NO_VARIATION}." in both.notes
    assert row["mean_difference"] == 0
    assert "NaN" not in json.dumps(row)


def test_scores_that_hardly_vary_have_no_interval() -> None:
    frame = ratings(20, models=4)
    frame["value"] = 0.5
    frame.loc[0, "value"] = frame.loc[20, "value"] = 1.0
    [row] = agreement(frame).rows
    assert row["pearson"] == pytest.approx(1)
    assert (row["pearson_low"], row["pearson_reason"]) == (None, "at the end of its range")
    frame.loc[21, "value"] = 0.6
    [row] = agreement(frame).rows
    assert (row["pearson_low"], row["pearson_reason"]) == (None, "undefined without some model")


def test_judges_of_different_runs_have_no_pair_and_one_judge_alone_no_agreement() -> None:
    frame = ratings(10)
    apart = frame[(frame["judge"] == "a") == (frame["run"] < "run0005")]
    [row] = agreement(apart).rows
    assert (row["runs"], row["alpha"]) == (0, None)
    assert not agreement(frame[frame["judge"] == "a"]).rows
    assert not agreement(frame.iloc[:0]).rows


def test_missing_scores_leave_the_other_pairs_whole() -> None:
    frame = ratings(40)
    third = frame[frame["judge"] == "a"].assign(judge="c").iloc[::2]
    rows = agreement(pd.concat([frame, third])).rows
    assert {row["judges"]: row["runs"] for row in rows} == {"a and b": 40, "a and c": 20, "b and c": 20, "all 3": 40}


def stored(store: Store, said: list[tuple[str, str, float | None]]) -> RunRecord:
    """Put a run with scores of these judges in these versions into a store."""
    run = RunRecord("r1", "science", "k", 0, 0, {"task": "ecology"}, ["openai:m"], status="completed")
    store.create(run)
    events = [ScoreEvent(judge=judge, version=v, metric="quality", value=value, reason="") for judge, v, value in said]
    store.add("r1", list(enumerate(events)), [])
    return run


def test_the_newest_score_of_each_judge_counts_and_means_do_not(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    said: list[tuple[str, str, float | None]] = [("a", "1", 0.1), ("a", "2", 0.2), ("b", "1", 0.5), ("b", "1", None)]
    run = stored(store, [*said, ("c", "1", None), ("rubric", "1", 0.9)])
    frame = ratings_frame(store, [run]).replace({np.nan: None})
    store.close()
    assert frame[["run", "task", "models", "judge", "version", "value"]].to_numpy().tolist() == [
        ["r1", "ecology", "openai:m", "a", "2", 0.2],
        ["r1", "ecology", "openai:m", "b", "1", 0.5],
        ["r1", "ecology", "openai:m", "c", "1", None],
    ]


def test_agreement_within_models_stands_beside_that_of_all_runs() -> None:
    rng = np.random.default_rng(2)
    frame = ratings(400, models=20)
    merit = {f"model{m}": m / 20 for m in range(20)}
    frame["value"] = frame["models"].map(merit) + 0.02 * rng.standard_normal(len(frame))
    [row] = agreement(frame).rows
    assert row["models"] == 20
    assert row["pearson"] == pytest.approx(1, abs=0.02)
    assert row["within_low"] < 0 < row["within_high"]
    alone = agreement(ratings(40, models=40))
    assert alone.rows[0]["within"] is None
    assert f"quality, task0, a and b: {NOT_WITHIN}." in alone.notes


def test_unscored_runs_and_mixed_versions_are_told() -> None:
    frame = ratings(20, models=2)
    frame.loc[frame.index[-3:], "value"] = np.nan
    frame.loc[0, "version"] = "2"
    table = agreement(frame)
    assert table.rows[0]["runs"] == 17
    notes = " ".join(table.notes)
    assert "b could not score 3 runs" in notes
    assert "a has scored in versions 1, 2" in notes
    assert "needs 3 models" in notes


def test_the_table_has_a_row_for_each_pair_and_one_for_all() -> None:
    frame = ratings(40, models=4)
    third = frame[frame["judge"] == "a"].assign(judge="c")
    rows = agreement(pd.concat([frame, third])).rows
    assert [row["judges"] for row in rows] == ["a and b", "a and c", "b and c", "all 3"]
    assert rows[1]["alpha"] == 1
    assert rows[0]["pearson_low"] < rows[0]["pearson"] < rows[0]["pearson_high"]
