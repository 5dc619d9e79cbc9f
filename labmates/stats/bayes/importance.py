"""Adaptive importance sampling: independent draws from a density that is known up to a constant.

A proposal is placed at the mode, moved and shaped by a few rounds of weighted draws, then drawn from once. What the
weights say of their own quality (k-hat) is acted on: while it is bad, the proposal is adapted to what was found,
widened and drawn from more often (adaptive importance sampling; Bugallo et al., IEEE Signal Processing Magazine 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from labmates.stats.arrays import Array
from labmates.stats.bayes.proposal import NARROW, WIDE, Proposal
from labmates.stats.bayes.smoothing import GOOD_K, effective_draws, smooth

DRAWS = 4000
_OVERSAMPLED = 1.5
_ROUNDS = 4
_ROUND = 800
_FOR_EACH = 120
"""Draws of a round for each dimension where these are more: a covariance of many takes more of them."""
_GOOD_ROUND = 0.6
"""A round of which so large a share is effective needs no further one."""
_RETRIES = 3
LEAST_EFFECTIVE = 400
"""Fewer effective draws leave the ends of 95 % intervals uncertain (Vehtari et al., Bayesian Analysis 2021)."""
_LEAST_SHARE = 0.35
"""Where few draws are asked for, so large a share of them is enough."""
_WIDENED = 1.1


@dataclass(frozen=True)
class Target:
    """A density to draw from.

    Attributes
    ----------
    log_density
        Takes points of shape ``(n, dimensions)``, returns their log density up to a constant, shape ``(n,)``. Of
        coordinates that can't be negative it gets the size.
    start
        A point near the mode, shape ``(dimensions,)``.
    scale
        About how far the posterior reaches in each coordinate, within a factor of ten or so.
    nonnegative
        Which coordinates can't be negative, such as standard deviations.
    batch
        How many points `log_density` gets at once.
    """

    log_density: Callable[[Array], Array]
    start: Array
    scale: Array
    nonnegative: Array
    batch: int = 1000

    def at(self, points: Array) -> Array:
        """The log density of any number of points, by their size where they can't be negative."""
        inside = np.where(self.nonnegative, np.abs(points), points)
        batches = [inside[at : at + self.batch] for at in range(0, len(inside), self.batch)]
        return np.concatenate([self.log_density(batch) for batch in batches])


@dataclass(frozen=True)
class Sample:
    """Draws from a target.

    Attributes
    ----------
    points
        Equally weighted, in random order, shape ``(draws, dimensions)``.
    effective
        How many independent draws the weighted ones were worth, before they were made equal.
    k_hat
        See `labmates.stats.bayes.smoothing`; above 0.7 the draws can't be trusted.
    evaluations
        Of the density.
    attempts
        1, and one more for each time that k-hat was bad or effective draws were few.
    """

    points: Array
    effective: float
    k_hat: float
    evaluations: int
    attempts: int


def sample(target: Target, *, draws: int = DRAWS, seed: int = 0) -> Sample:
    """Independent draws from a density with one mode that matters.

    Raises
    ------
    ValueError
        If the density is 0 or not a number wherever it was looked at.
    """
    rng = np.random.default_rng(seed)
    counted = _Counted(target)
    proposal = _at_mode(counted)
    size = max(_ROUND, _FOR_EACH * len(target.start))
    for _ in range(_ROUNDS):
        points, weights, _, effective = _weighted(counted, proposal, size, rng)
        proposal = _adapted(proposal, points, weights, effective)
        if effective > _GOOD_ROUND * size:
            break
    attempts, n = 1, round(draws * _OVERSAMPLED)
    points, weights, k_hat, effective = _weighted(counted, proposal, n, rng)
    least = min(LEAST_EFFECTIVE, _LEAST_SHARE * draws)
    while (k_hat > GOOD_K or effective < least) and attempts <= _RETRIES:
        attempts, n = attempts + 1, n * 2
        proposal = _adapted(proposal, points, weights, effective)
        if k_hat > GOOD_K:
            proposal = Proposal(proposal.mean, proposal.factor * 1.2, proposal.folded, WIDE)
        points, weights, k_hat, effective = _weighted(counted, proposal, n, rng)
    chosen = _resampled(weights, draws, rng)
    return Sample(points[chosen], effective, k_hat, counted.evaluations, attempts)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS and LAPACK to one thread within.

    Matrices are small here, and threads that wait for each other cost more than they do: on two busy cores a fit of a
    second took four to six seconds of processor time with the threads of OpenBLAS.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


