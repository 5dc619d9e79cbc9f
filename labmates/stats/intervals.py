"""Confidence intervals for all tables, figures and reports.

An interval is Student's t on the scale of the outcome: linear for unbounded outcomes, log for one bound, logit for two.
So no interval leaves the outcome's domain. It is extended on the side of the sample's skewness by Hall's transformation
(Hall 1992, J. R. Stat. Soc. B 54, 221), and further on an unbounded side, since few values seldom reveal their
skewness. In designs of many cells with few values each, variances are pooled as far as they are similar (Smyth 2004,
Stat. Appl. Genet. Mol. Biol. 3, 3). Scores and shares that pile up at a bound hide rare values far from it: their
interval is Gaffke's (2005), which assumes only the bounds. Equal values at a bound have Clopper and Pearson's interval;
other equal values have none, since they don't show how much others would differ.

Measured coverage: ``python -m benchmarks.coverage intervals``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from labmates.stats.domains import ANY, ROUNDING, Domain, Scale
from labmates.stats.samples import Sample, pooled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEVEL: Final = 0.95
RESAMPLES: Final = 20_000
_MOST_WEIGHTS: Final = 4_000_000
LEAST_CLUSTERS: Final = 3
ONE: Final = "one value"
EQUAL: Final = "equal values"
GAFFKE: Final = "Gaffke, range only"
CLOPPER: Final = "Clopper and Pearson"
_UNSEEN_SKEW = {2: 1.5, 3: 1.15, 4: 1.1}
"""Factor of intervals of few unbounded values, which hardly show skewness (coverage .91 without)."""
FEWEST_OF_LOGS: Final = 3
"""Least number of values of a count or another outcome with one bound; two span hundreds of times the larger one."""
_MOST_REACH = 3.0
"""Most reach of an interval on a log scale, in half-widths of plain t (coverage of counts stays above .95)."""
_REACH = 0.5
"""Extension of an unbounded end, per unit of skewness over the root of n (coverage .90 without)."""
_FURTHEST = -2 / 3
"""Bend times point at which Hall's transformation reaches three times as far as t; beyond, more skewness would narrow
the interval (coverage of beta(.3, 3) at n = 6: .937 without)."""


@dataclass(frozen=True)
class Estimate:
    """An estimate with its 95 % interval.

    Attributes
    ----------
    error
        Standard error; None for one value.
    low, high
        None without an interval; `reason` then says why.
    n
        Number of independent units.
    df
        Degrees of freedom of t.
    method
        The kind of interval.
    p
        Of the difference from 0, two-sided, if tested: by t here, and in `labmates.stats.paired`.
    """

    value: float
    error: float | None
    low: float | None
    high: float | None
    n: int
    df: float | None = None
    method: str = ""
    reason: str = ""
    p: float | None = None

    def ends(self) -> tuple[float, float]:
        """The ends of the interval for a figure; the value twice without an interval."""
        return (self.value if self.low is None else self.low, self.value if self.high is None else self.high)

    def row(self, key: str) -> dict[str, Any]:
        """The values for a table row, under names that begin with `key`."""
        names = ("error", "low", "high", "n", "df", "method", "reason")
        return {key: self.value, **{f"{key}_{name}": getattr(self, name) for name in names}}


def mean(values: Sequence[float], domain: Domain = ANY) -> Estimate:
    """The mean of independent values with its interval; a `ValueError` if there are none."""
    return estimate(Sample.of(values, domain))


def means(cells: Sequence[Sequence[float]], domains: Domain | Sequence[Domain] = ANY) -> list[Estimate]:
    """The means of cells of one design, with variances pooled if cells are small.

    Parameters
    ----------
    cells
        Independent values of each cell, for instance the runs of each condition.
    domains
        Of all cells, or of each.
    """
    each = [domains] * len(cells) if isinstance(domains, Domain) else domains
    return [estimate(cell) for cell in pooled(list(map(Sample.of, cells, each)))]


def average(cells: Sequence[Sample]) -> Estimate:
    """The mean of the means of independent cells out of `pooled`; the degrees of freedom are Satterthwaite's."""
    k, n = len(cells), min(cell.n for cell in cells)
    domain = Domain(math.fsum(cell.domain.low for cell in cells) / k, math.fsum(cell.domain.high for cell in cells) / k)
    value = math.fsum(cell.mean for cell in cells) / k
    if n < 2:
        return Estimate(value, None, None, None, n, reason=ONE)
    variances = [(cell.variance / cell.n / k**2, cell.df) for cell in cells if cell.variance > 0]
    if not variances:
        return Estimate(value, 0.0, None, None, n, reason=EQUAL)
    variance = math.fsum(part for part, _ in variances)
    df = variance**2 / math.fsum(part**2 / freedom for part, freedom in variances)
    over = max(cell.pooled for cell in cells)
    return interval(value, math.sqrt(variance), df, domain, n=n, method=f"t{_pooling(over)}")


