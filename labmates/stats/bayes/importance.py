"""Adaptive importance sampling: independent draws from a density that is known up to a constant.

A proposal is placed at the mode, moved and shaped by a few rounds of weighted draws, then drawn from once. What the
weights say of their own quality (k-hat) is acted on: while it is bad, the proposal is adapted to what was found,
widened and drawn from more often (adaptive importance sampling; Bugallo et al., IEEE Signal Processing Magazine 2017).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from labmates.stats.arrays import Array
from labmates.stats.bayes.smoothing import GOOD_K, effective_draws, smooth

FOLDED_WITHIN = 3.0
"""A coordinate whose mean is further from 0 than this, in standard deviations, is cut off there, since hardly anything
is beyond; the others are folded."""
MOST_FOLDED = 7
"""Each folded coordinate doubles the cost of the density, so the others are cut off."""
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
class Tails:
    """One component: its share of the draws, how much wider than the whole it is, and its degrees of freedom."""

    share: float
    width: float
    freedom: float


NARROW = (Tails(0.85, 1.0, 6.0), Tails(0.15, 2.0, 3.0))
"""Most draws where the mass is, some wide ones, so that no weight can grow without bound."""
WIDE = (Tails(0.6, 1.3, 4.0), Tails(0.4, 3.0, 2.5))


@dataclass(frozen=True)
class Proposal:
    """Student's t around one mean, with several widths; coordinates that can't be negative are folded or cut off at 0.

    A standard deviation is drawn on its own scale as |x|. On the scale of its logarithm the weights near 0 would grow
    without bound, since a posterior is not 0 there.

    Attributes
    ----------
    mean
        Shape ``(dimensions,)``.
    factor
        Lower Cholesky factor of the covariance, shape ``(dimensions, dimensions)``.
    folded
        Which coordinates can't be negative, shape ``(dimensions,)``.
    """

    mean: Array
    factor: Array
    folded: Array
    tails: Sequence[Tails] = NARROW

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Draws, shape ``(n, dimensions)``."""
        drawn: list[Array] = []
        cut = np.setdiff1d(np.flatnonzero(self.folded), self._near())
        while (lacking := n - sum(map(len, drawn))) > 0:
            points = self._drawn(lacking, rng)
            drawn.append(points[(points[:, cut] >= 0).all(axis=1)][:lacking])
        points = np.concatenate(drawn)
        return np.asarray(np.where(self.folded, np.abs(points), points))

    def _drawn(self, n: int, rng: np.random.Generator) -> Array:
        shares = np.array([one.share for one in self.tails])
        which = rng.choice(len(shares), size=n, p=shares / shares.sum())
        freedom = np.array([one.freedom for one in self.tails])[which]
        width = np.array([one.width for one in self.tails])[which]
        normal = rng.standard_normal((n, len(self.mean)))
        reach = width / np.sqrt(rng.chisquare(freedom) / freedom)
        return np.asarray(self.mean + (normal * reach[:, None]) @ self.factor.T)

    def log_density(self, points: Array) -> Array:
        """The log density, up to a constant, of points within the support, shape ``(points,)``.

        The constant is what is cut off.
        """
        from scipy.linalg import solve_triangular

        parts = []
        for signs in self._reflections():
            away = solve_triangular(self.factor, (points * signs - self.mean).T, lower=True, check_finite=False)
            squares = (away**2).sum(axis=0)
            parts += [self._component(squares, one) for one in self.tails]
        return np.asarray(np.logaddexp.reduce(parts, axis=0))

    def _component(self, squares: Array, tails: Tails) -> Array:
        d, nu = len(self.mean), tails.freedom
        constant = math.lgamma((nu + d) / 2) - math.lgamma(nu / 2) - d / 2 * math.log(nu * math.pi)
        size = float(np.log(np.diagonal(self.factor)).sum()) + d * math.log(tails.width)
        shape = (nu + d) / 2 * np.log1p(squares / (nu * tails.width**2))
        return np.asarray(math.log(tails.share) + constant - size - shape)

    def _near(self) -> Array:
        """The folded coordinates: those of which much would lie below 0."""
        distance = self.mean / np.sqrt((self.factor**2).sum(axis=1))
        nearest = np.flatnonzero(self.folded & (distance < FOLDED_WITHIN))
        return nearest[np.argsort(distance[nearest])][:MOST_FOLDED]

    def _reflections(self) -> list[Array]:
        """The signs with which a point may have been drawn."""
        near = self._near()
        reflections = []
        for flipped in itertools.product((1.0, -1.0), repeat=len(near)):
            signs = np.ones(len(self.mean))
            signs[near] = flipped
            reflections.append(signs)
        return reflections


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
