"""Random fields with a known covariance, and their best prediction.

A field is a sum of cosines with wave vectors drawn from the spectral density of the Matérn covariance (Matérn 1986; the
spectral method of Shinozuka and Jan, J. Sound and Vibration 25, 1972, and Mantoglou and Wilson, Water Resources
Research 18, 1982). It needs no factorisation of a large matrix, and rounding errors between machines stay far below the
written digits.

The unit of distance is the practical range: the distance, along the longest axis, at which the correlation has fallen
to `LOW`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from labmates.tasks.noise import DECIMALS, Floats

Whole = npt.NDArray[np.int64]

LOW: Final = 0.05
"""Correlation at the practical range."""
DECAY: Final = {0.5: 2.995732, 1.5: 4.743865}
"""By smoothness: the decay rate for a correlation of `LOW` at distance 1."""
NEIGHBOURS: Final = 16
"""Number of nearest samples used for a prediction."""


@dataclass(frozen=True)
class Continuity:
    """Correlation range and direction of a field of mean 0 and variance 1."""

    range_m: float  # practical range along the longest axis, in metres
    azimuth: float  # direction of the longest axis, in degrees clockwise from north, from 0 to 180
    ratio: float  # longest over shortest practical range, at least 1
    smoothness: float  # of the Matérn covariance: 0.5 is exponential, 1.5 gives a differentiable field

    def scaled(self, metres: Floats) -> Floats:
        """Offsets or places, shape (..., 2), as (along, across) the longest axis, in practical ranges."""
        return np.stack(self._axes(metres), axis=-1)

    def _axes(self, metres: Floats) -> tuple[Floats, Floats]:
        angle = np.deg2rad(self.azimuth)
        east, north = metres[..., 0] / self.range_m, metres[..., 1] / self.range_m
        along = east * np.sin(angle) + north * np.cos(angle)
        return along, (east * np.cos(angle) - north * np.sin(angle)) * self.ratio

    def correlation(self, metres: Floats) -> Floats:
        """The correlation over offsets of shape (..., 2) in metres, shape (...)."""
        along, across = self._axes(metres)
        distance = DECAY[self.smoothness] * np.sqrt(along * along + across * across)
        if self.smoothness == 0.5:
            return np.asarray(np.exp(-distance))
        return np.asarray((1 + distance) * np.exp(-distance))


def random_field(places: Floats, continuity: Continuity, waves: int, rng: np.random.Generator) -> Floats:
    """One realisation at `places`, shape (n, 2) in metres from a corner of the area; shape (n,).

    The part of the spectrum beyond wave number w is ``(1 + (w / decay)²) ** -smoothness`` in the plane, inverted here
    in closed form. Wave numbers and directions are stratified, so that some hundred waves suffice.
    """
    steps = np.arange(waves)
    beyond = (steps + rng.uniform(0.1, 1.0, size=waves)) / waves
    number = DECAY[continuity.smoothness] * np.sqrt(beyond ** (-1 / continuity.smoothness) - 1)
    direction = np.pi * (rng.permutation(waves) + rng.random(waves)) / waves
    phase = rng.uniform(0, 2 * np.pi, size=waves)
    at = continuity.scaled(places)
    # No matrix product, since its rounding depends on the machine's linear algebra library.
    angle = at[:, :1] * (number * np.cos(direction)) + at[:, 1:] * (number * np.sin(direction)) + phase
    return np.asarray(np.round(np.sqrt(2 / waves) * np.cos(angle).sum(axis=1), DECIMALS))


def predicted(places: Floats, values: Floats, folds: Whole, continuity: Continuity, nugget: float, at: Whole) -> Floats:
    """The simple kriging prediction of some values from the nearest samples of other folds, shape (len(at),).

    Parameters
    ----------
    places
        Shape (n, 2), in metres; all distinct.
    values
        Shape (n,), with expectation 0.
    folds
        Shape (n,): predictions exclude samples of the same fold.
    nugget
        Share of the variance without spatial correlation, in (0, 1).
    at
        Indices of the values to predict.
    """
    near = _nearest(places, folds, at)
    around = places[near]
    between = (1 - nugget) * continuity.correlation(around[:, :, None] - around[:, None])
    between += nugget * np.eye(NEIGHBOURS)
    towards = (1 - nugget) * continuity.correlation(around - places[at, None])
    weights = np.linalg.solve(between, towards[..., None])[..., 0]
    return np.asarray((weights * values[near]).sum(axis=1))


def _nearest(places: Floats, folds: Whole, at: Whole) -> Whole:
    """The indices of the nearest samples of other folds, shape (len(at), NEIGHBOURS)."""
    east = places[at, :1] - places[:, 0]
    north = places[at, 1:] - places[:, 1]
    # A tiny term breaks ties between equally distant samples.
    away = east * east + north * north + 1e-6 * np.arange(len(places))
    away[folds[at, None] == folds] = np.inf
    return np.argpartition(away, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