def interval(
    value: float,
    error: float,
    df: float,
    domain: Domain = ANY,
    *,
    n: int,
    method: str = "t",
    level: float = LEVEL,
) -> Estimate:
    """The t interval of an estimate with a known standard error, for instance of a bootstrap or a jackknife.

    Parameters
    ----------
    n
        Number of independent units.
    method
        Its name in tables.
    """
    scale = Scale.of(domain, value)
    if not error > 0 or scale is None:
        return Estimate(value, error, None, None, n, df, reason=EQUAL)
    half = quantile(df, level) * error * scale.slope
    low, high = scale.back(scale.place - half), scale.back(scale.place + half)
    p = _against_zero(scale, domain, error * scale.slope, df)
    return Estimate(value, error, low, high, n, df, _named(method, scale), p=p)


def clusters(value: float, left_out: Sequence[float], domain: Domain = ANY) -> Estimate:
    """The interval of a coefficient over clusters, by the jackknife, with t of one df less than clusters.

    Parameters
    ----------
    left_out
        The coefficient without each cluster in turn; NaN if undefined.
    domain
        Of the coefficient. On the scale of a domain from -1 to 1 a correlation is Fisher's z.

    Notes
    -----
    Squares are about the coefficient of all clusters rather than the mean of the others, so that its bias counts too.
    They are summed without the factor 1 - 1/clusters, as in MacKinnon and White's HC3 (1985, J. Econometrics 29, 305):
    with it, intervals of concordance had a coverage of .94 for 4 to 20 clusters.
    """
    m = len(left_out)
    if m < LEAST_CLUSTERS:
        return Estimate(value, None, None, None, m, reason=f"needs {LEAST_CLUSTERS} models")
    scale, others = Scale.of(domain, value), [Scale.of(domain, other) for other in left_out]
    places = [other.place for other in others if other is not None and math.isfinite(other.place)]
    if scale is None:
        return Estimate(value, 0.0, None, None, m, reason="at the end of its range")
    if len(places) < m:
        return Estimate(value, None, None, None, m, reason="undefined without some model")
    error = math.sqrt(math.fsum((place - scale.place) ** 2 for place in places))
    if error <= ROUNDING:
        return Estimate(value, 0.0, None, None, m, reason="unchanged by leaving out any model")
    half = quantile(m - 1) * error
    low, high = scale.back(scale.place - half), scale.back(scale.place + half)
    p = _against_zero(scale, domain, error, m - 1)
    return Estimate(value, error / scale.slope, low, high, m, m - 1, _named("jackknife over models, t", scale), p=p)


def _against_zero(scale: Scale, domain: Domain, error: float, df: float) -> float | None:
    """The two-sided p of t against 0 on a scale with the error there; None with 0 outside the domain."""
    zero = Scale.of(domain, 0.0)
    return None if zero is None else 2 * (1 - probability(abs(scale.place - zero.place) / error, df))


@lru_cache(maxsize=4096)
def quantile(df: float, level: float = LEVEL) -> float:
    """The two-sided critical value of t."""
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + level) / 2))


def probability(t: float, df: float) -> float:
    """The probability that a t variable lies below `t`."""
    from scipy.special import stdtr

    return float(stdtr(df, t))


def notes(estimates: Iterable[Estimate | None]) -> list[str]:
    """Sentences under a table on the methods of its intervals, and the reasons for missing ones."""
    kinds: dict[str, list[Estimate]] = {}
    without: dict[str, int] = {}
    for shown in estimates:
        if shown is not None and shown.low is not None:
            kinds.setdefault(shown.method, []).append(shown)
        elif shown is not None and shown.reason:
            without[shown.reason] = without.get(shown.reason, 0) + 1
    sentences = []
    if kinds:
        methods = "; ".join(f"{method} ({_sizes(group)})" for method, group in kinds.items())
        sentences.append(f"In brackets: 95 % intervals: {methods}.")
    if without:
        sentences.append(f"No interval: {', '.join(f'{reason} ({number})' for reason, number in without.items())}.")
    return sentences


def _sizes(estimates: Sequence[Estimate]) -> str:
    freedoms = [estimate.df for estimate in estimates if estimate.df is not None]
    sizes = f"n {_span([estimate.n for estimate in estimates])}"
    return f"{sizes}, df {_span(freedoms)}" if freedoms else sizes


