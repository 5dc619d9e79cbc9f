"""The smallest difference of two means that a comparison can find, before any run is paid for."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from labmates.stats.intervals import LEVEL, quantile

POWER: Final = 0.8


def detectable_difference(spread: float, n: int) -> float:
    """The minimum detectable difference (80 % power) between two means of `n` values each.

    Of the t test for two independent samples of equal standard deviation `spread`, two-sided at the 5 % level, by the
    noncentral t distribution (Cohen 1988, section 2.5).

    Raises
    ------
    ValueError
        If `n` is below 2.
    """
    if n < 2:
        raise ValueError("comparing two means needs at least two values each")
    return _noncentrality(2 * n - 2) * spread * math.sqrt(2 / n)


@lru_cache
def _noncentrality(df: int) -> float:
    """The noncentrality at which the two-sided t test has its power."""
    from scipy.optimize import brentq
    from scipy.special import nctdtr

    critical = quantile(df, LEVEL)

    def lacking(shift: float) -> float:
        return float(1 - nctdtr(df, shift, critical) + nctdtr(df, shift, -critical)) - POWER

    # It is 2.8 to 5.7; from 7.9 on, SciPy's distribution is NaN at some places.
    return float(brentq(lacking, 0.0, 7.0))