class _Counted:
    """A target that knows how often it was asked."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.evaluations = 0

    def at(self, points: Array) -> Array:
        self.evaluations += len(points)
        return self.target.at(points)


def climb(
    log_density: Callable[[Array], Array],
    start: Array,
    scale: Array,
    *,
    most_steps: int,
    bounds: Sequence[tuple[float, float]] | None = None,
) -> tuple[Array, float]:
    """The mode that a start leads to, in units of the scale, and its log density; by gradients from differences.

    Parameters
    ----------
    log_density
        As in `Target`.
    bounds
        Least and largest of each coordinate, in units of the scale.
    """
    from scipy.optimize import minimize

    d = len(start)
    steps = np.vstack([np.zeros(d), np.eye(d), -np.eye(d)]) * 1e-2

    def falling(unit: Array) -> tuple[float, Array]:
        values = -log_density((unit + steps) * scale)
        return float(values[0]), (values[1 : d + 1] - values[d + 1 :]) / (2 * steps[1, 0])

    options = {"maxiter": most_steps, "ftol": 1e-10}
    done = minimize(falling, start / scale, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return done.x, -float(done.fun)


def _at_mode(counted: _Counted) -> Proposal:
    """The proposal that fits the density's mode and its curvature there."""
    scale = counted.target.scale
    mode, _ = climb(counted.at, counted.target.start, scale, most_steps=200)
    curved = _curvature(counted, mode, scale)
    sizes, axes = np.linalg.eigh(curved)
    # Where the density is flat or bends upwards the guess of its reach stands.
    covariance = (axes / np.maximum(sizes, 0.1)) @ axes.T * np.outer(scale, scale)
    folded = counted.target.nonnegative
    mode = np.where(folded, np.abs(mode), mode)
    return Proposal(mode * scale, np.linalg.cholesky(covariance * _WIDENED), folded, NARROW)


def _curvature(counted: _Counted, mode: Array, scale: Array) -> Array:
    d = len(mode)
    steps = np.eye(d) * 0.1
    corners = [
        mode + first * steps[i] + second * steps[j]
        for i in range(d)
        for j in range(d)
        for first, second in ((1, 1), (1, -1), (-1, 1), (-1, -1))
    ]
    values = -counted.at(np.array(corners) * scale).reshape(d, d, 4)
    bent = (values[..., 0] - values[..., 1] - values[..., 2] + values[..., 3]) / (4 * 0.1**2)
    return np.asarray((bent + bent.T) / 2)


def _weighted(
    counted: _Counted, proposal: Proposal, n: int, rng: np.random.Generator
) -> tuple[Array, Array, float, float]:
    """Draws from the proposal, their smoothed weights, k-hat and the number of effective draws."""
    points = proposal.draw(n, rng)
    weights, k_hat = smooth(counted.at(points) - proposal.log_density(points))
    return points, weights, k_hat, effective_draws(weights)


def _adapted(proposal: Proposal, points: Array, weights: Array, effective: float) -> Proposal:
    """The proposal with the mean and covariance of what was found.

    The fewer draws these rest on, the more of the old covariance is kept, so that a few lucky draws can't narrow it.
    """
    mean = weights @ points
    away = points - mean
    weighted = (away * weights[:, None]).T @ away
    trust = effective / (effective + 2 * len(mean))
    covariance = trust * weighted * _WIDENED + (1 - trust) * proposal.factor @ proposal.factor.T
    mean = trust * mean + (1 - trust) * proposal.mean
    return Proposal(mean, np.linalg.cholesky(covariance), proposal.folded, proposal.tails)


def _resampled(weights: Array, n: int, rng: np.random.Generator) -> Array:
    """The places of draws that stand for the weighted ones (systematic resampling), in random order."""
    places = (np.arange(n) + rng.random()) / n
    chosen = np.searchsorted(np.cumsum(weights), places).clip(0, len(weights) - 1)
    return np.asarray(rng.permutation(chosen))
