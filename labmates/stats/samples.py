"""Samples of an outcome: their statistics for intervals, and the pooling of variances of small samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from labmates.stats.domains import ROUNDING, Domain, Scale

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEW: Final = 10
"""Cells with fewer values than this share variances with others."""
LEAST_CELLS: Final = 10
"""Fewer cells don't show how similar variances are (coverage at 4 cells of 3 values: .90 to .93)."""
_AT_END = 1e-3
"""Values within this distance of a bound, relative to the range's width, are at the bound."""
_PILE = 0.25
"""Share of values at one bound from which the interval is Gaffke's (coverage of t for beta(.95, .05): .60 to .85)."""


@dataclass(frozen=True)
class Sample:
    """Statistics of independent values of one outcome."""

    n: int
    mean: float
    variance: float
    skewness: float  # adjusted for small samples; 0 for fewer than three values
    df: float
    domain: Domain
    pooled: int = 0  # number of cells behind its variance; 0 for its own
    piled: tuple[float, ...] = ()  # the values themselves if many are at a bound; else empty

    @classmethod
    def of(cls, values: Sequence[float], domain: Domain) -> Sample:
        """The sample of some values; the domain is extended to values outside."""
        n = len(values)
        if not n:
            raise ValueError("a mean needs at least one value")
        low, high = float(min(values)), float(max(values))
        mean = math.fsum(values) / n
        domain = domain.holding(low, high)
        # Differences whose squares underflow count as equal values.
        squares = math.fsum((value - mean) ** 2 for value in values)
        if n < 2 or high - low <= ROUNDING * max(abs(low), abs(high)) or squares == 0:
            return cls(n, mean, 0.0, 0.0, n - 1, domain)
        skewness, spread = 0.0, math.sqrt(squares / n)
        if n > 2 and spread > 0:
            cubes = math.fsum(((value - mean) / spread) ** 3 for value in values)
            skewness = cubes / n * math.sqrt(n * (n - 1)) / (n - 2)
        piled = tuple(values) if _piled(values, domain) else ()
        return cls(n, mean, squares / (n - 1), skewness, n - 1, domain, piled=piled)


def _piled(values: Sequence[float], domain: Domain) -> bool:
    """Whether values of a known range pile up at a bound; not for differences, whose 0 is no bound."""
    width = domain.high - domain.low
    if math.isinf(width) or domain.low < 0:
        return False
    near = _AT_END * width
    ends = sum(value - domain.low < near for value in values), sum(domain.high - value < near for value in values)
    return max(ends) >= _PILE * len(values)


def pooled(cells: Sequence[Sample]) -> list[Sample]:
    """Cells with variances shrunk towards each other as far as they are similar, where values are few.

    Variances are compared relative to their expectation given the mean (`Scale.spread`). The excess of their variation
    over chance shows how similar true variances are; it gives the degrees of freedom of their common value. Cells of
    equal values are left unchanged.
    """
    scales = [Scale.of(cell.domain, cell.mean) for cell in cells]
    varying = [
        (place, cell.variance / scale.spread, cell.df)
        for place, (cell, scale) in enumerate(zip(cells, scales, strict=True))
        if scale is not None and cell.variance > 0
    ]
    if len(varying) < LEAST_CELLS or all(cells[place].n >= FEW for place, *_ in varying):
        return list(cells)
    import numpy as np

    dispersions, freedoms = (np.array([each[at] for each in varying]) for at in (1, 2))
    prior, prior_df = _common(dispersions, freedoms)
    shrunk = list(cells)
    for place, dispersion, df in varying:
        scale = scales[place]
        if cells[place].n >= FEW or scale is None:
            continue
        shared = prior if math.isinf(prior_df) else (prior_df * prior + df * dispersion) / (prior_df + df)
        shrunk[place] = replace(
            cells[place],
            variance=float(shared * scale.spread),
            df=float(min(prior_df + df, freedoms.sum())),
            pooled=len(varying),
        )
    return shrunk


def _common(dispersions: NDArray[np.float64], freedoms: NDArray[np.float64]) -> tuple[float, float]:
    """The common dispersion of cells and its degrees of freedom, by moments of logarithms."""
    import numpy as np
    from scipy.special import digamma, polygamma

    logs = np.log(dispersions) - digamma(freedoms / 2) + np.log(freedoms / 2)
    surplus = float(logs.var(ddof=1) - polygamma(1, freedoms / 2).mean())
    low, high = 1e-3, 1e6
    if surplus <= float(polygamma(1, high / 2)):
        return float((dispersions * freedoms).sum() / freedoms.sum()), math.inf
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if polygamma(1, middle / 2) > surplus else (low, middle)
    return float(np.exp(logs.mean() + digamma(high / 2) - np.log(high / 2))), high
