"""Intervals: they hold at their nominal rate, stay among possible values, and are refused where nothing is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from labmates.stats import intervals
from labmates.stats.domains import ANY, AT_MOST_ONE, CORRELATION, COUNT, SHARE, Domain
from labmates.stats.intervals import Estimate
from labmates.stats.samples import Sample

STUDIES = 400
LEAST = 0.93 - 3 * math.sqrt(0.93 * 0.07 / STUDIES)
"""A coverage of .93 falls below this in one of 700 seeds."""

Draw = Callable[[np.random.Generator, int], np.ndarray]
OUTCOMES: dict[str, tuple[Draw, float, Domain]] = {
    "normal": (lambda rng, n: rng.normal(size=n), 0.0, ANY),
    "skewed": (lambda rng, n: rng.exponential(size=n), 1.0, COUNT),
    "skewed, bounds unknown": (lambda rng, n: rng.exponential(size=n), 1.0, ANY),
    "bounded above": (lambda rng, n: 1 - rng.exponential(0.5, size=n), 0.5, AT_MOST_ONE),
    "very skewed": (lambda rng, n: rng.lognormal(size=n), math.exp(0.5), COUNT),
    "share": (lambda rng, n: rng.beta(8, 1, size=n), 8 / 9, SHARE),
    "share at an end": (lambda rng, n: rng.beta(2, 0.2, size=n), 10 / 11, SHARE),
}


def holds(found: Estimate, truth: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= truth <= found.high


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("n", [2, 3, 5, 10, 20])
def test_intervals_hold_at_their_nominal_rate_for_few_and_many_values(outcome: str, n: int) -> None:
    draw, truth, domain = OUTCOMES[outcome]
    if math.isinf(domain.low) != math.isinf(domain.high) and n < intervals.FEWEST_OF_LOGS:
        assert intervals.mean(draw(np.random.default_rng(1), n).tolist(), domain).reason == "needs 3"
        return
    rng = np.random.default_rng([n, 5])
    estimates = [intervals.mean(draw(rng, n).tolist(), domain) for _ in range(STUDIES)]
    held = [holds(estimate, truth) for estimate in estimates if estimate.reason != intervals.EQUAL]
    assert len(held) >= 0.9 * STUDIES
    assert sum(held) / len(held) >= LEAST


@pytest.mark.parametrize("n", [2, 3])
def test_pooled_intervals_hold_in_cells_of_other_means_and_variances_and_are_shorter(n: int) -> None:
    rng = np.random.default_rng(n)
    truths = rng.uniform(0.1, 0.95, 24)
    precision = 5 * np.exp(rng.normal(size=24))
    held, pooled, alone = 0, 0.0, 0.0
    for _ in range(STUDIES // 10):
        cells = rng.beta(precision * truths, precision * (1 - truths), size=(n, 24)).T.tolist()
        for cell, found, truth in zip(cells, intervals.means(cells, SHARE), truths, strict=True):
            held += holds(found, truth)
            assert found.method == "t on the logit scale, variances pooled over 24 cells"
            own = intervals.mean(cell, SHARE)
            assert found.high is not None
            assert found.low is not None
            assert own.high is not None
            assert own.low is not None
            pooled, alone = pooled + found.high - found.low, alone + own.high - own.low
    assert held / (24 * (STUDIES // 10)) >= 0.93 - 0.015
    assert pooled < 0.9 * alone


def test_cells_that_are_alike_have_the_degrees_of_freedom_of_all() -> None:
    rng = np.random.default_rng(1)
    found = intervals.means(rng.normal(size=(24, 3)).tolist())
    assert {one.df for one in found} == {48.0}
    several = intervals.means((np.exp(3 * rng.normal(size=(24, 1))) * rng.normal(size=(24, 3))).tolist())
    assert max(one.df or 0 for one in several) < 10


def test_few_cells_and_many_values_are_not_pooled() -> None:
    rng = np.random.default_rng(1)
    assert {one.df for one in intervals.means(rng.normal(size=(4, 3)).tolist())} == {2}
    assert {one.df for one in intervals.means(rng.normal(size=(24, 12)).tolist())} == {11}


@settings(max_examples=1000, deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=30),
    st.sampled_from([Domain(0, 1), COUNT, AT_MOST_ONE, Domain(-1, 1)]),
)
@example([0.0, 0.0, 1e-171], SHARE)
@example([1.0, 1.0, 1.0 - 1e-9], SHARE)
def test_an_interval_holds_its_mean_and_never_leaves_what_is_possible(values: list[float], domain: Domain) -> None:
    found = intervals.mean(values, domain)
    if found.low is None or found.high is None:
        few = len(values) < intervals.FEWEST_OF_LOGS and math.isinf(domain.high - domain.low)
        assert found.reason == intervals.EQUAL or few
        return
    assert domain.low <= found.low <= found.value + 1e-15
    assert found.value - 1e-15 <= found.high <= domain.high


def test_shares_that_pile_up_at_an_end_have_an_interval_that_rests_on_the_range() -> None:
    values = [1.0] * 8 + [0.0] * 2
    found = intervals.mean(values, SHARE)
    clopper_pearson = stats.binomtest(8, 10).proportion_ci(0.95)
    assert (found.low, found.high) == pytest.approx((clopper_pearson.low, clopper_pearson.high), abs=0.005)
    assert (found.method, found.df, found.p) == (intervals.GAFFKE, None, None)
    assert intervals.notes([found]) == ["In brackets: 95 % intervals: Gaffke, range only (n 10)."]
    # 2.5 % of ten runs without a 0 come about even if one run in three is 0.
    near_one = intervals.mean([1.0] * 9 + [0.999], SHARE)
    assert near_one.low == pytest.approx(0.025**0.1, abs=0.005)
    assert intervals.mean(values, Domain(-1, 1)).method == "t on the logit scale"


def test_equal_values_at_an_end_have_the_interval_of_clopper_and_pearson() -> None:
    for value in (0.0, 1.0):
        found, expected = intervals.mean([value] * 6, SHARE), stats.binomtest(round(6 * value), 6).proportion_ci(0.95)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_an_interval_of_counts_stays_near_what_was_seen() -> None:
    found = intervals.mean([0.0] * 19 + [1.0], COUNT)
    assert found.high is not None
    assert 0.28 < found.high < 0.5, "exact Poisson is 0.28; the log scale alone said 257,797"
    skill = intervals.mean([1.0, 0.9, -3.0], AT_MOST_ONE)
    assert skill.low is not None
    assert skill.low > -20


def test_the_interval_of_values_without_bounds_and_skewness_is_student_s() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    found = intervals.mean(values)
    expected = stats.t.interval(0.95, 4, loc=3, scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected)
    assert (found.n, found.df, found.method) == (5, 4, "t")


def test_equal_values_and_a_single_one_have_no_interval_and_say_so() -> None:
    for values, reason in (([0.3] * 3, "equal values"), ([0.1 + 0.2, 0.3], "equal values"), ([1.0], "one value")):
        found = intervals.mean(values, SHARE)
        assert (found.low, found.high, found.reason) == (None, None, reason)
    with pytest.raises(ValueError, match="at least one value"):
        intervals.mean([])


def test_equal_cells_stay_without_an_interval_beside_others() -> None:
    cells = [*np.random.default_rng(0).normal(size=(12, 3)).tolist(), [2.0, 2.0, 2.0]]
    *others, equal = intervals.means(cells)
    assert equal.reason == intervals.EQUAL
    assert all(one.low is not None for one in others)


def test_values_outside_their_domain_extend_it() -> None:
    found = intervals.mean([0.9, 1.2, 1.1], SHARE)
    assert found.high is not None
    assert found.high <= 1.2


def test_the_mean_of_cells_has_the_variance_of_its_parts() -> None:
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(STUDIES):
        cells = [Sample.of(rng.normal(mean, spread, 3).tolist(), ANY) for mean, spread in ((0, 1), (1, 0.2), (2, 0.5))]
        held += holds(intervals.average(cells), 1.0)
    assert held / STUDIES >= LEAST
    assert intervals.average([Sample.of([1.0, 1.0], ANY), Sample.of([2.0, 2.0], ANY)]).reason == intervals.EQUAL
    assert intervals.average([Sample.of([1.0], ANY), Sample.of([2.0, 3.0], ANY)]).reason == intervals.ONE


def test_a_correlation_over_clusters_is_on_fisher_s_scale_and_needs_three() -> None:
    found = intervals.clusters(0.9, [0.92, 0.85, 0.95, 0.9], CORRELATION)
    assert found.low is not None
    assert found.high is not None
    assert -1 < found.low < 0.9 < found.high < 1
    assert (found.n, found.df) == (4, 3)
    assert found.method == "jackknife over models, t on the logit scale"
    assert intervals.clusters(0.9, [0.92, 0.85], CORRELATION).reason == "needs 3 models"
    assert intervals.clusters(0.9, [0.92, math.nan, 0.9], CORRELATION).reason == "undefined without some model"


def test_notes_tell_kinds_and_why_some_are_missing() -> None:
    some = [
        intervals.mean([0.2, 0.4, 0.9], SHARE),
        intervals.mean([0.5] * 4, SHARE),
        intervals.mean([1.0], SHARE),
        None,
    ]
    assert intervals.notes(some) == [
        "In brackets: 95 % intervals: t on the logit scale (n 3, df 2).",
        "No interval: equal values (1), one value (1).",
    ]
    assert intervals.notes([]) == []