def _span(values: Sequence[float]) -> str:
    low, high = (f"{value:.1f}".removesuffix(".0") for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _named(method: str, scale: Scale, pooled_over: int = 0) -> str:
    where = f" on the {scale.name} scale" if scale.name else ""
    return f"{method}{where}{_pooling(pooled_over)}"


def _pooling(cells: int) -> str:
    return f", variances pooled over {cells} cells" if cells else ""


def estimate(cell: Sample, level: float = LEVEL) -> Estimate:
    """The mean of a sample with its interval."""
    n = cell.n
    if n < 2:
        return Estimate(cell.mean, None, None, None, n, reason=ONE)
    scale = Scale.of(cell.domain, cell.mean)
    if cell.variance == 0 or scale is None:
        if scale is None and math.isfinite(cell.domain.high - cell.domain.low):
            return Estimate(cell.mean, 0.0, *_at_end(cell, level), n, method=CLOPPER)
        return Estimate(cell.mean, 0.0, None, None, n, n - 1, reason=EQUAL)
    error = math.sqrt(cell.variance / n)
    if cell.piled and not cell.pooled:
        return Estimate(cell.mean, error, *gaffke(cell.piled, cell.domain, level), n, method=GAFFKE)
    if scale.name and scale.open and n < FEWEST_OF_LOGS:
        return Estimate(cell.mean, error, None, None, n, cell.df, reason=f"needs {FEWEST_OF_LOGS}")
    step = error * scale.slope
    low, high = (scale.back(scale.place + side * _reach(cell, scale, side, level) * step) for side in (-1, 1))
    if scale.name:
        # A log scale alone would reach values that are impossible to believe: a mean of 0.05 up to 257,797.
        most = _MOST_REACH * quantile(cell.df, level) * error
        low, high = max(low, cell.mean - most), min(high, cell.mean + most)
    return Estimate(cell.mean, error, low, high, n, cell.df, _named("t", scale, cell.pooled))


def _at_end(cell: Sample, level: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of equal values at an end of their range, as wide as their number leaves it."""
    unseen = 1 - ((1 - level) / 2) ** (1 / cell.n)
    domain, width = cell.domain, cell.domain.high - cell.domain.low
    is_low = cell.mean - domain.low < domain.high - cell.mean
    return (domain.low, domain.low + unseen * width) if is_low else (domain.high - unseen * width, domain.high)


def _reach(cell: Sample, scale: Scale, side: int, level: float) -> float:
    """Distance of the upper (1) or lower (-1) end of an interval from the mean, in standard errors."""
    n, root = cell.n, math.sqrt(cell.n)
    is_linear = not scale.name or cell.domain.low == -cell.domain.high  # differences, too
    t = quantile(cell.df, level) * (1.0 if scale.name else _UNSEEN_SKEW.get(n, 1.0))
    if n < 3:
        return t
    # The studentised mean is not t if values are skewed or the scale is nonlinear; Hall's cubic corrects for that. The
    # deviation is due to the cell's own variance, whose weight after pooling is:
    weight = min(1.0, (n - 1) / cell.df)
    spread = math.sqrt(cell.variance)
    skewness, end = cell.skewness, t
    if side in scale.open or is_linear:
        # Positive values are about as skewed as a gamma variable; few values show less of it.
        least = 0.0 if is_linear else 2 * (1 - 1.5 / n) * spread * scale.slope
        skewness = side * max(side * skewness, least)
        end *= 1 + _REACH * max(0.0, side * skewness) / root * weight
    bend = (skewness / 3 + spread * scale.bend / 2) / root * weight
    point = -side * end - skewness / (6 * root) * weight
    if bend * point < _FURTHEST:
        bend = _FURTHEST / point
    return max(t, -side * ((math.cbrt(1 + 3 * bend * point) - 1) / bend if bend else point))


def gaffke(values: Sequence[float], domain: Domain, level: float = LEVEL) -> tuple[float, float]:
    """Gaffke's interval of the mean of values with known bounds.

    Values and one bound get random weights, uniform on the simplex: the lower end is a quantile of their mean with the
    lower bound, the upper end with the upper bound. For zeros and ones it is Clopper and Pearson's interval (Gaffke
    2005, Math. Methods Stat. 14, 451; Learned-Miller and Thomas 2020, arXiv:1905.06208).
    """
    lower, upper = _weighted(tuple(values), domain)
    tail = (1 - level) / 2
    return _quantile(lower, tail), _quantile(upper, 1 - tail)


def _quantile(ordered: NDArray[np.float64], share: float) -> float:
    """NumPy's quantile of sorted values, which p asks for many times."""
    place = share * (len(ordered) - 1)
    low, high = ordered[int(place)], ordered[math.ceil(place)]
    return float(low + (place - int(place)) * (high - low))


@lru_cache(maxsize=8)
def _weighted(values: tuple[float, ...], domain: Domain) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted means with the lower and with the upper bound, sorted."""
    import numpy as np

    weights = _weights(len(values))
    known, rest = weights[:, :-1] @ np.asarray(values, dtype=float), weights[:, -1]
    return np.sort(known + rest * domain.low), np.sort(known + rest * domain.high)


@lru_cache(maxsize=4)
def _weights(n: int) -> NDArray[np.float64]:
    """Random weights of n values and a bound, one draw a row; studies ask for those of few numbers, again and again."""
    import numpy as np

    draws = min(RESAMPLES, max(RESAMPLES // 10, _MOST_WEIGHTS // n))
    weights = np.random.default_rng(0).standard_exponential((draws, n + 1))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights
