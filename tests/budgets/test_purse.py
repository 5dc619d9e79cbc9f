from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.budgets.ledger import InsufficientFundsError, Ledger
from labmates.budgets.purse import Purse
from labmates.budgets.visibility import CONCISE


@given(
    st.integers(0, 10_000), st.integers(1, 3), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3000)), max_size=30)
)
def test_what_one_sharer_spends_never_takes_from_another(
    total: int, sharers: int, calls: list[tuple[int, int]]
) -> None:
    ledger = Ledger(total)
    purses = [Purse(ledger, "data", {}, sharers) for _ in range(sharers)]
    for who, amount in calls:
        purse = purses[who % sharers]
        others = [p.available for p in purses if p is not purse]
        try:
            purse.reserve(amount, "c").charge(amount)
        except InsufficientFundsError:
            assert amount > purse.available
        assert [p.available for p in purses if p is not purse] == others
    assert ledger.spent == sum(p.spent for p in purses) <= total


def test_a_purse_of_a_late_step_holds_what_earlier_steps_left() -> None:
    ledger = Ledger(100)
    ledger.restore(60, call="c", member="data")
    purse = Purse(ledger, "model", {"data": 60}, 2)
    assert purse.available == 20
    with pytest.raises(InsufficientFundsError):
        purse.reserve(21, "c")


def test_the_status_shows_the_start_of_the_step_and_the_own_spending_since() -> None:
    ledger = Ledger(1_000_000)
    mine, other = Purse(ledger, "data", {}, 2), Purse(ledger, "data", {}, 2)
    other.reserve(100_000, "c").charge(100_000)
    mine.reserve(200_000, "c").charge(200_000)
    assert mine.status("full") == (
        "Budget: when your share was set, $0.0000 of $1.0000 were spent; you have spent $0.2000 since. Your share was "
        "$0.5000; $0.3000 of it is left, and others spend theirs at the same time."
    )
    assert "when your share was set, your team had spent $0.0000; you have spent $0.2000 since" in mine.status("team")
    mine.reserve(160_000, "c").charge(160_000)
    assert mine.status("full").endswith(f"Your share {CONCISE}")
    mine.reserve(80_000, "c").charge(80_000)
    assert "Your share is almost empty" in mine.status("team")
    assert mine.status("hidden") == ""


def test_a_released_hold_costs_nothing() -> None:
    purse = Purse(Ledger(100), "data", {})
    purse.reserve(80, "c").release()
    assert (purse.available, purse.spent) == (100, 0)


@given(st.integers(0, 10_000), st.integers(0, 12_000), st.integers(1, 3), st.lists(st.integers(0, 3000), max_size=20))
def test_what_is_set_aside_stays_whatever_is_spent(total: int, aside: int, sharers: int, amounts: list[int]) -> None:
    ledger = Ledger(total)
    purses = [Purse(ledger, "data", {}, sharers, aside=aside) for _ in range(sharers)]
    for n, amount in enumerate(amounts):
        purse = purses[n % sharers]
        if amount <= purse.available:
            purse.reserve(amount, "c").charge(amount)
    assert ledger.remaining >= min(total, aside)


def test_notices_go_by_unreserved_money_and_are_silent_while_the_step_can_be_paid() -> None:
    ledger = Ledger(100_000)
    ledger.restore(60_000, call="c", member="data")
    before = {"data": 60_000}
    assert "running low" not in Purse(ledger, "model", before).status("full")
    assert "running low" in Purse(ledger, "model", before, aside=20_000).status("full")
    assert "almost empty" in Purse(ledger, "model", before, aside=40_000).status("team")
    assert "almost empty" not in Purse(ledger, "model", before, aside=35_000, likely=5_000).status("team")
    assert "almost empty" in Purse(ledger, "model", before, aside=35_000, likely=5_001).status("team")
    assert "$0.0200 of it set aside" in Purse(ledger, "model", before, aside=20_000).status("full")


def test_a_share_bounds_its_agent_and_no_other() -> None:
    purse = Purse(Ledger(1_000), "data", {}, shares={"ana": 300, "ben": 200})
    purse.spend_as("ana").reserve(250, "a").charge(250)
    assert (purse.left, purse.is_bound_by_share) == (50, True)
    with pytest.raises(InsufficientFundsError):
        purse.reserve(60, "b")
    assert purse.spend_as("ben").left == 200
    purse.note(150)
    assert purse.spent_by == {"ana": 250, "ben": 150}
    assert "Of your own share" in purse.status("full")
    assert (purse.spend_as("cho").left, purse.is_bound_by_share) == (600, False)
    assert "share" not in purse.status("full")


def test_what_is_kept_for_later_replaces_what_was_kept_before() -> None:
    purse = Purse(Ledger(1_000), "data", {})
    lefts = []
    for amount in (300, 100, 0):
        purse.keep(amount)
        lefts.append((purse.kept, purse.left, purse.available))
    assert lefts == [(300, 700, 700), (100, 900, 900), (0, 1_000, 1_000)]
