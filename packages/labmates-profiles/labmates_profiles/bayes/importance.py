"""Adaptive importance sampling: independent draws from a density known up to a constant.

A proposal is placed at the mode, adapted in a few rounds of weighted draws, then sampled. If the quality of the weights
(k-hat) is bad, the proposal is adapted, widened and sampled with more draws (adaptive importance sampling; Bugallo et
al., IEEE Signal Processing Magazine 2017).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.bayes.smoothing import GOOD_K, effective_draws, smooth

FOLDED_WITHIN = 3.0
"""Distance of a coordinate's mean from 0, in standard deviations, up to which it is folded at 0. Beyond it, hardly any
mass is below 0, so negative draws are rejected."""
MOST_FOLDED = 7
"""Each folded coordinate doubles the cost of the density, so draws of further ones are rejected below 0."""
DRAWS = 4000
_OVERSAMPLED = 1.5
_ROUNDS = 4
_ROUND = 800
_FOR_EACH = 120
"""Minimum draws of a round per dimension: covariances of many dimensions need more."""
_GOOD_ROUND = 0.6
"""Share of effective draws from which no further round is needed."""
_RETRIES = 3
LEAST_EFFECTIVE = 400
"""Fewer effective draws leave the ends of 95 % intervals uncertain (Vehtari et al., Bayesian Analysis 2021)."""
_LEAST_SHARE = 0.35
"""Sufficient share of effective draws if few draws are requested."""
_WIDENED = 1.1


@dataclass(frozen=True)
class Tails:
    """A component of a proposal: its share of the draws, relative width, and degrees of freedom."""

    share: float
    width: float
    freedom: float


NARROW = (Tails(0.85, 1.0, 6.0), Tails(0.15, 2.0, 3.0))
"""Most draws near the mass and some wide ones, so that weights stay bounded."""
WIDE = (Tails(0.6, 1.3, 4.0), Tails(0.4, 3.0, 2.5))


@dataclass(frozen=True)
class Proposal:
    """A mixture of Student's t with one mean; nonnegative coordinates are folded or truncated at 0.

    A standard deviation is drawn on its own scale as |x|. On a log scale the weights near 0 would be unbounded, since
    the posterior is positive there.

    Attributes
    ----------
    mean
        Shape ``(dimensions,)``.
    factor
        Lower Cholesky factor of the covariance, shape ``(dimensions, dimensions)``.
    folded
        Nonnegative coordinates, as a mask of shape ``(dimensions,)``.
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
        shares, widths, freedoms = np.array([(tails.share, tails.width, tails.freedom) for tails in self.tails]).T
        which = rng.choice(len(shares), size=n, p=shares / shares.sum())
        freedom = freedoms[which]
        width = widths[which]
        normal = rng.standard_normal((n, len(self.mean)))
        reach = width / np.sqrt(rng.chisquare(freedom) / freedom)
        return np.asarray(self.mean + (normal * reach[:, None]) @ self.factor.T)

    def log_density(self, points: Array) -> Array:
        """The log density, up to the constant of truncation, of points within the support, shape ``(points,)``."""
        from scipy.linalg import solve_triangular

        parts = []
        for signs in self._reflections():
            distance = solve_triangular(self.factor, (points * signs - self.mean).T, lower=True, check_finite=False)
            squares = (distance**2).sum(axis=0)
            parts += [self._component(squares, tails) for tails in self.tails]
        return np.asarray(np.logaddexp.reduce(parts, axis=0))

    def _component(self, squares: Array, tails: Tails) -> Array:
        d, nu = len(self.mean), tails.freedom
        constant = math.lgamma((nu + d) / 2) - math.lgamma(nu / 2) - d / 2 * math.log(nu * math.pi)
        size = float(np.log(np.diagonal(self.factor)).sum()) + d * math.log(tails.width)
        shape = (nu + d) / 2 * np.log1p(squares / (nu * tails.width**2))
        return np.asarray(math.log(tails.share) + constant - size - shape)

    def _near(self) -> Array:
        """The folded coordinates: those with much mass below 0."""
        distance = self.mean / np.sqrt((self.factor**2).sum(axis=1))
        nearest = np.flatnonzero(self.folded & (distance < FOLDED_WITHIN))
        return nearest[np.argsort(distance[nearest])][:MOST_FOLDED]

    def _reflections(self) -> list[Array]:
        """The possible signs of a drawn point."""
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
        Maps points of shape ``(n, dimensions)`` to their log density up to a constant, shape ``(n,)``; nonnegative
        coordinates are given by their absolute value.
    start
        A point near the mode, shape ``(dimensions,)``.
    scale
        Rough extent of the posterior in each coordinate, within a factor of ten or so.
    nonnegative
        Mask of nonnegative coordinates, such as standard deviations.
    batch
        Maximum number of points per call of `log_density`.
    """

    log_density: Callable[[Array], Array]
    start: Array
    scale: Array
    nonnegative: Array
    batch: int = 1000

    def at(self, points: Array) -> Array:
        """The log density of any number of points."""
        inside = np.where(self.nonnegative, np.abs(points), points)
        batches = [inside[at : at + self.batch] for at in range(0, len(inside), self.batch)]
        return np.concatenate([self.log_density(batch) for batch in batches])


@dataclass(frozen=True)
class Diagnostics:
    """Diagnostics of draws from importance sampling.

    Attributes
    ----------
    effective
        Effective number of draws before resampling.
    k_hat
        See `labmates_profiles.bayes.smoothing`; above 0.7 the draws can't be trusted.
    warnings
        Problems with their remedies.
    """

    draws: int
    effective: float
    k_hat: float
    warnings: tuple[str, ...] = ()


def sample(target: Target, *, draws: int = DRAWS, seed: int = 0) -> tuple[Array, Diagnostics]:
    """Independent draws from a density with one mode that matters, and their diagnostics.

    Returns
    -------
    points
        Equally weighted, in random order, shape ``(draws, dimensions)``.
    diagnostics

    Raises
    ------
    ValueError
        If the density is 0 or NaN at all evaluated points.
    """
    rng = np.random.default_rng(seed)
    proposal = _at_mode(target)
    size = max(_ROUND, _FOR_EACH * len(target.start))
    for _ in range(_ROUNDS):
        points, weights, _, effective = _weighted(target, proposal, size, rng)
        proposal = _adapted(proposal, points, weights, effective)
        if effective > _GOOD_ROUND * size:
            break
    attempts, n = 1, round(draws * _OVERSAMPLED)
    points, weights, k_hat, effective = _weighted(target, proposal, n, rng)
    least = min(LEAST_EFFECTIVE, _LEAST_SHARE * draws)
    while (k_hat > GOOD_K or effective < least) and attempts <= _RETRIES:
        attempts, n = attempts + 1, n * 2
        proposal = _adapted(proposal, points, weights, effective)
        if k_hat > GOOD_K:
            proposal = Proposal(proposal.mean, proposal.factor * 1.2, proposal.folded, WIDE)
        points, weights, k_hat, effective = _weighted(target, proposal, n, rng)
    chosen = _resampled(weights, draws, rng)
    return points[chosen], Diagnostics(draws, effective, k_hat, warnings(k_hat, effective, attempts))


def warnings(k_hat: float, effective: float, attempts: int) -> tuple[str, ...]:
    """The problems of draws that took this number of attempts."""
    if k_hat > GOOD_K:
        return (
            f"k-hat is {k_hat:.2f}, above {GOOD_K}: a few draws carry most of the weight, even after the "
            f"proposal was adapted, widened and sampled with more draws ({attempts} attempts), so means and "
            "intervals can't be trusted. Compare the coefficients with those of least squares beside them. Often the "
            "cause is too little data for the model: more models or games, or the simpler specification, help.",
        )
    if effective < LEAST_EFFECTIVE:
        return (
            f"only {effective:.0f} effective draws, fewer than {LEAST_EFFECTIVE}: the ends of 95 % intervals "
            "are uncertain; ask for more draws.",
        )
    return ()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and LAPACK to one thread.

    The matrices are small, so threads cost more than they save: on two busy cores, a fit of one second took four to six
    seconds of processor time with the threads of OpenBLAS.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


def climb(
    log_density: Callable[[Array], Array],
    start: Array,
    scale: Array,
    *,
    most_steps: int,
    bounds: Sequence[tuple[float, float]] | None = None,
) -> tuple[Array, float]:
    """The mode reached from a start, in units of the scale, and its log density; gradients are differences.

    Parameters
    ----------
    log_density
        As in `Target`.
    bounds
        Bounds of each coordinate, in units of the scale.
    """
    from scipy.optimize import minimize

    d = len(start)
    steps = np.vstack([np.zeros(d), np.eye(d), -np.eye(d)]) * 1e-2

    def negative(unit: Array) -> tuple[float, Array]:
        values = -log_density((unit + steps) * scale)
        return float(values[0]), (values[1 : d + 1] - values[d + 1 :]) / (2 * steps[1, 0])

    options = {"maxiter": most_steps, "ftol": 1e-10}
    result = minimize(negative, start / scale, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return result.x, -float(result.fun)


def _at_mode(target: Target) -> Proposal:
    """The proposal at the density's mode, with its curvature."""
    scale = target.scale
    mode, _ = climb(target.at, target.start, scale, most_steps=200)
    curvature = _curvature(target, mode, scale)
    sizes, axes = np.linalg.eigh(curvature)
    # Where the density is flat or convex, the given scale is used.
    covariance = (axes / np.maximum(sizes, 0.1)) @ axes.T * np.outer(scale, scale)
    folded = target.nonnegative
    mode = np.where(folded, np.abs(mode), mode)
    return Proposal(mode * scale, np.linalg.cholesky(covariance * _WIDENED), folded, NARROW)


