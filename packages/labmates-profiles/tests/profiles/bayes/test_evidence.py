"""Tests and fits over models."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates_profiles.bayes.evidence import (
    freedman_lane,
    leave_one_out_r2,
    leverage,
    sign_flips,
    variance_inflation,
)


def _data(seed: int, effect: float = 0.0, n: int = 34) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    controls = rng.normal(size=(n, 3))
    tested = rng.normal(size=(n, 2)) + controls[:, :1]
    return controls @ [1.0, -1.0, 0.5] + effect * tested[:, 0] + rng.standard_t(4, n), tested, controls


def test_the_statistic_is_the_f_of_two_nested_fits() -> None:
    outcome, tested, controls = _data(1, 0.5)

    found = freedman_lane(outcome, tested, controls, permutations=99)

    ones = np.ones((len(outcome), 1))
    designs = (np.hstack([ones, controls]), np.hstack([ones, controls, tested]))
    rest = [float(np.linalg.lstsq(design, outcome, rcond=None)[1][0]) for design in designs]
    assert found.statistic == pytest.approx((rest[0] - rest[1]) / 2 / (rest[1] / (34 - 6)))
    assert found.units == 34


def test_a_true_null_is_rejected_as_often_as_it_should_be() -> None:
    rejected = [freedman_lane(*_data(seed), permutations=199).p <= 0.05 for seed in range(400)]

    assert 0.02 <= np.mean(rejected) <= 0.085


def test_a_clear_effect_is_found() -> None:
    assert freedman_lane(*_data(3, 2.0), permutations=999).p == pytest.approx(0.001)


def test_without_controls_p_is_that_of_all_permutations() -> None:
    outcome, tested = np.array([0.1, 0.3, 0.2, 0.9, 0.8, 1.2]), np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    every = [abs(np.corrcoef(list(one), tested)[0, 1]) for one in itertools.permutations(outcome)]
    exact = np.mean(np.array(every) >= every[0] - 1e-12)

    assert freedman_lane(outcome, tested).p == pytest.approx(exact, abs=0.006)


def test_predictors_that_the_controls_determine_are_refused() -> None:
    outcome, _, controls = _data(0)
    with pytest.raises(ValueError, match="determine"):
        freedman_lane(outcome, controls @ [1.0, 2.0, 3.0], controls)


def test_more_coefficients_than_models_are_refused() -> None:
    outcome, tested, controls = _data(0, n=6)
    with pytest.raises(ValueError, match="6 models are too few for 6 coefficients"):
        freedman_lane(outcome, tested, controls)


def test_sign_flips_are_near_the_exact_test() -> None:
    differences = np.array([0.3, 0.1, -0.1, 0.4, 0.2, 0.25, -0.05])
    every = [abs(np.mean(differences * signs)) for signs in itertools.product((1, -1), repeat=7)]
    exact = np.mean(np.array(every) >= abs(differences.mean()) - 1e-12)

    assert sign_flips(differences).p == pytest.approx(exact, abs=0.012)


def test_leaving_out_each_model_is_as_fitting_without_it() -> None:
    outcome, tested, controls = _data(5, 1.0)
    predictors = np.hstack([tested, controls])
    missed, around = [], []
    for at in range(34):
        others = np.arange(34) != at
        design = np.column_stack([np.ones(34), predictors])
        beta = np.linalg.lstsq(design[others], outcome[others], rcond=None)[0]
        missed.append(outcome[at] - design[at] @ beta)
        around.append(outcome[at] - outcome[others].mean())

    found = leave_one_out_r2(outcome, predictors)
    assert found is not None
    assert found.value == pytest.approx(1 - np.sum(np.square(missed)) / np.sum(np.square(around)))


def test_noise_predicts_worse_than_the_mean() -> None:
    rng = np.random.default_rng(0)
    found = leave_one_out_r2(rng.normal(size=20), rng.normal(size=(20, 8)))
    assert found is not None
    assert found.value < 0
    assert leave_one_out_r2(rng.normal(size=8), rng.normal(size=(8, 8))) is None


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5))
def test_inflation_and_leverage_are_what_textbooks_say(seed: int, k: int) -> None:
    predictors = np.random.default_rng(seed).normal(size=(25, k))

    inflated = variance_inflation(predictors)
    own = leverage(predictors)

    correlation = np.atleast_2d(np.corrcoef(predictors.T))
    assert inflated == pytest.approx(np.diag(np.linalg.inv(correlation)), rel=1e-6)
    assert own.sum() == pytest.approx(k + 1)
    assert (own > 0).all()
    assert (own <= 1 + 1e-12).all()


def test_copies_inflate_without_bound_and_constants_have_no_inflation() -> None:
    x = np.random.default_rng(0).normal(size=20)

    found = variance_inflation(np.column_stack([x, 2 * x + 1, np.ones(20)]))

    assert np.isinf(found[:2]).all()
    assert np.isnan(found[2])


@pytest.mark.parametrize("n", [6, 7, 12])
def test_values_that_are_alike_but_for_rounding_tell_nothing(n: int) -> None:
    x, same = np.random.default_rng(0).normal(size=n), np.full(n, 0.1)

    assert np.isnan(variance_inflation(np.column_stack([x, same]))[1])
    assert leave_one_out_r2(same, x[:, None]) is None
    explained = freedman_lane(0.1 + 0.3 * x, x**2, x[:, None], permutations=99)
    assert (explained.statistic, explained.p) == (0.0, 1.0)
    assert sign_flips(-same, permutations=99).statistic == -np.inf
    assert sign_flips(np.zeros(n), permutations=99).statistic == 0
