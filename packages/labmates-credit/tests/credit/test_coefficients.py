"""Coefficients of agreement against published examples and well-known libraries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from labmates.stats.coefficients import Floats, concordance
from labmates_credit.coefficients import krippendorff_alpha, mean_difference, pearson, within_pearson

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


def test_alpha_of_the_published_example_is_that_of_the_library_krippendorff() -> None:
    assert round(krippendorff_alpha(FOUR_OBSERVERS), 3) == 0.815


def alpha_by_pairs(ratings: Floats) -> float:
    """Return alpha by its definition: disagreement of pairs within units over that of all pairs."""
    units = [column[~np.isnan(column)] for column in ratings.T]
    units = [unit for unit in units if len(unit) > 1]
    every = np.concatenate(units)

    def distance(first: float, second: float) -> float:
        low, high = sorted((first, second))
        between = ((every >= low) & (every <= high)).sum()
        return float(between - ((every == low).sum() + (every == high).sum()) / 2) if low != high else 0.0

    def disagreement(values: Floats) -> float:
        return sum(distance(x, y) ** 2 for x in values for y in values)

    observed = sum(disagreement(unit) / (len(unit) - 1) for unit in units) / len(every)
    return float(1 - observed / (disagreement(every) / len(every) / (len(every) - 1)))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([3, 1000]))
def test_alpha_is_what_its_definition_says(seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    ratings = rng.integers(0, levels, (3, 12)) / levels
    ratings[rng.random(ratings.shape) < 0.3] = N
    rated = (~np.isnan(ratings)).sum(axis=0) > 1
    if len(set(ratings[:, rated][~np.isnan(ratings[:, rated])])) > 1:
        assert krippendorff_alpha(ratings) == pytest.approx(alpha_by_pairs(ratings), abs=1e-12)


def test_alpha_knows_the_order_of_scores_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    ratings = rng.random((2, 30))
    assert krippendorff_alpha(ratings**3) == pytest.approx(krippendorff_alpha(ratings))


def simulated(r: float, means: tuple[float, float], n: int = 1239) -> Floats:
    """Return scores of two judges by five levels, with this correlation and these means."""
    latent = np.random.default_rng(3).multivariate_normal([0, 0], [[1, r], [r, 1]], n).T
    raw = np.array(means)[:, None] + 0.21 * latent
    scores: Floats = np.clip(np.rint(4 * raw), 0, 4) / 4
    return scores


@pytest.mark.parametrize(
    ("latent", "means", "expected"),
    [
        (0.967, (0.6, 0.6), (0.89, 0.89, 0.89)),
        (0.90, (0.75, 0.75), (0.84, 0.84, 0.83)),
        (0.655, (0.255, 0.395), (0.58, 0.48, 0.43)),
    ],
)
def test_a_shift_that_r_hides_shows_in_kappa_and_alpha(
    latent: float, means: tuple[float, float], expected: tuple[float, float, float]
) -> None:
    a, b = simulated(latent, means)
    kappa = concordance(1 + 4 * a, 1 + 4 * b)
    found = pearson(a, b), kappa, krippendorff_alpha(np.stack([a, b]))
    assert found == pytest.approx(expected, abs=0.035)
    assert kappa == pytest.approx(cohen_kappa_score((4 * a).astype(int), (4 * b).astype(int), weights="quadratic"))


def test_agreement_on_models_alone_is_told_apart_from_agreement_within_them() -> None:
    rng = np.random.default_rng(1)
    models = np.repeat(np.arange(34), 36)
    merit = rng.normal(0, 0.2, 34)[models] + 0.1 * rng.standard_normal(len(models))
    a, b = (merit + 0.1 * rng.standard_normal(len(models)) for _ in range(2))
    pooled, within = pearson(a, b), within_pearson(a, b, models)
    # Merit has a variance of 0.05, of which 0.01 lies within models; each judge adds 0.01.
    assert pooled == pytest.approx(0.05 / 0.06, abs=0.05)
    assert within == pytest.approx(0.5, abs=0.05)
    centred = [values - (np.bincount(models, values) / 36)[models] for values in (a, b)]
    assert within == pytest.approx(stats.pearsonr(*centred).statistic)


def test_within_groups_of_one_there_is_nothing_to_agree_on() -> None:
    assert np.isnan(within_pearson(np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.4, 0.8]), np.arange(3)))


@settings(max_examples=50, deadline=None)
@given(LEVELS, LEVELS)
def test_kappa_of_levels_and_ranks_are_those_of_the_libraries(a: Floats, b: Floats) -> None:
    if len(set(a)) > 1 and len(set(b)) > 1:
        kappa = cohen_kappa_score(a.astype(int), b.astype(int), weights="quadratic", labels=[1, 2, 3, 4, 5])
        assert concordance(a, b) == pytest.approx(kappa, abs=1e-9)
        assert pearson(a, b) == pytest.approx(stats.pearsonr(a, b).statistic, abs=1e-9)


def test_a_shift_lowers_concordance_and_alpha_and_leaves_r() -> None:
    a = np.array([0, 0.25, 0.5, 0.75, 0.5, 0])
    b = a + 0.25
    assert pearson(a, b) == pytest.approx(1)
    assert concordance(a, b) < 0.9
    assert krippendorff_alpha(np.stack([a, b])) < 0.9
    assert mean_difference(a, b) == pytest.approx(0.25)


def test_what_does_not_vary_is_not_defined() -> None:
    flat, other = np.full(5, 0.5), np.linspace(0, 1, 5)
    assert np.isnan(pearson(flat, other))
    assert np.isnan(concordance(flat, flat))
    assert concordance(flat, other) == 0
    assert np.isnan(krippendorff_alpha(np.stack([flat, flat])))
    assert np.isnan(krippendorff_alpha(np.full((2, 5), N)))
