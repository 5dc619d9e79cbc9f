"""Student's t distribution, as far as the interval of a mean needs it; so that no library has to be loaded for it."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEVEL = 0.95
POWER = 0.8
_NORMAL = 400
_STEPS = 60


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of two values or more, by Student's t.

    Raises
    ------
    ValueError
        If there are fewer than two values.
    """
    n = len(values)
    if n < 2:
        raise ValueError("an interval needs two values or more")
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    half = quantile(n - 1) * math.sqrt(variance / n)
    return mean - half, mean + half


def quantile(freedom: int, level: float = LEVEL) -> float:
    """Return the t that a variable with so many degrees of freedom stays below in size with probability `level`."""
    low, high = 0.0, 20.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, freedom) < level else (low, middle)
    return high


def detectable_difference(spread: float, n: int) -> float:
    """Return the least difference between two means of `n` values each that a t test finds with a chance of 80 %.

    Two-sided, at the 5 % level, for two independent samples of equal standard deviation `spread` (Cohen 1988, section
    2.4, by t quantiles).

    Raises
    ------
    ValueError
        If `n` is below 2.
    """
    if n < 2:
        raise ValueError("two means can be compared from two values each on")
    # Beyond some hundred degrees of freedom, t is as good as normal.
    freedom = min(2 * n - 2, _NORMAL)
    return (quantile(freedom) + quantile(freedom, 2 * POWER - 1)) * spread * math.sqrt(2 / n)


def within(t: float, freedom: int) -> float:
    """Return the probability that a t variable lies in [-t, t] (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine**2 * (k - 1) / k
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
