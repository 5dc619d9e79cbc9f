"""Adaptive importance sampling, on densities whose moments are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from labmates_profiles.bayes.importance import WIDE, Proposal, Target, sample
from labmates_profiles.bayes.smoothing import GOOD_K


def test_a_folded_proposal_is_a_density() -> None:
    proposal = Proposal(np.array([0.5]), np.array([[0.8]]), np.array([True]), WIDE)

    mass, _ = integrate.quad(lambda x: float(np.exp(proposal.log_density(np.array([[x]])))[0]), 0, np.inf)

    assert mass == pytest.approx(1, abs=1e-6)


def test_draws_of_a_proposal_have_its_density() -> None:
    proposal = Proposal(np.array([0.3, -1.0]), np.array([[0.5, 0.0], [0.4, 0.9]]), np.array([True, False]))
    points = proposal.draw(40_000, np.random.default_rng(1))

    # The mean over draws of any density over theirs is 1.
    other = stats.halfnorm.logpdf(points[:, 0], scale=0.6) + stats.norm.logpdf(points[:, 1], -1)

    assert (points[:, 0] >= 0).all()
    assert np.exp(other - proposal.log_density(points)).mean() == pytest.approx(1, abs=0.03)


def test_a_correlated_normal_comes_back_from_a_poor_guess() -> None:
    mean, covariance = np.array([3.0, -2.0, 0.5]), np.array([[4.0, 1.5, 0.0], [1.5, 1.0, 0.2], [0.0, 0.2, 0.3]])
    normal = stats.multivariate_normal(mean, covariance)
    target = Target(normal.logpdf, np.zeros(3), np.array([1.0, 3.0, 2.0]), np.zeros(3, dtype=bool))

    points, found = sample(target, draws=8000, seed=2)

    assert found.k_hat <= 0.5
    assert found.warnings == ()
    assert found.effective > 6000
    assert points.mean(axis=0) == pytest.approx(mean, abs=0.1)
    assert np.cov(points.T) == pytest.approx(covariance, abs=0.25)


def test_a_standard_deviation_that_may_be_zero_is_drawn_right() -> None:
    """Much of the mass lies at 0, where proposals on the scale of logarithms fail."""
    scale = np.array([0.05, 2.0])

    def log_density(points: np.ndarray) -> np.ndarray:
        return np.asarray(stats.halfnorm.logpdf(points, scale=scale).sum(axis=1))

    target = Target(log_density, np.array([0.03, 1.0]), np.array([0.02, 1.0]), np.ones(2, dtype=bool))

    points, found = sample(target, draws=8000, seed=0)

    assert found.k_hat <= GOOD_K
    assert (points >= 0).all()
    quantiles = np.quantile(points, [0.025, 0.5, 0.975], axis=0)
    expected = np.array([stats.halfnorm.ppf([0.025, 0.5, 0.975], scale=one) for one in scale]).T
    assert quantiles == pytest.approx(expected, rel=0.25)
    assert quantiles[1:] == pytest.approx(expected[1:], rel=0.05)


def test_bad_k_hat_is_acted_on_and_stays_bad_only_where_nothing_helps() -> None:
    """Tails that fall as slowly as those of a Cauchy in six dimensions are beyond any of our proposals at first."""
    heavy = stats.multivariate_t(np.zeros(6), np.eye(6), df=0.15)
    target = Target(heavy.logpdf, np.full(6, 0.5), np.full(6, 1.0), np.zeros(6, dtype=bool))

    _, found = sample(target, draws=1000, seed=0)

    assert found.k_hat > GOOD_K
    [warning] = found.warnings
    assert "(4 attempts)" in warning


def test_the_same_seed_gives_the_same_draws() -> None:
    normal = stats.norm(1, 2)
    target = Target(lambda points: normal.logpdf(points[:, 0]), np.zeros(1), np.ones(1), np.zeros(1, dtype=bool))

    assert (sample(target, seed=5)[0] == sample(target, seed=5)[0]).all()
    assert (sample(target, seed=5)[0] != sample(target, seed=6)[0]).any()


def test_the_density_is_asked_in_batches() -> None:
    sizes = []

    def log_density(points: np.ndarray) -> np.ndarray:
        sizes.append(len(points))
        return np.asarray(-0.5 * (points**2).sum(axis=1))

    sample(Target(log_density, np.ones(2), np.ones(2), np.zeros(2, dtype=bool), batch=100), draws=500)

    assert max(sizes) == 100


def test_a_density_that_is_nowhere_is_refused() -> None:
    target = Target(lambda points: np.full(len(points), -np.inf), np.ones(1), np.ones(1), np.zeros(1, dtype=bool))

    with np.errstate(invalid="ignore"), pytest.raises(ValueError):
        sample(target)
