"""Paired differences: a mean over data sets with its interval, and the p value of the same statistic.

The unit is the data set (*block*), whatever the number of conditions that share it: differences of one model in one
block are averaged first. The interval holds for new data sets of these tasks and models, or for new tasks, models or
families of models too, which are then the clusters.

Differences have Student's t (`labmates.stats.intervals`), with the variance within tasks. Where t does not hold, the
range takes over: below six blocks that differ, which tell nothing, from the first difference at an end of its range, or
from the first run without a usable result, the interval is Gaffke's. Equal differences *v* get the same interval with
the range *v* ± 2 |*v*|, which for a win in every block is the sign test: six such blocks tell, five don't. p is 1 minus
the level at which the interval begins to include 0, so p and interval never disagree.

Measured coverage: ``python -m benchmarks.coverage intervals``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from statistics import fmean, variance
from typing import Any, Final

from labmates.stats.domains import ANY, ROUNDING, Domain
from labmates.stats.intervals import EQUAL, GAFFKE, LEVEL, ONE, Estimate, estimate, gaffke, interval
from labmates.stats.samples import Sample
from labmates.util.grouping import grouped

FEWEST: Final = 3
"""Least number of blocks, tasks or models of an interval."""
FEWEST_TOLD: Final = 6
"""Fewer values of a known range tell no difference: wins in five of five come by chance in one of 16 studies."""
LEAST_P: Final = 1e-5
MOST_BLOCKS: Final = 1000
_AT_END: Final = 1e-3
"""Differences within this distance of an end of their range, relative to its width, are at the end."""
SIGNS: Final = "equal differences, sign test"


@dataclass(frozen=True)
class Pair:
    """The difference between two conditions, all else equal.

    Attributes
    ----------
    task, block, model
        Its task, its data set and its model (or family of models).
    usable
        Whether all its runs have a usable result, such as a readable report.
    """

    task: str
    block: str
    model: str
    value: float
    usable: bool = True


def difference(
    pairs: Sequence[Pair], domain: Domain = ANY, over: Collection[str] = (), level: float = LEVEL
) -> Estimate:
    """The mean difference over blocks with its interval, and p for a difference from 0.

    Parameters
    ----------
    domain
        Of the differences.
    over
        The clusters besides data sets of which new ones are claimed: ``tasks``, ``models``, or both.
    level
        Of the interval; p is not adjusted for it.
    """
    make = _estimator(pairs, domain, over)
    return replace(make(level), p=_p(make))


def interval_of(pairs: Sequence[Pair], domain: Domain, over: Collection[str], level: float) -> Estimate:
    """The same without p, which takes longer."""
    return _estimator(pairs, domain, over)(level)


def possible(
    least: Sequence[Pair], most: Sequence[Pair], domain: Domain, level: float
) -> tuple[float | None, float | None]:
    """The interval that the range alone allows (Gaffke's), with the least and most that lost runs may have given.

    It holds however rare a loss is and whatever made runs fail, so it is wide. Without a range there is none.
    """
    ends = [list(blocks(pairs).values()) for pairs in (least, most)]
    if len(ends[0]) < FEWEST or math.isinf(domain.high - domain.low):
        return None, None
    return gaffke(ends[0], domain, level)[0], gaffke(ends[1], domain, level)[1]


def blocks(pairs: Iterable[Pair]) -> dict[tuple[str, str], float]:
    """The difference of each block by task and block, the mean over its models."""
    cells = grouped(((pair.task, pair.block, pair.model), pair.value) for pair in pairs)
    return {at: fmean(v) for at, v in grouped((at[:2], fmean(values)) for at, values in cells.items()).items()}


def more_blocks(
    pairs: Sequence[Pair], domain: Domain, over: Collection[str], level: float, within: float
) -> int | None:
    """The number of further blocks like these that would tell a difference, or that it is within a margin.

    None if no number up to `MOST_BLOCKS` would, or if new tasks or models are claimed, which blocks can't replace.
    """
    if over:
        return None
    values, usable = list(blocks(pairs).items()), all(pair.usable for pair in pairs)

    def settled(number: int) -> bool:
        alike = [
            Pair(task, str(at), "", value, usable)
            for at, ((task, _), value) in enumerate(islice(cycle(values), number))
        ]
        return is_settled(interval_of(alike, domain, (), level), within)

    number = fewest(settled, len(values), MOST_BLOCKS)
    return None if number is None else number - len(values)


def fewest(enough: Callable[[int], bool], low: int, most: int) -> int | None:
    """The smallest number above `low` that is enough, if all larger ones are; None if `most` is not."""
    step = 1  # doubled, since it costs more to ask about large numbers
    while not enough(high := min(low + step, most)):
        if high == most:
            return None
        low, step = high, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def is_settled(shown: Estimate, within: float) -> bool:
    """Whether an interval excludes 0, or is within a margin of 0."""
    if shown.low is None or shown.high is None:
        return False
    return not shown.low <= 0 <= shown.high or max(-shown.low, shown.high) <= within


def _estimator(pairs: Sequence[Pair], domain: Domain, over: Collection[str]) -> Callable[[float], Estimate]:
    by_block = blocks(pairs)
    if "models" in over:
        return _of_models(pairs, domain, "tasks" in over)
    tasks = grouped((task, value) for (task, _), value in by_block.items())
    values = list(map(fmean, tasks.values())) if "tasks" in over else list(by_block.values())
    return _of_values(values, domain, [] if "tasks" in over else tasks.values(), all(pair.usable for pair in pairs))


def _of_values(
    values: Sequence[float], domain: Domain, strata: Collection[Sequence[float]], usable: bool
) -> Callable[[float], Estimate]:
    n, value = len(values), fmean(values)
    sample = Sample.of(values, domain)
    domain, error = sample.domain, math.sqrt(sample.variance / n)
    if n < FEWEST:
        reason = ONE if n == 1 else f"needs {FEWEST}"
        return lambda _: Estimate(value, error if n > 1 else None, None, None, n, reason=reason)
    if sample.variance == 0:
        reach = 2 * abs(value) or math.inf
        domain = Domain(max(domain.low, value - reach), min(domain.high, value + reach))
        if math.isinf(domain.high - domain.low):
            return lambda _: Estimate(value, 0.0, None, None, n, reason=EQUAL)

        def equal(level: float) -> Estimate:
            unseen = 1 - ((1 - level) / 2) ** (1 / n)
            low, high = (value + (end - value) * unseen for end in (domain.low, domain.high))
            return Estimate(value, 0.0, low, high, n, method=SIGNS)

        return equal
    width = domain.high - domain.low
    at_end = min(min(values) - domain.low, domain.high - max(values)) <= _AT_END * width
    untied = sum(abs(each) > ROUNDING for each in values)  # ties tell no direction
    if math.isfinite(width) and (untied < FEWEST_TOLD or at_end or not usable):
        return lambda level: Estimate(value, error, *gaffke(values, domain, level), n, method=GAFFKE)
    within = _within(sample, strata)
    cautious = replace(within, df=cautious_df(within.df))
    return lambda level: estimate(cautious, level)


def cautious_df(df: float) -> float:
    """Degrees of freedom of t over blocks, less as few blocks hide their skewness (coverage .89 without)."""
    return max(1.0, 0.7 * df - 1, df - 3.5)


def _within(sample: Sample, strata: Collection[Sequence[float]]) -> Sample:
    """The sample with the spread within strata, if all have enough blocks, and Satterthwaite's degrees of freedom."""
    if len(strata) < 2 or min(map(len, strata)) < FEWEST:
        return sample
    each = [Sample.of(values, sample.domain) for values in strata]
    parts = [(part.n * part.variance / sample.n, part.df) for part in each]
    total = math.fsum(part for part, _ in parts)
    if total <= ROUNDING * sample.variance:
        return sample
    df = total**2 / math.fsum(part**2 / own for part, own in parts)
    # Not the skewness of all deviations: they are from their own means, which hides some.
    cubes = math.fsum(part.n * part.skewness * part.variance**1.5 for part in each) / sample.n
    return replace(sample, variance=total, df=df, skewness=cubes / total**1.5)


def _of_models(pairs: Sequence[Pair], domain: Domain, tasks: bool) -> Callable[[float], Estimate]:
    """By the variance components of models and blocks (or tasks), which are crossed."""
    rows = grouped(((pair.model, pair.task, "" if tasks else pair.block), pair.value) for pair in pairs)
    means = {key: fmean(values) for key, values in rows.items()}
    models, value = _by(means, lambda key: key[0]), fmean(means.values())
    own = variance(models.values()) / len(models) if len(models) > 1 else 0.0
    sides: list[tuple[float, int]] = [(own, len(models) - 1)]
    others = _by(means, lambda key: key[1:])
    strata = list(grouped((key[0], effect) for key, effect in others.items()).values())
    if tasks or min(map(len, strata)) < 2:
        strata = [list(others.values())]
    sides.append(
        (math.fsum(len(s) * variance(s) for s in strata if len(s) > 1) / len(others) ** 2, len(others) - len(strata))
    )
    n = min(len(models), len(others))
    if n < FEWEST:
        return lambda _: Estimate(value, None, None, None, n, reason=f"needs {FEWEST}")
    # The residual is in both parts, so it is subtracted once.
    left = math.fsum((m - models[key[0]] - others[key[1:]] + value) ** 2 for key, m in means.items())
    freedom = len(means) - len(models) - len(others) + 1
    total = max(
        sum(p for p, _ in sides) - (left / freedom / len(means) if freedom > 0 else 0.0), *(p for p, _ in sides)
    )
    spread = math.fsum(part**2 / df for part, df in sides)
    most = max(df for _, df in sides)
    df = max(float(n - 1), min(total**2 / spread, float(most))) if spread else float(n - 1)
    method = f"t over models and {'tasks' if tasks else 'data sets'}"
    return lambda level: interval(value, math.sqrt(total), df, domain, n=n, method=method, level=level)


def _by(means: Mapping[tuple[str, str, str], float], side: Callable[[tuple[str, str, str]], Any]) -> dict[Any, float]:
    return {name: fmean(values) for name, values in grouped((side(key), mean) for key, mean in means.items()).items()}


def _p(make: Callable[[float], Estimate]) -> float | None:
    """1 minus the level at which the interval begins to include 0, at least `LEAST_P`; None without an interval."""
    if make(LEVEL).low is None:
        return None
    least, most = math.log(LEAST_P), 0.0
    for _ in range(24):
        middle = (least + most) / 2
        shown = make(1 - math.exp(middle))
        includes = shown.low is not None and shown.high is not None and shown.low <= 0 <= shown.high
        least, most = (middle, most) if includes else (least, middle)
    return math.exp(most)
