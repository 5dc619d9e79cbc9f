"""The bootstrap over independent units, with the corrections that few units need.

Percentiles of resampled means of five values or so lie too near to each other. What is taken from the bootstrap here is
the standard error, for any statistic; it is widened to the unbiased variance, and Student's t stands for the tails (the
t interval with bootstrap standard error; Hesterberg 2015, *What teachers should know about the bootstrap*).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labmates.analysis.student import quantile, within

RESAMPLES = 20_000


def bootstrap_interval(values: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of the mean of independent values.

    Raises
    ------
    ValueError
        If there are fewer than two values.
    """
    if len(values) < 2:
        raise ValueError("an interval needs two values or more")
    error = float(_means(values, np.random.default_rng(seed)).std())
    mean, half = float(np.mean(values)), quantile(len(values) - 1) * error
    return mean - half, mean + half


def advantage(
    first: Sequence[float], others: Sequence[Sequence[float]], *, seed: int = 0
) -> tuple[float, float, float, float]:
    """Return by how much the mean of `first` exceeds the largest mean of `others`: difference, 95 % interval, p.

    Each group is resampled by itself. `p` is one-sided, against the hypothesis that there is no advantage. Degrees of
    freedom are those of `first` and the group with the largest mean.

    Parameters
    ----------
    first
        Independent values, for instance the means of tournaments.
    others
        The groups that it is compared with.

    Raises
    ------
    ValueError
        If a group has fewer than two values.
    """
    if min(len(first), *map(len, others)) < 2:
        raise ValueError("each group needs two values or more")
    rng = np.random.default_rng(seed)
    found = _means(first, rng) - np.max([_means(other, rng) for other in others], axis=0)
    largest = max(others, key=lambda other: float(np.mean(other)))
    difference, error = float(np.mean(first) - np.mean(largest)), float(found.std())
    freedom = len(first) + len(largest) - 2
    half = quantile(freedom) * error
    if error == 0:
        return difference, difference, difference, float(difference <= 0)
    beyond = (1 - within(abs(difference) / error, freedom)) / 2
    return difference, difference - half, difference + half, beyond if difference > 0 else 1 - beyond


def _means(values: Sequence[float], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return resampled means, widened so that their variance is unbiased."""
    array = np.asarray(values, dtype=float)
    mean, n = array.mean(), len(array)
    picked = rng.integers(n, size=(RESAMPLES, n))
    return np.asarray(mean + math.sqrt(n / (n - 1)) * (array[picked].mean(axis=1) - mean))
