"""Paired differences: units, perfect wins, p and interval, and their coverage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from labmates.stats.domains import ANY, Domain
from labmates.stats.intervals import estimate
from labmates.stats.paired import Pair, cautious_df, difference, is_settled, more_blocks
from labmates.stats.samples import Sample
from tests.stats.paired_worlds import BY_RANGE, SHARES, SKILL, UNREADABLE, WORLDS, coverage, held_by_range


def pairs(*values: float, **more: Any) -> list[Pair]:
    return [Pair("task", str(at), "model", value, **more) for at, value in enumerate(values)]


def test_conditions_of_one_data_set_are_one_unit() -> None:
    few = pairs(-1.01, 0.0, -0.97, -1.09)
    one = difference(few, ANY)
    nine = difference([pair for pair in few for _ in range(9)], ANY)
    assert (nine.n, nine.value, nine.low, nine.high, nine.p) == pytest.approx((4, one.value, one.low, one.high, one.p))
    assert one.p is not None
    assert one.p > 0.05


@pytest.mark.parametrize(("size", "domain"), [(1.0, SHARES), (1.0, SKILL), (0.3, SHARES), (-2.0, ANY)])
def test_six_wins_tell_and_five_say_how_many_are_missing(size: float, domain: Domain) -> None:
    six, five = difference(pairs(*[size] * 6), domain), difference(pairs(*[size] * 5), domain)
    assert six.p == pytest.approx(2**-5, rel=0.01)
    assert is_settled(six, 0)
    assert five.p == pytest.approx(2**-4, rel=0.01)
    assert not is_settled(five, 0)
    assert more_blocks(pairs(*[size] * 5), domain, (), 0.95, 0) == 1


def test_twenty_of_twenty_have_the_interval_of_clopper_and_pearson() -> None:
    found = difference(pairs(*[1.0] * 20), SHARES)
    assert (found.low, found.high) == pytest.approx((2 * 0.025 ** (1 / 20) - 1, 1.0))


def test_a_worse_result_never_tells_more_than_a_perfect_one() -> None:
    perfect, worse = difference(pairs(1, 1, 1, 1, 1), SHARES), difference(pairs(1, 1, 1, 1, 0), SHARES)
    assert perfect.low is not None
    assert worse.low is not None
    assert worse.low < perfect.low
    assert worse.p is not None
    assert worse.p > 0.05


def test_no_difference_of_a_known_range_is_told_below_six_blocks() -> None:
    nearly = [0.9, 0.91, 0.92, 0.9, 0.91, 0.9]
    assert [is_settled(difference(pairs(*nearly[:n]), SHARES), 0) for n in (3, 5, 6)] == [False, False, True]


def test_ties_are_no_evidence_of_a_difference() -> None:
    five, six = ([*[0.25, 0.3, 0.2, 0.25, 0.3, 0.2][:wins], *[0.0] * 14] for wins in (5, 6))
    assert [is_settled(difference(pairs(*values), SHARES), 0) for values in (five, six)] == [False, True]


def test_equal_results_are_tied_as_far_as_their_range_says() -> None:
    found = difference(pairs(*[0.0] * 10), SHARES)
    assert found.high == pytest.approx(1 - 0.025**0.1)
    assert found.p == pytest.approx(1.0, rel=0.01)
    assert difference(pairs(*[0.0] * 10), ANY).reason == "equal values"


def test_an_unreadable_result_widens_the_interval_to_what_its_range_allows() -> None:
    values = [0.01, -0.02, 0.005, 0.02, -0.01, -0.9]
    all_read, one_not = pairs(*values), [*pairs(*values[:5]), Pair("task", "5", "model", -0.9, usable=False)]
    t, bounded = difference(all_read, SHARES), difference(one_not, SHARES)
    assert (t.method[0], bounded.method) == ("t", "Gaffke, range only")


def test_new_models_need_three_and_count_data_sets_as_well() -> None:
    two = [Pair("task", str(block), f"m{model}", 0.1 * block) for model in range(2) for block in range(4)]
    assert difference(two, ANY, ("models",)).reason == "needs 3"
    alike = [Pair("task", str(block), f"m{model}", 0.1 * block) for model in range(9) for block in range(4)]
    found = difference(alike, ANY, ("models",))
    assert found.error is not None
    assert found.error >= 0.1 * (5 / 3 / 4) ** 0.5 * 0.99


def test_more_tasks_or_models_can_not_be_had_from_blocks() -> None:
    assert more_blocks(pairs(0.1, -0.1, 0.2), SHARES, ("tasks",), 0.95, 0.05) is None
    wanted = more_blocks(pairs(0.1, -0.1, 0.2, 0.05), SHARES, (), 0.95, 0.05)
    assert wanted is not None
    assert wanted > 4


def test_tasks_of_one_shape_are_as_skewed_as_each_of_them() -> None:
    shape = (0.0, 0.1, 0.15, 0.25, 0.7)
    found = difference([Pair(task, str(value), "", value) for task in "ab" for value in shape], ANY)
    expected = estimate(replace(Sample.of(shape, ANY), n=10, df=cautious_df(2 * 4)))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(
    "world", ["normal", "equal in 80 %, else ±.3", "four tasks, other effects", "new models: 5 on 2 tasks"]
)
def test_intervals_hold_and_agree_with_p(world: str) -> None:
    found = coverage(WORLDS[world], 3, 150)
    assert found.held >= 0.9
    assert found.disagree == 0


@pytest.mark.slow("tests/stats/test_paired.py")
@pytest.mark.parametrize("world", [*WORLDS, *UNREADABLE])
def test_intervals_hold_in_every_world(world: str) -> None:
    known = {**WORLDS, **UNREADABLE}[world]
    for blocks in known.blocks:
        found = coverage(known, blocks, 600)
        assert found.held >= 0.915, f"{blocks} blocks"  # .93 less two standard errors is .91
        assert found.disagree == 0
        if known.truth == 0:
            assert found.rejected <= 0.078, f"{blocks} blocks"


@pytest.mark.parametrize("world", BY_RANGE)
def test_the_range_alone_covers_rare_losses_and_runs_lost_by_their_result(world: str) -> None:
    assert held_by_range(world, 6, 40) >= 0.95
