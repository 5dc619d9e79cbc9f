"""Comparisons that stop early keep their error and power, and play fewer blocks."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.stopping import simulated
from labmates.stats.paired import cautious_df
from labmates_design.stopping import ERROR, looks, p_values


@pytest.mark.parametrize("fixed", [12, 30])
def test_error_power_and_coverage_are_those_of_the_fixed_design_with_fewer_blocks(fixed: int) -> None:
    told, blocks, held = simulated(fixed, 4000)
    assert told[0] <= ERROR + 0.008  # two standard errors
    assert told[2] == pytest.approx(0.8, abs=0.03)
    assert np.mean(blocks) <= 0.7 * fixed
    assert min(held) >= 0.93


def test_the_last_look_is_the_ordinary_test_and_first_ones_never_stop() -> None:
    bounds = looks(10)
    assert bounds[-1].told == bounds[-1].hopeless == ERROR
    assert all(look.told == 0 and look.hopeless > 1 for look in bounds[:3])
    assert all(look.told <= ERROR <= look.hopeless for look in bounds)


def test_p_is_that_of_comparisons_and_equal_values_are_told() -> None:
    from scipy import stats

    values = np.random.default_rng(1).normal(0.3, 1, (5, 9))
    t = stats.ttest_1samp(values[:, :6], 0, axis=1).statistic
    assert p_values(values, np.array([6]))[:, 0] == pytest.approx(2 * stats.t.sf(abs(t), cautious_df(5)))
    assert p_values(np.ones((1, 4)), np.array([1, 4])).tolist() == [[1.0, 0.0]]
