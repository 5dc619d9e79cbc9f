"""Coefficients of agreement, for one sample or many resamples of it at once.

All take weights of shape (resamples, n): the multiplicity of each of the n observations. A row of ones is the sample
itself. Undefined coefficients (nothing varies) are NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TINY = 1e-12
"""Variances below this count as zero: scores lie in [0, 1]."""


def pearson(a: Floats, b: Floats, weights: Floats) -> Floats:
    """Pearson's r of `a` and `b`, shape (n,), for each row of weights."""
    _, _, variance_a, variance_b, covariance = _moments(a, b, weights)
    return _ratio(covariance, np.sqrt(variance_a * variance_b), (variance_a > TINY) & (variance_b > TINY))


def concordance(a: Floats, b: Floats, weights: Floats) -> Floats:
    """Lin's concordance: like r, but lowered by a shift or a different scale.

    On integer levels it is Cohen's kappa with quadratic weights: both are one minus the mean squared difference over
    the expected one under independence (Fleiss and Cohen 1973; Lin 1989, with moments over n).
    """
    mean_a, mean_b, variance_a, variance_b, covariance = _moments(a, b, weights)
    expected = variance_a + variance_b + (mean_a - mean_b) ** 2
    return _ratio(2 * covariance, expected, expected > TINY)


def mean_difference(a: Floats, b: Floats, weights: Floats) -> Floats:
    """The mean of b - a."""
    difference: Floats = weights @ (b - a) / weights.sum(axis=1)
    return difference


def within_pearson(a: Floats, b: Floats, groups: NDArray[np.intp], weights: Floats) -> Floats:
    """Pearson's r of `a` and `b` about the means of their groups.

    Parameters
    ----------
    groups
        The group of each observation, from 0, shape (n,).

    Notes
    -----
    The part of a high pooled r that remains when groups are only compared with themselves: two judges may agree only on
    which models are good.
    """
    member = (groups[:, None] == np.arange(groups.max(initial=-1) + 1)).astype(float)
    sizes = weights @ member
    sums_a, sums_b = (weights * a) @ member, (weights * b) @ member

    def about_means(products: Floats, first: Floats, second: Floats) -> Floats:
        between = np.divide(first * second, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        left: Floats = (weights @ products - between.sum(axis=1)) / weights.sum(axis=1)
        return left

    variance_a, variance_b = about_means(a * a, sums_a, sums_a), about_means(b * b, sums_b, sums_b)
    varies = (variance_a > TINY) & (variance_b > TINY)
    both = np.sqrt(np.maximum(variance_a * variance_b, 0))
    return _ratio(about_means(a * b, sums_a, sums_b), both, varies)


def krippendorff_alpha(ratings: Floats, weights: Floats) -> Floats:
    """Krippendorff's alpha for ordinal data (Krippendorff 2011, "Computing Krippendorff's alpha-reliability").

    Parameters
    ----------
    ratings
        Shape (judges, n); NaN for missing ratings. Units with fewer than two ratings are ignored.

    Notes
    -----
    The ordinal distance of two values is the number of ratings between them, with half of those equal to either. That
    is the difference of their mid-ranks among all ratings, so alpha is that of interval data on mid-ranks. With m
    ratings of a unit and S their sum of squares about the unit's mean, the observed disagreement is the sum of
    m S / (m - 1) over units, and the expected one the sum of squares of all n ratings about their mean, times
    n / (n - 1). A resample has its own ranks.
    """
    pairable = (~np.isnan(ratings)).sum(axis=0) > 1
    from scipy.sparse import coo_array

    values, used = ratings[:, pairable], weights[:, pairable]
    rated = ~np.isnan(values)
    number = rated.sum(axis=0).astype(float)
    # Values that differ only by rounding are equal.
    levels, flat = np.unique(np.round(np.where(rated, values, 0.0), 9), return_inverse=True)
    places = flat.reshape(values.shape)
    judges, units = np.nonzero(rated)
    # Sparse, since thousands of runs may all have different scores.
    counts = coo_array((np.ones(len(units)), (places[judges, units], units)), (len(levels), values.shape[1])).tocsr()
    # In parts, to bound the memory of temporary arrays.
    parts = np.array_split(used, max(1, math.ceil(used.size / _AT_ONCE)))
    return np.concatenate([_alpha_of_ranks(part, places, rated, number, counts) for part in parts])


_AT_ONCE = 1_000_000


def _alpha_of_ranks(
    weights: Floats, places: NDArray[np.intp], rated: NDArray[np.bool_], number: Floats, counts: Any
) -> Floats:
    total = weights @ number
    marginals = (counts @ weights.T).T
    with np.errstate(invalid="ignore", divide="ignore"):
        # Ranks as shares of all ratings, so that the scale does not depend on their number.
        ranks = (np.cumsum(marginals, axis=1) - marginals / 2) / total[:, None]
        sums, squares = np.zeros(weights.shape), np.zeros(weights.shape)
        for judge in range(len(places)):
            rank = np.where(rated[judge], ranks[:, places[judge]], 0.0)
            sums += rank
            squares += rank**2
        within = ((squares - sums**2 / number) * number / (number - 1) * weights).sum(axis=1)
        around = (weights * squares).sum(axis=1) - (weights * sums).sum(axis=1) ** 2 / total
        expected = around * total / (total - 1)
    return 1 - _ratio(within, expected, expected > TINY)


def _moments(a: Floats, b: Floats, weights: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    total = weights.sum(axis=1)
    mean_a, mean_b = weights @ a / total, weights @ b / total
    variance_a = np.maximum(weights @ a**2 / total - mean_a**2, 0)
    variance_b = np.maximum(weights @ b**2 / total - mean_b**2, 0)
    return mean_a, mean_b, variance_a, variance_b, weights @ (a * b) / total - mean_a * mean_b


def _ratio(above: Floats, below: Floats, defined: NDArray[np.bool_]) -> Floats:
    ratio = np.full(above.shape, np.nan)
    np.divide(above, below, out=ratio, where=defined)
    return ratio
