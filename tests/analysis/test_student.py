"""Student's t: quantiles as in published tables, intervals as computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.analysis.student import mean_interval, quantile, within


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (30, 2.0423), (99, 1.9842)],
)
def test_quantiles_are_those_of_the_tables(freedom: int, expected: float) -> None:
    assert quantile(freedom) == pytest.approx(expected, abs=5e-5)


@given(st.floats(0, 15), st.integers(1, 60))
def test_a_probability_lies_between_none_and_all_and_grows(t: float, freedom: int) -> None:
    assert -1e-12 <= within(t, freedom) <= within(t + 0.1, freedom) + 1e-12 <= 1 + 2e-12


def test_an_interval_lies_around_the_mean() -> None:
    low, high = mean_interval([1.0, 2.0, 3.0])
    assert (low + high) / 2 == pytest.approx(2)
    assert high - 2 == pytest.approx(4.3027 / 3**0.5, abs=1e-4)
    assert mean_interval([0.5, 0.5]) == (0.5, 0.5)
    with pytest.raises(ValueError, match="two values"):
        mean_interval([1.0])
