"""Samples of an outcome: what intervals need of them, and the pooling of variances where values are few."""

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
"""Cells with fewer values than this borrow from the variances of others."""
LEAST_CELLS: Final = 10
"""Fewer cells than this say too little of how alike variances are (coverage at 4 cells of 3 values: .90 to .93)."""
_AT_END = 1e-3
"""Values as near as this to an end of their range, relative to its width, lie at the end."""
_PILE = 0.25
"""With this share of the values at one end the interval is Gaffke's (coverage of t for beta(.95, .05): .60 to .85)."""


@dataclass(frozen=True)
class Sample:
    """Independent values of one outcome, as far as an interval needs them.

    Attributes
    ----------
    skewness
        Adjusted for few values; 0 for fewer than three.
    pooled
        How many cells its variance was pooled over; 0 if it is its own.
    piled
        The values themselves where many lie at an end of their range, else none.
    """

    n: int
    mean: float
    variance: float
    skewness: float
    df: float
    domain: Domain
    pooled: int = 0
    piled: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Sequence[float], domain: Domain) -> Sample:
        """The sample of some values; the domain is extended where they lie outside."""
        n = len(values)
        if not n:
            raise ValueError("a mean needs at least one value")
        low, high = float(min(values)), float(max(values))
        mean = math.fsum(values) / n
        domain = domain.holding(low, high)
        # Differences with non-finite squares are dropped.
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
    """Whether values of a known range lie at one end of it; differences have no such end, but a test against 0."""
    width = domain.high - domain.low
    if math.isinf(width) or domain.low < 0:
        return False
    near = _AT_END * width
    ends = sum(value - domain.low < near for value in values), sum(domain.high - value < near for value in values)
    return max(ends) >= _PILE * len(values)


def pooled(cells: Sequence[Sample]) -> list[Sample]:
    """Cells whose variances are drawn towards each other as far as they are alike, where values are few.

    Variances are compared relative to what means let expect (`Scale.spread`). How alike true ones are follows from how
    much more measured ones differ than chance has it; that gives the degrees of freedom of what they have in common.
    Cells of equal values say nothing of that and are left alone.
    """
    scales = [Scale.of(cell.domain, cell.mean) for cell in cells]
    some = [
        (place, cell.variance / scale.spread, cell.df)
        for place, (cell, scale) in enumerate(zip(cells, scales, strict=True))
        if scale is not None and cell.variance > 0
    ]
    if len(some) < LEAST_CELLS or all(cells[place].n >= FEW for place, *_ in some):
        return list(cells)
    import numpy as np

    dispersions, freedoms = (np.array([one[at] for one in some]) for at in (1, 2))
    prior, prior_df = _common(dispersions, freedoms)
    drawn = list(cells)
    for place, dispersion, df in some:
        scale = scales[place]
        if cells[place].n >= FEW or scale is None:
            continue
        shared = prior if math.isinf(prior_df) else (prior_df * prior + df * dispersion) / (prior_df + df)
        drawn[place] = replace(
            cells[place],
            variance=float(shared * scale.spread),
            df=float(min(prior_df + df, freedoms.sum())),
            pooled=len(some),
        )
    return drawn


def _common(dispersions: NDArray[np.float64], freedoms: NDArray[np.float64]) -> tuple[float, float]:
    """The dispersion that cells have in common and its degrees of freedom, by moments of logarithms."""
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
