"""Pareto-smoothed weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from labmates_profiles.bayes.smoothing import GOOD_K, effective_draws, fit_tail, smooth


@pytest.mark.parametrize("shape", [0.1, 0.3, 0.5, 0.9])
def test_the_shape_of_a_pareto_tail_is_found(shape: float) -> None:
    values = np.sort(stats.genpareto.rvs(shape, scale=2.0, size=20_000, random_state=3))

    k, scale = fit_tail(values)

    assert k == pytest.approx(shape, abs=0.04)
    assert scale == pytest.approx(2.0, rel=0.05)


def test_the_fit_of_the_tail_is_near_that_of_maximum_likelihood() -> None:
    values = np.sort(stats.genpareto.rvs(0.4, size=5000, random_state=1))

    k, scale = fit_tail(values)
    shape, _, size = stats.genpareto.fit(values, floc=0)

    assert k == pytest.approx(shape, abs=0.02)
    assert scale == pytest.approx(size, rel=0.03)


@pytest.mark.parametrize(("freedom", "good"), [(30.0, True), (1.1, False)])
def test_k_hat_tells_a_proposal_with_tails_too_thin(freedom: float, good: bool) -> None:
    """Of a normal proposal for Student's t the weights have no mean; of the other way round all is well."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal(20_000) * (1.0 if not good else 1.3)
    target = stats.norm.logpdf(points) if good else stats.t.logpdf(points, freedom)
    proposal = stats.norm.logpdf(points, scale=1.3) if good else stats.norm.logpdf(points)

    _, k_hat = smooth(target - proposal)

    assert (k_hat <= GOOD_K) == good


def test_equal_weights_stay_equal() -> None:
    weights, k_hat = smooth(np.zeros(500))

    assert k_hat == 0
    assert weights == pytest.approx(1 / 500)
    assert effective_draws(weights) == pytest.approx(500)


def test_weights_of_a_handful_of_draws_are_said_to_be_bad() -> None:
    log_weights = np.full(1000, -np.inf)
    log_weights[:3] = 0.0

    weights, k_hat = smooth(log_weights)

    assert k_hat == np.inf
    assert effective_draws(weights) == pytest.approx(3)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_log_weights_that_are_no_numbers_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="log weights"):
        smooth(np.array([0.0, bad]))


def test_log_weights_without_any_mass_are_refused() -> None:
    with pytest.raises(ValueError, match="log weights"):
        smooth(np.full(10, -np.inf))


@given(
    hnp.arrays(float, st.integers(30, 300), elements=st.integers(-300, 300).map(lambda n: n / 16)),
    st.integers(-500, 500),
)
def test_weights_sum_to_one_keep_their_order_and_know_no_constant(log_weights: np.ndarray, constant: int) -> None:
    weights, k_hat = smooth(log_weights)
    shifted, shifted_k = smooth(log_weights + constant)

    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    assert shifted == pytest.approx(weights, rel=1e-6, abs=1e-9)
    assert np.isfinite(k_hat) == np.isfinite(shifted_k)
    order = np.argsort(log_weights, kind="stable")
    assert (np.diff(weights[order]) >= -1e-9).all()
