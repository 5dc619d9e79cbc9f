"""The advantage of one group over the best of others, by the bootstrap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labmates.stats.domains import ANY, ROUNDING, Domain
from labmates.stats.intervals import EQUAL, RESAMPLES, Estimate, interval, probability

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Advantage:
    """The difference between a mean and the largest of others, with its 95 % interval and a one-sided p."""

    difference: Estimate
    p: float | None  # against the hypothesis of no advantage; None if all values of each group are equal


def advantage(first: Sequence[float], others: Sequence[Sequence[float]], domain: Domain = ANY) -> Advantage:
    """The advantage of the mean of `first` over the largest mean of `others`.

    Groups are resampled independently. Degrees of freedom are those of `first` and the group with the largest mean.
    Raises `ValueError` if a group has fewer than two values.

    Parameters
    ----------
    first
        Independent values, for instance the means of tournaments.
    others
        The groups to compare with.
    domain
        Of the difference.
    """
    n = min(len(first), *map(len, others))
    if n < 2:
        raise ValueError("each group needs at least two values")
    import numpy as np

    rng = np.random.default_rng(0)
    resampled = _resampled(first, rng) - np.max([_resampled(other, rng) for other in others], axis=0)
    largest = max(others, key=lambda other: float(np.mean(other)))
    difference, error = float(np.mean(first) - np.mean(largest)), float(resampled.std())
    df = len(first) + len(largest) - 2
    if error <= ROUNDING:
        return Advantage(Estimate(difference, 0.0, None, None, n, df, reason=EQUAL), None)
    bootstrapped = interval(difference, error, df, domain, n=n, method="bootstrap, t")
    return Advantage(bootstrapped, 1 - probability(difference / error, df))


def _resampled(values: Sequence[float], rng: np.random.Generator) -> NDArray[np.float64]:
    """Resampled means, widened so that their variance is unbiased."""
    import numpy as np

    array = np.asarray(values, dtype=float)
    centre, n = array.mean(), len(array)
    picked = rng.integers(n, size=(RESAMPLES, n))
    return np.asarray(centre + math.sqrt(n / (n - 1)) * (array[picked].mean(axis=1) - centre))
