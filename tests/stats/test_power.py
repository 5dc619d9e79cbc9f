"""The smallest difference that a comparison can find."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from labmates.stats.power import POWER, detectable_difference


@pytest.mark.parametrize("n", [*range(2, 40), 100, 1_000, 100_000])
def test_the_t_test_finds_the_difference_with_the_power_that_it_promises(n: int) -> None:
    df, shift = 2 * n - 2, detectable_difference(2.0, n) / (2.0 * math.sqrt(2 / n))
    critical = stats.t.ppf(0.975, df)
    assert stats.nct.sf(critical, df, shift) + stats.nct.cdf(-critical, df, shift) == pytest.approx(POWER, abs=1e-6)


def test_one_value_each_finds_nothing() -> None:
    with pytest.raises(ValueError, match="two values"):
        detectable_difference(1.0, 1)
