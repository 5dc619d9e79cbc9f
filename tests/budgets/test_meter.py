"""The meter of a call: whatever becomes of its attempts, the ledger adds up and is not overdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from labmates.budgets.ledger import InsufficientFundsError, Ledger
from labmates.budgets.meter import CallMeter
from labmates.budgets.prices import Price
from labmates.budgets.purse import Purse

STEPS = st.tuples(st.integers(0, 4), st.sampled_from(["begin", "spare", "lost", "settle"]), st.integers(0, 3_000))


@given(total=st.integers(0, 5_000), steps=st.lists(STEPS, max_size=60))
def test_calls_at_the_same_time_never_take_more_than_there_is(
    total: int, steps: Sequence[tuple[int, str, int]]
) -> None:
    ledger = Ledger(total)
    purse = Purse(ledger, "team", {})
    lost: list[int] = []
    price = Price(input="1", output="2", reasoning="5")
    meters = [
        CallMeter(purse, price, str(n), 100 * n, 100, lambda entry, _: lost.append(-entry.amount)) for n in range(5)
    ]
    held = set[int]()
    for which, what, cost in steps:
        meter = meters[which]
        if what == "begin" and which not in held:
            with suppress(InsufficientFundsError):
                meter.begin()
                held.add(which)
        elif what == "settle" and which in held:
            meter.settle(cost)
            held.discard(which)
        elif what == "lost":
            meter.lost("cut")
            held.discard(which)
        elif what == "spare":
            meter.spare()
            held.discard(which)
        reserved = sum(100 * n + 500 for n in held)
        assert total == ledger.spent + reserved + ledger.available
        assert ledger.available >= 0
    assert ledger.spent == purse.spent == sum(meter.cost for meter in meters)
    assert sum(lost) == sum(meter.uncertain for meter in meters)
