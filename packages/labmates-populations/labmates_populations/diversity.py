"""Diversity of strategies within a set, and distance between sets (collective-behaviour paper, section 4.2).

All measures use vectors of cooperation rates, one row per strategy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

Vectors = NDArray[np.float64]
"""Shape ``(strategies, situations)``, entries in [0, 1]."""


def mean_pairwise_distance(vectors: Vectors) -> float | None:
    """The mean Euclidean distance of all pairs relative to uniformly random vectors; None for fewer than two.

    Two random vectors of d entries have the mean squared distance d/6; the root of it is the reference.
    """
    count, size = vectors.shape
    if count < 2:
        return None
    return float(pdist(vectors).mean() / np.sqrt(size / 6))


def takes_turns(moves: Vectors) -> NDArray[np.bool_]:
    """Whether strategies change their move twice or more while others do not, as schedules do.

    Parameters
    ----------
    moves
        Cooperation rates in each round while all others cooperate, ``(strategies, rounds)``. The last round is
        ignored, and random strategies do not take turns.
    """
    before_last = moves[:, :-1]
    changes = (np.diff(before_last, axis=1) != 0).sum(axis=1)
    return np.asarray((changes >= 2) & np.isin(before_last, (0, 1)).all(axis=1))


def cohens_d(first: Vectors, second: Vectors) -> float | None:
    """The distance of two sets' centroids over their pooled standard deviation; None where it is undefined.

    A set's variance is the sum of squared distances from its centroid over its size less one; the variances are pooled
    by their degrees of freedom.
    """
    degrees = len(first) + len(second) - 2
    if degrees < 1 or not len(first) or not len(second):
        return None
    within = sum(float(((vectors - vectors.mean(axis=0)) ** 2).sum()) for vectors in (first, second)) / degrees
    apart = float(np.linalg.norm(first.mean(axis=0) - second.mean(axis=0)))
    return apart / float(np.sqrt(within)) if within > 0 else None


def participation_ratio(vectors: Vectors) -> float | None:
    """The effective number of dimensions, (Σλ)²/Σλ² of the covariance's eigenvalues; None if all vectors are equal.

    The inner products of the (few) strategies have the same nonzero eigenvalues as the covariance of the (many)
    situations, and both sums are traces, so no eigenvalues are computed.
    """
    centred = vectors - vectors.mean(axis=0)
    inner = centred @ centred.T
    squares = float((inner**2).sum())
    return float(np.trace(inner)) ** 2 / squares if squares > 1e-24 else None


@dataclass(frozen=True)
class Map:
    """Principal components of strategies.

    Attributes
    ----------
    points
        Shape ``(strategies, components)``.
    explained
        Share of the variance that each component explains.
    mean, axes
        The projection of other vectors is ``(vectors - mean) @ axes``.
    """

    points: NDArray[np.float64]
    explained: NDArray[np.float64]
    mean: NDArray[np.float64]
    axes: NDArray[np.float64]

    def project(self, vectors: Vectors) -> NDArray[np.float64]:
        """Map coordinates of other strategies."""
        return np.asarray((vectors - self.mean) @ self.axes)


def principal_components(vectors: Vectors, components: int = 2) -> Map:
    """The map of strategies; the first component grows with the cooperation rate.

    Each other axis has a positive largest entry. Components beyond the rank are zero.
    """
    mean = vectors.mean(axis=0)
    centred = vectors - mean
    values, inner = np.linalg.eigh(centred @ centred.T)
    order = np.argsort(values)[::-1][:components]
    values = np.clip(values, 0, None)
    total = values.sum()
    axes = np.zeros((vectors.shape[1], components))
    explained = np.zeros(components)
    for place, number in enumerate(order):
        if total <= 0 or values[number] <= 1e-12 * total:
            continue
        axis = centred.T @ inner[:, number] / np.sqrt(values[number])
        sign = axis.sum() if place == 0 and abs(axis.sum()) > 1e-9 else axis[np.argmax(np.abs(axis))]
        axes[:, place] = axis * np.sign(sign)
        explained[place] = values[number] / total
    return Map(centred @ axes, explained, mean, axes)


def ellipse(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Centre and outline (``(100, 2)``) of the ellipse of one standard deviation; None for fewer than three points."""
    if len(points) < 3:
        return None
    centre = points.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(points.T))
    turn = np.linspace(0, 2 * np.pi, 100)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    return centre, centre + (circle * np.sqrt(np.clip(values, 0, None))) @ vectors.T
