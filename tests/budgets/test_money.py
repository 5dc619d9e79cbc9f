from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.budgets.money import format_dollars, parse_dollars, show_dollars


@pytest.mark.parametrize(
    ("given_", "micro"),
    [
        ("0.50", 500_000),
        ("$1", 1_000_000),
        (2, 2_000_000),
        (0.1, 100_000),
        (Decimal("0.000001"), 1),
        (" 3.5 ", 3_500_000),
    ],
)
def test_dollars_become_micro_dollars_without_a_float_error(given_: object, micro: int) -> None:
    assert parse_dollars(given_) == micro


@pytest.mark.parametrize("wrong", ["-1", -0.5, "abc", "", "nan", "inf", "1e400", "0.0000001", True, None, [1], "1 000"])
def test_what_is_no_amount_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError):
        parse_dollars(wrong)


@given(st.integers(0, 10**15))
def test_an_amount_that_is_written_reads_back_the_same(micro: int) -> None:
    assert parse_dollars(format_dollars(micro)) == micro


def test_amounts_for_people_have_four_decimals() -> None:
    assert show_dollars(31_250) == "$0.0313"
    assert format_dollars(500_000) == "0.5"
    assert format_dollars(10_000_000) == "10"
