from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.budgets.visibility import CONCISE, FINALISE, budget_status, low_notice

spent_by_team = st.dictionaries(st.sampled_from(["data", "model", "eval", "writing"]), st.integers(0, 400_000))


@given(spent_by_team)
def test_hidden_says_nothing_however_low_the_pool_is(spent: dict[str, int]) -> None:
    assert budget_status("hidden", 1_000_000, spent, "model") == ""


@given(spent_by_team)
def test_team_names_no_amount_but_the_own_team_s(spent: dict[str, int]) -> None:
    text = budget_status("team", 1_000_000, spent, "model")

    assert len(re.findall(r"\$[\d.]+", text)) == 1


def test_full_shows_pool_spending_of_each_team_and_what_is_left() -> None:
    text = budget_status("full", 1_000_000, {"data": 100_000, "model": 200_000}, "model")
    assert "$0.3000 of $1.0000" in text
    assert "data $0.1000" in text
    assert "$0.7000 (70 %) left" in text


@pytest.mark.parametrize(
    ("remaining", "notice"), [(301, ""), (300, CONCISE), (151, CONCISE), (150, FINALISE), (0, FINALISE)]
)
def test_the_notices_come_at_thirty_and_at_fifteen_percent(remaining: int, notice: str) -> None:
    assert low_notice(1000, remaining) == notice
    if notice:
        assert notice in budget_status("team", 1000, {"data": 1000 - remaining}, "eval")
        assert notice in budget_status("full", 1000, {"data": 1000 - remaining}, "eval")