def _curvature(target: Target, mode: Array, scale: Array) -> Array:
    d = len(mode)
    steps = np.eye(d) * 0.1
    corners = [
        mode + first * steps[i] + second * steps[j]
        for i in range(d)
        for j in range(d)
        for first, second in ((1, 1), (1, -1), (-1, 1), (-1, -1))
    ]
    values = -target.at(np.array(corners) * scale).reshape(d, d, 4)
    second = (values[..., 0] - values[..., 1] - values[..., 2] + values[..., 3]) / (4 * 0.1**2)
    return np.asarray((second + second.T) / 2)


def _weighted(
    target: Target, proposal: Proposal, n: int, rng: np.random.Generator
) -> tuple[Array, Array, float, float]:
    """Draws from the proposal, their smoothed weights, k-hat and the number of effective draws."""
    points = proposal.draw(n, rng)
    weights, k_hat = smooth(target.at(points) - proposal.log_density(points))
    return points, weights, k_hat, effective_draws(weights)


def _adapted(proposal: Proposal, points: Array, weights: Array, effective: float) -> Proposal:
    """The proposal with the weighted mean and covariance of draws.

    With few effective draws, more of the old covariance is kept, so that a few lucky draws can't narrow it.
    """
    mean = weights @ points
    deviations = points - mean
    weighted = (deviations * weights[:, None]).T @ deviations
    trust = effective / (effective + 2 * len(mean))
    covariance = trust * weighted * _WIDENED + (1 - trust) * proposal.factor @ proposal.factor.T
    mean = trust * mean + (1 - trust) * proposal.mean
    return Proposal(mean, np.linalg.cholesky(covariance), proposal.folded, proposal.tails)


def _resampled(weights: Array, n: int, rng: np.random.Generator) -> Array:
    """Indices of equally weighted draws (systematic resampling), in random order."""
    places = (np.arange(n) + rng.random()) / n
    chosen = np.searchsorted(np.cumsum(weights), places).clip(0, len(weights) - 1)
    return np.asarray(rng.permutation(chosen))
