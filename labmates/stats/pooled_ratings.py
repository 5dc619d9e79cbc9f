"""Deviation ratings and ranks of the pooled metagame of runs, with intervals by a multiplier bootstrap of runs.

The largest of noisy gains exceeds the largest of true ones, so noise lowers deviation ratings and splits ties: the mean
of ratings of runs is biased. Here payoffs are averaged over runs first. The bootstrap draws metagames around the mean,
with the runs' covariance and Student's degrees of freedom; an interval is the union of the percentile interval and its
reflection at the estimate, which reaches the unbiased side. A rank's interval follows from the models that are
significantly better or worse (Mogstad et al. 2024, "Inference for ranks").

Measured coverage: ``python -m benchmarks.ratings``.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Final

import numpy as np

from labmates.stats.deviation import TIE, deviation_ratings, ranks
from labmates.stats.domains import ANY, Domain
from labmates.stats.intervals import EQUAL, ONE, Estimate
from labmates.stats.metagame import Array

REPLICATES: Final = 200
METHOD: Final = "bootstrap of runs"
_TAIL: Final = 0.01
"""Share of draws beyond each end (coverage of tied ratings with ten runs: .96; .94 with a tail of .025)."""


def pooled_ratings(payoffs: Sequence[Array], domain: Domain = ANY) -> dict[str, list[Estimate]]:
    """The deviation ratings and ranks of the mean of metagames.

    Parameters
    ----------
    payoffs
        The metagame of each run, all of shape ``(models,) * players``.
    domain
        Of payoffs: a deviation loses at most its range.

    Returns
    -------
    estimates
        ``deviation`` and ``rank``: for each model and, last, their average.
    """
    runs = np.stack(payoffs)
    n, mean = len(runs), runs.mean(axis=0)
    ratings = _with_average(deviation_ratings(mean))
    placed = _with_average(ranks(ratings[:-1], unit=float(np.ptp(mean))))
    reason = ONE if n < 2 else EQUAL if np.ptp(runs, axis=0).max() == 0 else ""
    if reason:
        return {
            name: [Estimate(float(value), None, None, None, n, reason=reason) for value in values]
            for name, values in (("deviation", ratings), ("rank", placed))
        }
    draws = np.array([_with_average(deviation_ratings(drawn)) for drawn in _drawn(runs, mean)])
    low, high = _interval(ratings, draws)
    low, high = np.maximum(low, domain.low - domain.high), np.minimum(high, 0.0)
    errors = draws.std(axis=0, ddof=1)
    deviation = [
        Estimate(float(value), float(error), float(least), float(most), n, method=METHOD)
        for value, error, least, most in zip(ratings, errors, low, high, strict=True)
    ]
    models = ratings[:-1]
    worst, _ = _interval(models[:, None] - models, draws[:, :-1, None] - draws[:, None, :-1])
    better = worst > TIE * float(np.ptp(mean))
    rank = [
        Estimate(float(place), None, 1.0 + float(above), float(len(models) - below), n, method=METHOD)
        for place, above, below in zip(placed, better.sum(axis=0), better.sum(axis=1), strict=False)
    ]
    return {"deviation": deviation, "rank": [*rank, Estimate(float(placed[-1]), None, None, None, n, reason=EQUAL)]}


def _with_average(values: Array) -> Array:
    return np.append(values, values.mean())


def _drawn(runs: Array, mean: Array) -> Array:
    """Metagames drawn from the multivariate t distribution of the mean of runs."""
    n, rng = len(runs), np.random.default_rng(0)
    weights = rng.standard_normal((REPLICATES, n)) / np.sqrt(n * rng.chisquare(n - 1, size=(REPLICATES, 1)))
    return np.asarray(mean + np.tensordot(weights, runs - mean, axes=1))


def _interval(value: Array, draws: Array) -> tuple[Array, Array]:
    """The union of the percentile interval and its reflection at the value."""
    low, high = np.quantile(draws, (_TAIL, 1 - _TAIL), axis=0)
    return np.minimum(low, 2 * value - high), np.maximum(high, 2 * value - low)


def mean_rank(ranks: Sequence[Estimate]) -> Estimate:
    """The mean of a model's ranks in several games, with the means of the ends."""
    value, n = fmean(rank.value for rank in ranks), min(rank.n for rank in ranks)
    ends = [(rank.low, rank.high) for rank in ranks if rank.low is not None and rank.high is not None]
    if len(ends) < len(ranks):
        return Estimate(value, None, None, None, n, reason=next(rank.reason for rank in ranks if rank.low is None))
    return Estimate(value, None, fmean(low for low, _ in ends), fmean(high for _, high in ends), n, method=METHOD)
