"""Predictions for models that have not been in the lab: their coverage, and what is said of models far outside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from labmates_profiles.prediction.fit import fit_prediction
from labmates_profiles.prediction.screening import Candidate, forecast, predictive_draws, standing
from tests.profiles.simulated_prediction import World, simulate_prediction


def of(data: object, at: int) -> Candidate:
    return Candidate(data.levels[at], data.errors[at], data.benchmarks[at])  # type: ignore[attr-defined]


def test_intervals_hold_their_nominal_coverage_on_models_left_out() -> None:
    held = runs_held = total = runs = 0
    for seed in range(2):
        study = simulate_prediction(np.random.default_rng([seed, 21]), between=1.0, models=24, observations=480)
        data = study.data
        for model in range(seed, 24, 4):
            fit = fit_prediction(data.without(model), "robust", draws=500, starts=1, seed=seed)
            expected, single = predictive_draws(fit, of(data, model), seed=seed)
            mine = data.model_of == model
            average = fit.data.conditions.mean(axis=0) @ study.truth.columns
            low, high = np.quantile(expected, [0.025, 0.975])
            held += bool(low <= study.expected[model] + average <= high)
            total += 1
            low, high = np.quantile(single, [0.025, 0.975])
            under_average = data.outcome[mine] + average - data.conditions[mine] @ study.truth.columns
            runs_held += int(((low <= under_average) & (under_average <= high)).sum())
            runs += int(mine.sum())
    assert held >= 10, f"of {total}, of which 11 are expected"
    assert 0.90 <= runs_held / runs <= 0.995


def test_data_sets_that_all_models_shared_make_a_prediction_on_them_no_wider() -> None:
    world = World({"task": 0.05}, shift=0.06, data_sets=1)
    data = simulate_prediction(np.random.default_rng(4), between=1.0, models=24, observations=480, world=world).data
    forecasts = [
        forecast(fit_prediction(one, "robust", draws=1000, starts=1), of(data, 0), "quality")
        for one in (data, replace(data, runs=None))
    ]
    ends = np.array([(one.mean, one.low, one.high, one.run_low, one.run_high) for one in forecasts])
    assert ends[0] == pytest.approx(ends[1], abs=0.15 * (ends[1, 2] - ends[1, 1]))


def test_a_model_far_outside_is_said_to_be_so_and_one_of_the_population_is_not() -> None:
    study = simulate_prediction(np.random.default_rng(8), models=30, observations=300)
    data = study.data
    inside = standing(data, Candidate(np.zeros(6), data.errors[0], np.zeros(4)))
    assert inside.where == "within"
    assert inside.reasons == ()
    assert inside.p is not None
    assert inside.p > 0.9
    outside = standing(data, Candidate(np.array([0, 0, 8.0, 0, 0, 0]), data.errors[0], np.zeros(4)))
    assert outside.where == "far outside"
    assert "o-ring is outside the range of the fitted models (z = +7." in outside.reasons[0]
    assert outside.leverage > outside.largest_leverage
    # Each disposition by itself is usual; together they are not, since these two go together.
    at_odds = standing(data, Candidate(np.array([0, 0, 0, 2.0, -2.0, 0]), data.errors[0], np.zeros(4)))
    assert at_odds.where == "far outside"
    assert abs(at_odds.z["common-pool"]) < 3
    assert any("distance of its dispositions" in reason for reason in at_odds.reasons)


def test_a_badly_measured_or_distant_model_is_predicted_with_a_wider_interval() -> None:
    study = simulate_prediction(np.random.default_rng(9), between=0.5, models=30, observations=600)
    data = replace(study.data, outcome=np.clip(study.data.outcome, 0, 1))
    fit = fit_prediction(data, "correlated", draws=1000, starts=1)
    known, vague = (Candidate(np.zeros(6), np.full(6, error), np.zeros(4)) for error in (0.01, 1.0))
    sure, unsure = (forecast(fit, one, "quality") for one in (known, vague))
    assert unsure.high - unsure.low > 1.3 * (sure.high - sure.low)
    assert sure.run_high - sure.run_low >= sure.high - sure.low
    far = forecast(fit, Candidate(np.array([0, 0, 0, 9.0, 0, 0]), np.full(6, 0.01), np.zeros(4)), "quality")
    assert far.mean == pytest.approx(1.0)
    assert far.high == 1.0
    assert forecast(fit, known, "quality") == sure, "the same seed gives the same forecast"
