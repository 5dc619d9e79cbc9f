from __future__ import annotations

import numpy as np
import pytest

from labmates.analysis.resampling import advantage, bootstrap_interval
from labmates.analysis.student import mean_interval


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_interval_of_normal_values_covers_their_mean_at_its_nominal_rate(n: int) -> None:
    rng = np.random.default_rng(n)
    hits = 0
    for _ in range(300):
        low, high = bootstrap_interval(list(rng.normal(0.4, 0.1, size=n)))
        hits += low <= 0.4 <= high
    assert hits / 300 == pytest.approx(0.95, abs=0.03)


def test_the_interval_of_many_values_is_student_s() -> None:
    values = list(np.random.default_rng(1).normal(size=60))
    assert bootstrap_interval(values) == pytest.approx(mean_interval(values), abs=0.01)


def test_the_test_finds_what_is_there_and_seldom_what_is_not() -> None:
    rng = np.random.default_rng(7)

    def draw(mean: float) -> list[float]:
        return list(rng.normal(mean, 0.05, size=5))

    false = sum(advantage(draw(0.3), [draw(0.3), draw(0.1)])[3] < 0.05 for _ in range(300))
    true = sum(advantage(draw(0.45), [draw(0.3), draw(0.25)])[3] < 0.05 for _ in range(50))
    assert 5 <= false <= 25  # 15 are expected
    assert true >= 45


def test_the_difference_is_to_the_larger_of_the_others() -> None:
    difference, low, high, p = advantage([0.5, 0.6, 0.55], [[0.1, 0.1], [0.3, 0.4, 0.35]])
    assert difference == pytest.approx(0.2)
    assert 0 < low < difference < high
    assert 0 < p < 0.025


def test_values_that_never_differ_decide_by_their_difference() -> None:
    assert advantage([0.5, 0.5], [[0.5, 0.5], [0.1, 0.1]]) == (0, 0, 0, 1)
    assert advantage([0.6, 0.6], [[0.5, 0.5], [0.1, 0.1]])[3] == 0


def test_one_value_has_no_interval() -> None:
    with pytest.raises(ValueError, match="two values"):
        bootstrap_interval([1.0])
    with pytest.raises(ValueError, match="two values"):
        advantage([1.0], [[1.0, 2.0]])
