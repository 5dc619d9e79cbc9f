"""Proposals of importance sampling: mixtures of Student's t, folded where a coordinate can't be negative."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labmates.stats.arrays import Array

FOLDED_WITHIN = 3.0
"""A coordinate whose mean is further from 0 than this, in standard deviations, is cut off there, since hardly anything
is beyond; the others are folded."""
MOST_FOLDED = 7
"""Each folded coordinate doubles the cost of the density, so the others are cut off."""


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
