"""Pareto-smoothed importance sampling: weights with smoothed extremes, and k-hat, a diagnostic of their quality.

Source: Vehtari, Simpson, Gelman, Yao and Gabry, "Pareto smoothed importance sampling" (JMLR 2024); the fit of the tail
is that of Zhang and Stephens, "A new and efficient estimation method for the generalized Pareto distribution"
(Technometrics 2009).
"""

from __future__ import annotations

import math

import numpy as np

from labmates_profiles.arrays import Array

GOOD_K = 0.7
"""Above this k-hat, averages over weighted draws can't be trusted, however many draws there are."""
_LEAST_TAIL = 5
_PRIOR_DRAWS, _PRIOR_K = 10, 0.5
"""A weak prior on the shape stabilises the fit of short tails."""


def smooth(log_weights: Array) -> tuple[Array, float]:
    """Weights that sum to 1, with the largest ones smoothed, and k-hat.

    Parameters
    ----------
    log_weights
        Log of target over proposal, up to a constant, shape ``(draws,)``; minus infinity where the target is 0.

    Returns
    -------
    weights
        Shape ``(draws,)``.
    k_hat
        Shape of the tail of the raw weights: below 0.5 their variance is finite, above 0.7 (`GOOD_K`) they can't be
        trusted. Infinite if too few draws have positive weight.

    Raises
    ------
    ValueError
        If a log weight is NaN or plus infinity, or all are minus infinity.
    """
    if np.isnan(log_weights).any() or log_weights.max() in (np.inf, -np.inf):
        raise ValueError("log weights must be numbers, at least one of them finite")
    raw = np.exp(log_weights - log_weights.max())
    n = len(raw)
    tail = math.ceil(min(0.2 * n, 3 * math.sqrt(n)))
    if tail < _LEAST_TAIL or np.count_nonzero(raw) <= tail:
        return raw / raw.sum(), math.inf
    order = np.argsort(raw, kind="stable")
    largest = order[n - tail :]
    cut = raw[order[n - tail - 1]]
    beyond = raw[largest] - cut
    if beyond[-1] <= np.finfo(float).eps:
        return raw / raw.sum(), 0.0  # equal weights: nothing to smooth
    k, scale = fit_tail(beyond)
    smoothed = raw.copy()
    smoothed[largest] = np.minimum(cut + _quantiles(tail, k, scale), 1.0)
    return smoothed / smoothed.sum(), k


def effective_draws(weights: Array) -> float:
    """The effective number of draws, (Σw)²/Σw²."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def fit_tail(beyond: Array) -> tuple[float, float]:
    """Shape and scale of the generalised Pareto distribution of excesses over a threshold, in ascending order."""
    n = len(beyond)
    quartile = max(float(beyond[int(n / 4 + 0.5) - 1]), float(beyond[-1]) * 1e-10)
    grid = 30 + int(math.sqrt(n))
    rates = 1 / beyond[-1] + (1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))) / (3 * quartile)
    rates = rates[rates != 0]
    shapes = np.log1p(-np.outer(rates, beyond)).mean(axis=1)
    likelihood = n * (np.log(-rates / shapes) - shapes - 1)
    share = np.exp(likelihood - likelihood.max())
    rate = float(rates @ share / share.sum())
    k = float(np.log1p(-rate * beyond).mean())
    scale = -k / rate
    return (n * k + _PRIOR_DRAWS * _PRIOR_K) / (n + _PRIOR_DRAWS), scale


def _quantiles(n: int, k: float, scale: float) -> Array:
    places = (np.arange(n) + 0.5) / n
    if abs(k) < 1e-12:
        return -scale * np.log1p(-places)
    return np.asarray(scale * np.expm1(-k * np.log1p(-places)) / k)
