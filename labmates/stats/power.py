"""The minimum detectable difference of two means, before any run is paid for."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from labmates.stats.intervals import LEVEL, quantile

POWER: Final = 0.8


def detectable_difference(spread: float, n: int) -> float:
    """The minimum detectable difference (80 % power) between two means of `n` values each.

    For the two-sided t test at the 5 % level of two independent samples with equal standard deviation `spread`, by the
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
    """The noncentrality at which the two-sided t test has the power `POWER`."""
    from scipy.optimize import brentq
    from scipy.special import nctdtr

    critical = quantile(df, LEVEL)

    def excess(shift: float) -> float:
        return float(1 - nctdtr(df, shift, critical) + nctdtr(df, shift, -critical)) - POWER

    # The solution is between 2.8 and 5.7; from 7.9 on, SciPy's distribution is NaN in places.
    return float(brentq(excess, 0.0, 7.0))
