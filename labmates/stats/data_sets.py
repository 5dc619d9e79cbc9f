"""Means over data sets, in which an unusable result, such as an unreadable report, counts as the least value.

Usable results alone tell nothing of what a failure takes away, however many there are. So the interval of such a mean
joins two of half its error: that of the share of usable results, and that of their mean.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final, NamedTuple

from labmates.stats.domains import SHARE, Domain
from labmates.stats.intervals import LEVEL, Estimate, estimate
from labmates.stats.samples import Sample, pooled
from labmates.util.grouping import grouped

_HALF: Final = (1 + LEVEL) / 2


class Result(NamedTuple):
    """The value of a run on a data set, and whether its result was usable."""

    data_set: Hashable
    value: float
    usable: bool = True


def data_set_means(
    cells: Sequence[Sequence[Result]], domains: Sequence[Domain], *, failures: bool = False
) -> list[Estimate | None]:
    """The mean of each cell over its data sets, whose runs are averaged; None without values.

    Small cells pool their variances if they have no data set in common.

    Parameters
    ----------
    failures
        Whether an unusable result counts as the least value, so that its share is a part of the interval.
    """
    plain = _means(cells, domains, LEVEL)
    if not failures:
        return plain
    of_usable = _means([[each for each in cell if each.usable] for cell in cells], domains, _HALF)
    shares = _means([[e._replace(value=float(e.usable)) for e in cell] for cell in cells], [SHARE] * len(cells), _HALF)
    return [
        whole if whole is None or some is None or share is None else _joined(whole, share, some, domain.low, cell)
        for whole, share, some, domain, cell in zip(plain, shares, of_usable, domains, cells, strict=True)
    ]


def _means(cells: Sequence[Sequence[Result]], domains: Sequence[Domain], level: float) -> list[Estimate | None]:
    by_cell = [grouped((each.data_set, each.value) for each in cell) for cell in cells]
    filled = [(by_data, domain) for by_data, domain in zip(by_cell, domains, strict=True) if by_data]
    samples = [Sample.of(list(map(fmean, by_data.values())), domain) for by_data, domain in filled]
    # Cells that share data sets don't vary independently.
    is_shared = sum(map(len, by_cell)) > len(set().union(*by_cell))
    found = iter(samples if is_shared else pooled(samples))
    return [estimate(next(found), level) if by_data else None for by_data in by_cell]


def _joined(whole: Estimate, share: Estimate, some: Estimate, least: float, cell: Sequence[Result]) -> Estimate:
    """The interval of a mean out of those of the share of usable results and of their mean."""
    if math.isinf(least) or None in (share.low, share.high, some.low, some.high):
        return replace(whole, low=None, high=None, reason=some.reason or share.reason)
    (low, high), (few, many) = some.ends(), share.ends()
    failed = max((each.value for each in cell if not each.usable), default=least)
    method = f"share of usable results × mean ({some.method})"
    return Estimate(
        whole.value, whole.error, least + few * (low - least), failed + many * (high - failed), whole.n, method=method
    )
