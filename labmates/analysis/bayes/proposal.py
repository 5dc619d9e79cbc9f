"""What importance sampling draws from: mixtures of Student's t, folded where a coordinate can't be negative."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labmates.games.base import Array

FOLDED_WITHIN = 6.0
"""A coordinate whose mean is further from 0 than so many standard deviations is not folded: nothing is there."""


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
    """Student's t around one mean, with several widths; coordinates that can't be negative are folded at 0.

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
        """Return draws, shape ``(n, dimensions)``."""
        shares = np.array([one.share for one in self.tails])
        which = rng.choice(len(shares), size=n, p=shares / shares.sum())
        freedom = np.array([one.freedom for one in self.tails])[which]
        width = np.array([one.width for one in self.tails])[which]
        normal = rng.standard_normal((n, len(self.mean)))
        points = self.mean + normal * (width / np.sqrt(rng.chisquare(freedom) / freedom))[:, None] @ self.factor.T
        return np.asarray(np.where(self.folded, np.abs(points), points))

    def log_density(self, points: Array) -> Array:
        """Return the log density of points within the support, shape ``(points,)``."""
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

    def _reflections(self) -> list[Array]:
        """Return the signs with which a point may have been drawn."""
        spread = np.sqrt((self.factor**2).sum(axis=1)) * max(one.width for one in self.tails)
        near = np.flatnonzero(self.folded & (self.mean < FOLDED_WITHIN * spread))
        found = []
        for flipped in itertools.product((1.0, -1.0), repeat=len(near)):
            signs = np.ones(len(self.mean))
            signs[near] = flipped
            found.append(signs)
        return found
