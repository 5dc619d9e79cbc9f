"""The advantage of one group over the best of others."""

from __future__ import annotations

import numpy as np
import pytest

from labmates.stats.advantages import advantage
from labmates.stats.domains import SHARE
from labmates.stats.intervals import EQUAL


def test_an_advantage_is_found_where_there_is_one_and_seldom_where_there_is_none() -> None:
    rng = np.random.default_rng(7)

    def draw(mean: float) -> list[float]:
        return list(rng.normal(mean, 0.05, size=5))

    def p(*means: float) -> float:
        first, *others = map(draw, means)
        found = advantage(first, others).p
        assert found is not None
        return found

    assert 5 <= sum(p(0.3, 0.3, 0.1) < 0.05 for _ in range(300)) <= 25  # 15 are expected
    assert sum(p(0.45, 0.3, 0.25) < 0.05 for _ in range(50)) >= 45


def test_an_advantage_is_over_the_larger_of_the_others() -> None:
    found = advantage([0.5, 0.6, 0.55], [[0.1, 0.1], [0.3, 0.4, 0.35]], SHARE.difference())
    assert found.difference.value == pytest.approx(0.2)
    assert found.difference.low is not None
    assert found.difference.high is not None
    assert 0 < found.difference.low < 0.2 < found.difference.high
    assert found.p is not None
    assert 0 < found.p < 0.025


def test_values_that_never_differ_have_no_test() -> None:
    found = advantage([0.6, 0.6], [[0.5, 0.5], [0.1, 0.1]])
    assert found.difference.value == pytest.approx(0.1)
    assert (found.difference.reason, found.p) == (EQUAL, None)
    with pytest.raises(ValueError, match="two values"):
        advantage([1.0], [[1.0, 2.0]])
