"""Coefficients of agreement, for one sample or many resamples of it at once.

All take weights of shape (resamples, n): how often each of the n observations counts. One row of ones is the sample
itself. Where a coefficient is not defined (nothing varies) it is NaN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TINY = 1e-12
"""A variance below this is none: scores lie in [0, 1]."""


def pearson(a: Floats, b: Floats, weights: Floats) -> Floats:
    """Return Pearson's r of `a` and `b`, shape (n,), for each row of weights."""
    _, _, variance_a, variance_b, covariance = _moments(a, b, weights)
    return _ratio(covariance, np.sqrt(variance_a * variance_b), (variance_a > TINY) & (variance_b > TINY))


def concordance(a: Floats, b: Floats, weights: Floats) -> Floats:
    """Return Lin's concordance: like r, but a shift or another scale lowers it.

    On whole-numbered levels it is Cohen's kappa with quadratic weights: both are one minus the mean squared difference
    over the one expected if the two were independent (Fleiss and Cohen 1973; Lin 1989, with moments over n).
    """
    mean_a, mean_b, variance_a, variance_b, covariance = _moments(a, b, weights)
    expected = variance_a + variance_b + (mean_a - mean_b) ** 2
    return _ratio(2 * covariance, expected, expected > TINY)


def mean_difference(a: Floats, b: Floats, weights: Floats) -> Floats:
    """Return the mean of b - a."""
    difference: Floats = weights @ (b - a) / weights.sum(axis=1)
    return difference


def krippendorff_alpha(ratings: Floats, weights: Floats) -> Floats:
    """Return Krippendorff's alpha for interval data (Krippendorff 2011, "Computing Krippendorff's alpha-reliability").

    Parameters
    ----------
    ratings
        Shape (judges, n); NaN where a judge gave none. What fewer than two judges rated does not count.

    Notes
    -----
    With m ratings of a unit and S their sum of squares about the unit's mean, the observed disagreement is the sum of
    m S / (m - 1) over units, and the expected one the sum of squares of all n ratings about their mean, times
    n / (n - 1).
    """
    rated = ~np.isnan(ratings)
    number = rated.sum(axis=0)
    pairable = number > 1
    values, rated, number = ratings[:, pairable], rated[:, pairable], number[pairable].astype(float)
    kept = weights[:, pairable]
    sums = np.where(rated, values, 0.0).sum(axis=0)
    squares = np.where(rated, values**2, 0.0).sum(axis=0)
    within = number * (squares - sums**2 / number) / (number - 1)
    total = kept @ number
    with np.errstate(invalid="ignore", divide="ignore"):
        around = kept @ squares - (kept @ sums) ** 2 / total
        expected = around * total / (total - 1)
    return 1 - _ratio(kept @ within, expected, expected > TINY)


def spearman(a: Floats, b: Floats) -> float:
    """Return Spearman's rank correlation, ties at their mean rank."""
    return float(pearson(_ranks(a), _ranks(b), np.ones((1, len(a))))[0]) if len(a) else float("nan")


def kendall(a: Floats, b: Floats) -> float:
    """Return Kendall's tau-b, which allows for ties."""
    signs_a, signs_b = np.sign(a[:, None] - a), np.sign(b[:, None] - b)
    untied = np.sqrt((signs_a**2).sum() * (signs_b**2).sum())
    return float((signs_a * signs_b).sum() / untied) if untied > 0 else float("nan")


def _ranks(values: Floats) -> Floats:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    ranks: Floats = (last - (count - 1) / 2)[place]
    return ranks


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
