"""The bootstrap over independent units, with the corrections that few units need."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labmates.analysis.student import quantile

RESAMPLES = 20_000


def bootstrap_interval(values: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of the mean of independent values by bootstrap.

    The percentile interval of few values is too short; its percentiles are moved outwards so far that the interval of
    normal values is that of Student's t (the expanded percentile interval of Hesterberg 2015, *What teachers should
    know about the bootstrap*).

    Raises
    ------
    ValueError
        If there are fewer than two values.
    """
    n = len(values)
    if n < 2:
        raise ValueError("an interval needs two values or more")
    tail = 0.5 * math.erfc(math.sqrt(n / (n - 1)) * quantile(n - 1) / math.sqrt(2))
    means = _means(values, np.random.default_rng(seed))
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def advantage(
    first: Sequence[float], others: Sequence[Sequence[float]], *, seed: int = 0
) -> tuple[float, float, float, float]:
    """Return by how much the mean of `first` exceeds the largest mean of `others`: difference, 95 % interval, p.

    Each group is resampled by itself, and deviations are widened to the unbiased variance. `p` is the share of
    resamples without an advantage: one-sided, against the hypothesis that there is none.

    Parameters
    ----------
    first
        Independent values, for instance the means of tournaments.
    others
        The groups that it is compared with, of two values or more each.

    Raises
    ------
    ValueError
        If a group has fewer than two values.
    """
    if min(len(first), *map(len, others)) < 2:
        raise ValueError("each group needs two values or more")
    rng = np.random.default_rng(seed)
    found = _widened(first, rng) - np.max([_widened(other, rng) for other in others], axis=0)
    difference = float(np.mean(first) - max(np.mean(other) for other in others))
    low, high = np.quantile(found, [0.025, 0.975])
    p = (np.count_nonzero(found <= 0) + 1) / (RESAMPLES + 1)
    return difference, float(low), float(high), float(p)


def _means(values: Sequence[float], rng: np.random.Generator) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=float)
    picked = rng.integers(len(array), size=(RESAMPLES, len(array)))
    return np.asarray(array[picked].mean(axis=1))


def _widened(values: Sequence[float], rng: np.random.Generator) -> NDArray[np.float64]:
    mean, n = float(np.mean(values)), len(values)
    return mean + math.sqrt(n / (n - 1)) * (_means(values, rng) - mean)
