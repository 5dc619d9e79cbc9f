"""The meter of a call: whatever becomes of its attempts, the ledger adds up and is not overdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.budgets.budget import CallMeter, LostAttempt, Money
from labmates.budgets.ledger import InsufficientFundsError, Ledger
from labmates.budgets.prices import Price
from labmates.budgets.purse import Purse
from labmates.budgets.tokens import Usage

STEPS = st.tuples(st.integers(0, 4), st.sampled_from(["begin", "release", "lost", "settle"]), st.integers(0, 3_000))


@given(total=st.integers(0, 5_000), steps=st.lists(STEPS, max_size=60))
def test_calls_at_the_same_time_never_take_more_than_there_is(
    total: int, steps: Sequence[tuple[int, str, int]]
) -> None:
    ledger = Ledger(total)
    purse = Purse(ledger, "team", {})
    lost: list[int] = []
    price = Price(input="1", output="2", reasoning="5")

    def note(attempt: LostAttempt) -> None:
        assert (attempt.reason, attempt.bill) == ("cut", None)
        lost.append(-attempt.entry.amount)

    meters = [CallMeter(purse, price, str(n), 50 * n, 100 * n, 100, tell=note) for n in range(5)]
    held = set[int]()
    for which, what, cost in steps:
        meter = meters[which]
        if what == "begin" and which not in held:
            with suppress(InsufficientFundsError):
                meter.begin()
                held.add(which)
        elif what == "settle" and which in held:
            meter.settle(Usage(cost, 0))
            held.discard(which)
        elif what == "lost":
            meter.lost("cut")
            held.discard(which)
        elif what == "release":
            meter.release()
            held.discard(which)
        reserved = sum(100 * n + 500 for n in held)
        assert total == ledger.spent + reserved + ledger.available
        assert ledger.available >= 0
    assert ledger.spent == purse.spent == sum(meter.cost for meter in meters)
    assert sum(lost) == sum(meter.uncertain for meter in meters)


@given(bound=st.integers(0, 3_000), bills=st.lists(st.none() | st.integers(0, 2_000), max_size=8))
def test_dollars_behind_a_pool_are_never_overdrawn_and_an_excess_is_counted(
    bound: int, bills: list[int | None]
) -> None:
    dollars, pool = Ledger(bound), Ledger(1_000_000)
    purse = Purse(pool, "team", {})
    billed = excess = 0
    for bill in bills:
        # A call reserves 600 dollars' micros: 100 tokens in, and 100 out at the price of reasoning.
        meter = CallMeter(
            purse, Price(), "a", 100, 100, 100, money=Money(dollars, Price(input="1", output="2", reasoning="5"))
        )
        if dollars.available < 600:
            with pytest.raises(InsufficientFundsError):
                meter.begin()
            assert pool.available == 1_000_000 - pool.spent
            break
        meter.begin()
        if bill is None:
            meter.lost("cut")
        else:
            meter.settle(Usage(14, 0), bill)
        billed, excess = billed + (600 if bill is None else bill), excess + meter.excess
    assert dollars.spent == billed - excess <= bound
    assert pool.spent == purse.spent


def test_without_a_bill_the_dollars_pay_also_what_the_pool_could_not() -> None:
    dollars, pool, price = Ledger(10_000), Ledger(1_000), Price(input="1", output="1")
    meter = CallMeter(Purse(pool, "team", {}), price, "a", 100, 100, 100, money=Money(dollars, price))
    meter.begin()
    assert meter.settle(Usage(1_500, 0)).uncovered == 500
    assert (pool.spent, dollars.spent, meter.excess) == (1_000, 1_500, 0)
