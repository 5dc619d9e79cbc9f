"""Coefficients of agreement beside Lin's concordance. Undefined ones (nothing varies) are NaN."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labmates.stats.coefficients import TINY, Floats


def pearson(a: Floats, b: Floats) -> float:
    """Pearson's r of `a` and `b`, shape (n,)."""
    if not len(a) or min(a.var(), b.var()) <= TINY:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def mean_difference(a: Floats, b: Floats) -> float:
    """The mean of b - a."""
    return float((b - a).mean())


def within_pearson(a: Floats, b: Floats, groups: NDArray[np.intp]) -> float:
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
    sizes = np.maximum(np.bincount(groups), 1)
    return pearson(*(values - (np.bincount(groups, values) / sizes)[groups] for values in (a, b)))


def krippendorff_alpha(ratings: Floats) -> float:
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
    n / (n - 1).
    """
    from scipy.stats import rankdata

    values = ratings[:, (~np.isnan(ratings)).sum(axis=0) > 1]
    rated = ~np.isnan(values)
    if not rated.any():
        return float("nan")
    # Values that differ only by rounding are equal. Ranks are shares, so that their variance is compared with TINY.
    ranks = np.full(values.shape, np.nan)
    ranks[rated] = rankdata(np.round(values[rated], 9)) / rated.sum()
    number = rated.sum(axis=0)
    within = float((number / (number - 1) * np.nansum((ranks - np.nanmean(ranks, axis=0)) ** 2, axis=0)).sum())
    expected = float(ranks[rated].var(ddof=1) * rated.sum())
    return 1 - within / expected if expected > TINY else float("nan")
