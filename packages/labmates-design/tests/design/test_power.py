"""The smallest difference that a comparison can find."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from labmates.stats.domains import ANY, SHARE
from labmates.stats.paired import Pair, difference
from labmates_design.power import POWER, detectable_difference


@pytest.mark.parametrize("n", [15, 30])
def test_many_normal_differences_need_what_the_paired_t_test_needs(n: int) -> None:
    found = detectable_difference((0.1,), n, ANY)
    assert found is not None
    shift, critical = found / (0.1 / math.sqrt(n)), stats.t.ppf(0.975, n - 1)
    assert stats.nct.sf(critical, n - 1, shift) == pytest.approx(POWER, abs=0.08)


@pytest.mark.parametrize(("spreads", "pairs"), [((0.1,), 1), ((0.05, 0.2), 1), ((0.1, 0.1), 6)])
def test_the_power_promised_is_that_of_the_printed_verdict(spreads: tuple[float, ...], pairs: int) -> None:
    domain = SHARE.difference()
    least = detectable_difference(spreads, 6, domain, pairs)
    assert least is not None
    rng, told = np.random.default_rng(9), 0
    for _ in range(400):
        study = [
            Pair(str(t), str(b), "", float(rng.normal(least, sd))) for t, sd in enumerate(spreads) for b in range(6)
        ]
        p = difference(study, domain).p
        told += p is not None and p * pairs < 0.05
    assert told / 400 == pytest.approx(POWER, abs=0.08)  # two standard errors of each simulation


def test_few_data_sets_find_nothing_and_more_pairs_need_more() -> None:
    assert detectable_difference((0.1,), 2) is None
    one, many = (detectable_difference((0.1,), 6, ANY, pairs) for pairs in (1, 10))
    assert one is not None
    assert many is not None
    assert many > one
