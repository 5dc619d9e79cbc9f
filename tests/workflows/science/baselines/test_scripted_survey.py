"""The cells for samples on a map: honest repairs, tests that neighbours don't fool, and no table that stops them."""

from __future__ import annotations

import contextlib
import io
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labmates.tasks.base import Difficulty, accuracy
from labmates.tasks.geospatial.findings import GeospatialFindings
from labmates.tasks.geospatial.task import GeospatialTask
from labmates.tasks.schema import findings_schema_text
from labmates.workflows.science.baselines.cells import FILES, guarded, source
from labmates.workflows.science.baselines.facts import facts
from labmates.workflows.science.baselines.prompt import results_of
from labmates.workflows.science.baselines.stated import merge, read_fields, restate, state

TASK = GeospatialTask()
SCHEMA = f"## What the final paper has to state\n{findings_schema_text(TASK)}\n## Your role"
MENTIONS = {"grade_ppm": 5, "rock": 9}
MAIN = ("prepare", "survey_clean", "survey_model", "survey_folds")


def run(frame: pd.DataFrame, *cells: str, **given: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Run cells in one session; return what they print, what they found, and their variables."""
    names: dict[str, Any] = {"df": frame, "mentions": MENTIONS, "claims": {}, **given}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in cells:
            exec(compile(source(cell), cell, "exec"), names)
    return printed.getvalue(), merge(reversed(list(results_of(printed.getvalue())))), names


@cache
def table(seed: int, difficulty: Difficulty) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(TASK.generate(seed, difficulty).csv()))


@cache
def analysed(seed: int, difficulty: Difficulty) -> tuple[str, dict[str, Any], dict[str, Any]]:
    return run(table(seed, difficulty), *MAIN)


@pytest.mark.slow("tests/workflows/science/baselines/test_scripted_survey.py")
@pytest.mark.parametrize("difficulty", ["easy", "hard"])
def test_repairs_bring_back_the_true_sites_and_one_unit(difficulty: Difficulty) -> None:
    _, found, names = analysed(1, difficulty)
    truth, frame = TASK.generate(1, difficulty).truth, table(1, difficulty).drop_duplicates()
    assert found["sites"] == pytest.approx(truth.n_sites, abs=2)  # a second reading may be more than ten metres off
    assert found["swapped"] == (frame["easting_m"] > frame["northing_m"]).sum()
    sites = names["sites"]
    assert sites["easting_m"].max() < sites["northing_m"].min()
    assert sites[names["covs"]].notna().all(axis=None)
    assert sites["elevation_m"].between(100, 900).mean() > 0.99
    by_batch = sites.groupby("batch")["log_grade"].median()
    assert (by_batch - by_batch.median()).abs().max() < 3
    assert set(sites["kind"].value_counts().head(4).index) == set(sites["kind"][sites["kind"].str.len() > 3].unique())


@pytest.mark.slow("tests/workflows/science/baselines/test_scripted_survey.py")
def test_generalised_least_squares_calls_fewer_decoys_significant_than_ordinary_ones() -> None:
    """The honest baseline must not fall for smooth covariates, or the task's trap would be none."""
    for seed in (0, 1):
        _, found, names = analysed(seed, "easy")
        true = {one.name: 1 if one.sign == "+" else -1 for one in TASK.generate(seed, "easy").truth.covariates}
        stated = dict(found["drivers"])
        assert {name: int(np.sign(stated[name])) for name in true} == true
        x, y = names["X"], names["Y"]
        beta, rest, *_ = np.linalg.lstsq(x, y, rcond=None)
        error = np.sqrt(rest / (len(x) - x.shape[1]) * np.diag(np.linalg.inv(x.T @ x)))
        naive = [c for c, t in zip(names["covs"], (beta / error)[1:], strict=False) if abs(t) > 1.96]
        assert len(stated) < len(naive)
        assert len(set(stated) - set(true)) <= 1


def test_findings_travel_through_a_block_and_score_as_the_results_do() -> None:
    _, found, _ = analysed(1, "easy")
    fields = read_fields(SCHEMA)
    block = state(found, fields)
    assert set(block) == set(GeospatialFindings.model_fields)
    assert state(restate(block, fields), fields) == block
    truth = TASK.generate(1, "easy").truth
    assert accuracy(TASK.score(GeospatialFindings.model_validate(block), truth)) > 0.8


def test_facts_name_what_the_judge_without_a_model_looks_for() -> None:
    _, found, _ = analysed(1, "easy")
    told = " ".join(facts(found))
    for check in TASK.checks(TASK.generate(1, "easy").truth):
        assert check.holds(told) or check.name == "range told", check.name


def test_random_folds_look_better_than_blocks_and_kriging_than_regression_alone() -> None:
    for difficulty in ("easy", "hard"):
        r2 = analysed(1, difficulty)[1]["r2"]
        assert r2["random"] > r2["block"] > r2["plain"]


def test_the_check_keeps_what_holds_in_both_halves_and_drops_what_was_made_up() -> None:
    _, found, names = analysed(1, "easy")
    true = [[name, effect] for name, effect in found["drivers"]]
    quiet = [float(value) for value in names["P"][np.argmin(names["Y"])]]
    claims = {
        "drivers": [*([name, -effect] for name, effect in true[:1]), *true[1:], ["no_such_column", 1]],
        "hotspots": [*found["hotspots"], [*quiet, 300.0]],
    }
    printed, checked, _ = run(table(1, "easy"), "prepare", "survey_clean", "survey_check", claims=claims)
    assert [name for name, _ in checked["drivers"]] == [name for name, _ in true[1:]]
    assert [*quiet, 300.0] not in checked["hotspots"]
    assert checked["hotspots"]
    assert checked["held"] < checked["checked"]
    assert "not confirmed" in printed


def test_other_names_and_a_shuffled_table_are_read_the_same_way() -> None:
    frame = table(0, "easy")
    renamed = frame.rename(columns={"easting_m": "x_m", "northing_m": "y_m", "grade_ppm": "cu", "rock": "unit"})
    shuffled = renamed.sample(frac=1, random_state=1, ignore_index=True)
    printed, found, _ = run(shuffled, "prepare", "survey_clean", mentions={"cu": 5, "unit": 9})
    assert "layout: survey" in printed
    assert found["sites"] == TASK.generate(0, "easy").truth.n_sites
    assert found["percent"] == 1


def test_every_cell_of_the_layout_says_something_short() -> None:
    names = {**analysed(1, "hard")[2], "claims": {"drivers": [["soil_ph", 1]], "hotspots": [[1.0, 2.0, 100.0]]}}
    for cell in dict.fromkeys(FILES["survey"].values()):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if cell not in MAIN:
                exec(compile(source(cell), cell, "exec"), names)
        assert (40 < len(printed.getvalue()) < 1_600) == (cell not in MAIN), cell
    assert len(analysed(1, "hard")[0]) < 3_000


@pytest.mark.slow("tests/workflows/science/baselines/test_scripted_survey.py")
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 2**16),
    st.sampled_from(["constant", "empty", "one place", "one line", "no covariates", "no words", "all below", "few"]),
)
def test_a_map_of_an_odd_kind_gets_through(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    n = 310 if kind == "few" else 500
    frame = pd.DataFrame({"x": rng.uniform(0, 5_000, n).round(1), "y": rng.uniform(0, 5_000, n).round(1)})
    frame["grade"] = np.exp(rng.normal(3, 1, n)).round(2)
    for k in range(1 if kind == "no covariates" else 6):
        frame[f"c{k}"] = rng.normal(size=n).round(3)
    frame["rock"] = rng.choice(["a", "b", "c"], n)
    if kind == "constant":
        frame["grade"] = 5.5
    elif kind == "empty":
        frame.loc[5:, "grade"] = np.nan
    elif kind == "one place":
        frame[["x", "y"]] = 7.5
    elif kind == "one line":
        frame["y"] = 7.5
    elif kind == "no words":
        frame = frame.drop(columns="rock")
    elif kind == "all below":
        frame["grade"] = -0.5
    claims = {"drivers": [["c0", 1]], "hotspots": [[100.0, 100.0, 50.0]]}
    names: dict[str, Any] = {"df": frame, "mentions": {"grade": 3}, "claims": claims}
    for cell in ("prepare", *dict.fromkeys(FILES["survey"].values())):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(guarded(source(cell)), cell, "exec"), names)
        assert len(printed.getvalue()) < 2_500
