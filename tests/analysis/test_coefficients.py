"""Coefficients of agreement against published examples and well-known libraries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from labmates.analysis.coefficients import (
    Floats,
    concordance,
    kendall,
    krippendorff_alpha,
    mean_difference,
    pearson,
    spearman,
)

N = np.nan
FOUR_OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
        [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
    ]
)
"""The example of Krippendorff (2011), section C: four observers, twelve units, some of them missing."""

LEVELS = arrays(np.float64, 12, elements=st.integers(1, 5).map(float))


def once(n: int) -> Floats:
    return np.ones((1, n))


def test_alpha_of_the_published_example_is_that_of_the_paper() -> None:
    assert round(krippendorff_alpha(FOUR_OBSERVERS, once(12))[0], 3) == 0.849


def alpha_by_pairs(ratings: Floats) -> float:
    """Return alpha by its definition: disagreement of pairs within units over that of all pairs."""
    units = [column[~np.isnan(column)] for column in ratings.T]
    units = [unit for unit in units if len(unit) > 1]
    every = np.concatenate(units)
    observed = sum(((unit[:, None] - unit) ** 2).sum() / (len(unit) - 1) for unit in units) / len(every)
    expected = ((every[:, None] - every) ** 2).sum() / len(every) / (len(every) - 1)
    return float(1 - observed / expected)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31))
def test_alpha_is_what_its_definition_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ratings = rng.random((3, 15))
    ratings[rng.random(ratings.shape) < 0.3] = N
    if (~np.isnan(ratings)).sum(axis=0).max() > 1:
        assert krippendorff_alpha(ratings, once(15))[0] == pytest.approx(alpha_by_pairs(ratings))


@settings(max_examples=50, deadline=None)
@given(LEVELS, LEVELS)
def test_kappa_of_levels_and_ranks_are_those_of_the_libraries(a: Floats, b: Floats) -> None:
    if len(set(a)) > 1 and len(set(b)) > 1:
        kappa = cohen_kappa_score(a.astype(int), b.astype(int), weights="quadratic", labels=[1, 2, 3, 4, 5])
        assert concordance(a, b, once(12))[0] == pytest.approx(kappa, abs=1e-9)
        assert pearson(a, b, once(12))[0] == pytest.approx(stats.pearsonr(a, b).statistic, abs=1e-9)
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-9)
        assert kendall(a, b) == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-9)


def test_a_shift_lowers_concordance_and_alpha_and_leaves_r() -> None:
    a = np.array([0, 0.25, 0.5, 0.75, 0.5, 0])
    b = a + 0.25
    assert pearson(a, b, once(6))[0] == pytest.approx(1)
    assert concordance(a, b, once(6))[0] < 0.9
    assert krippendorff_alpha(np.stack([a, b]), once(6))[0] < 0.9
    assert mean_difference(a, b, once(6))[0] == pytest.approx(0.25)


def test_what_does_not_vary_is_not_defined() -> None:
    flat, other = np.full(5, 0.5), np.linspace(0, 1, 5)
    assert np.isnan(pearson(flat, other, once(5))[0])
    assert np.isnan(concordance(flat, flat, once(5))[0])
    assert concordance(flat, other, once(5))[0] == 0
    assert np.isnan(krippendorff_alpha(np.stack([flat, flat]), once(5))[0])
    assert np.isnan(krippendorff_alpha(np.full((2, 5), N), once(5))[0])
    assert np.isnan(spearman(flat, other))
    assert np.isnan(kendall(flat, other))
    assert np.isnan(spearman(np.array([]), np.array([])))


@settings(max_examples=30, deadline=None)
@given(LEVELS, LEVELS, st.integers(0, 2**31))
def test_weights_are_repetitions(a: Floats, b: Floats, seed: int) -> None:
    weights = np.random.default_rng(seed).integers(0, 4, (1, 12)).astype(float)
    times = weights[0].astype(int)
    if times.sum() < 3:
        return
    long_a, long_b = np.repeat(a, times), np.repeat(b, times)
    for coefficient in (pearson, concordance, mean_difference):
        expected = coefficient(long_a, long_b, once(len(long_a)))
        assert coefficient(a, b, weights) == pytest.approx(expected, nan_ok=True, abs=1e-9)
    expected = krippendorff_alpha(np.stack([long_a, long_b]), once(len(long_a)))
    assert krippendorff_alpha(np.stack([a, b]), weights) == pytest.approx(expected, nan_ok=True, abs=1e-9)
