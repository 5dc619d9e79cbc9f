"""Tests and fits over models."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates_profiles.bayes.evidence import (
    freedman_lane,
    indicators,
    leave_out_r2,
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


def _families(
    seed: int, sizes: list[int], games: int, effect: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcome and play of models, both alike within families, and the families."""
    rng, family = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    shared, own = rng.normal(size=(len(sizes), 1 + games)), rng.normal(size=(len(family), 1 + games))
    values = np.sqrt(0.8) * shared[family] + np.sqrt(0.2) * own
    return values[:, 0] + effect * values[:, 1], values[:, 1:], family


@pytest.mark.parametrize(("sizes", "games"), [([4] * 5, 1), ([5] * 7, 6), ([10, 6, 5, 4, 3, 2, 2, 1, 1, 1], 6)])
def test_models_of_a_family_are_not_taken_for_unrelated_ones(sizes: list[int], games: int) -> None:
    rejected = np.zeros((100, 2))
    for seed in range(100):
        outcome, tested, family = _families(seed, sizes, games)
        tests = [freedman_lane(outcome, tested, None, each, permutations=99) for each in (indicators(family), None)]
        rejected[seed] = [test.p <= 0.05 for test in tests]
        assert [test.families for test in tests] == [len(sizes), sum(sizes)]

    known, unknown = rejected.mean(axis=0)
    assert known <= 0.12 < unknown  # .05 would be exceeded by .07 in one study of 2,000


def test_an_effect_is_found_among_families() -> None:
    studies = (_families(seed, [5] * 7, 1, 1.0) for seed in range(20))
    found = [
        freedman_lane(outcome, tested, None, indicators(family), permutations=99).p
        for outcome, tested, family in studies
    ]
    assert np.mean(np.array(found) <= 0.05) >= 0.9


def test_families_of_one_model_change_nothing() -> None:
    data = _data(3, 0.3)
    each = np.eye(34)
    assert freedman_lane(*data, each, permutations=99) == freedman_lane(*data, permutations=99)
    assert leave_out_r2(data[0], data[1], each) == leave_out_r2(data[0], data[1])


def test_a_clear_effect_is_found() -> None:
    assert freedman_lane(*_data(3, 2.0), permutations=999).p == pytest.approx(0.001)


@pytest.mark.parametrize("size", [1, 1e3])
def test_an_effect_that_leaves_nothing_unexplained_has_an_infinite_statistic(size: float) -> None:
    tested = np.array([1.0, -1.0] * 8)  # 16 is a square, so nothing is rounded
    assert freedman_lane(size * tested, tested, permutations=99).statistic == np.inf


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

    found = leave_out_r2(outcome, predictors)
    assert found is not None
    assert found.value == pytest.approx(1 - np.sum(np.square(missed)) / np.sum(np.square(around)))


def test_leaving_out_a_family_is_as_fitting_without_it() -> None:
    outcome, predictors, family = _families(2, [4, 3, 2, 5, 1, 6], 2, 1.0)
    design, missed, around = np.column_stack([np.ones(21), predictors]), 0.0, 0.0
    for left in range(6):
        mine = family == left
        beta = np.linalg.lstsq(design[~mine], outcome[~mine], rcond=None)[0]
        missed += ((outcome[mine] - design[mine] @ beta) ** 2).sum()
        around += ((outcome[mine] - outcome[~mine].mean()) ** 2).sum()

    found = leave_out_r2(outcome, predictors, indicators(family))
    assert found is not None
    assert found.value == pytest.approx(1 - missed / around)
    assert leave_out_r2(outcome, np.column_stack([predictors, family == 0]), indicators(family)) is None


def test_noise_predicts_worse_than_the_mean() -> None:
    rng = np.random.default_rng(0)
    found = leave_out_r2(rng.normal(size=20), rng.normal(size=(20, 8)))
    assert found is not None
    assert found.value < 0
    assert leave_out_r2(rng.normal(size=8), rng.normal(size=(8, 8))) is None


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
    assert leave_out_r2(same, x[:, None]) is None
    explained = freedman_lane(0.1 + 0.3 * x, x**2, x[:, None], permutations=99)
    assert (explained.statistic, explained.p) == (0.0, 1.0)
    assert sign_flips(-same, permutations=99).statistic == -np.inf
    assert sign_flips(np.zeros(n), permutations=99).statistic == 0
