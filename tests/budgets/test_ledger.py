from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from labmates.budgets.budget import Budget
from labmates.budgets.ledger import InsufficientFundsError, Ledger, Reservation, Share
from labmates.budgets.prices import Price

amounts = st.integers(0, 300)


class LedgerMachine(RuleBasedStateMachine):
    """Any order of reservations, settlements and releases."""

    held = Bundle("held")

    @initialize(total=st.integers(0, 1000), longest=st.none() | st.integers(2, 9))
    def open(self, total: int, longest: int | None) -> None:
        self.ledger, self.longest = Ledger(total, longest=longest), longest
        self.open_holds: list[Reservation] = []
        self.paid = 0

    @rule(target=held, amount=amounts, team=st.sampled_from(["data", "model"]))
    def reserve(self, amount: int, team: str) -> Reservation | None:
        before = self.ledger.available
        try:
            reservation = self.ledger.reserve(amount, call="c", member=team)
        except InsufficientFundsError:
            assert amount > before
            return None
        assert amount <= before
        self.open_holds.append(reservation)
        return reservation

    @rule(reservation=consumes(held), cost=st.integers(0, 600))
    def settle(self, reservation: Reservation | None, cost: int) -> None:
        if reservation is None:
            return
        self.open_holds.remove(reservation)
        can_pay = self.ledger.available + reservation.amount
        entry = self.ledger.settle(reservation, cost)
        assert -entry.amount == min(cost, can_pay)
        assert entry.uncovered == cost + entry.amount
        self.paid -= entry.amount

    @rule(reservation=consumes(held))
    def release(self, reservation: Reservation | None) -> None:
        if reservation is not None:
            self.open_holds.remove(reservation)
            self.ledger.release(reservation)

    @invariant()
    def balanced(self) -> None:
        ledger = self.ledger
        assert sum(entry.amount for entry in ledger.journal) == ledger.available
        assert ledger.available >= 0
        assert ledger.available == ledger.total - ledger.spent - sum(r.amount for r in self.open_holds)
        assert ledger.spent == self.paid
        assert ledger.remaining == ledger.total - ledger.spent
        assert 0 <= ledger.spent <= ledger.total
        assert self.longest is None or len(ledger.journal) <= self.longest


TestAnyOrderOfOperationsKeepsTheLedgerBalanced = LedgerMachine.TestCase
TestAnyOrderOfOperationsKeepsTheLedgerBalanced.settings = settings(max_examples=40, stateful_step_count=30)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 5000), st.integers(1, 40), st.integers(0, 2**32))
def test_concurrent_callers_never_overdraw_the_pool_whatever_the_interleaving(
    total: int, callers: int, seed: int
) -> None:
    dice = random.Random(seed)
    plans = [[(dice.randint(0, 200), dice.randint(0, 400), dice.random()) for _ in range(5)] for _ in range(callers)]
    ledger = Ledger(total)

    async def caller(team: str, plan: list[tuple[int, int, float]]) -> None:
        for hold, cost, fate in plan:
            for _ in range(dice.randint(0, 3)):
                await asyncio.sleep(0)
            try:
                reservation = ledger.reserve(hold, call="c", member=team)
            except InsufficientFundsError:
                continue
            await asyncio.sleep(0)
            if fate < 0.2:
                ledger.release(reservation)
            else:
                ledger.settle(reservation, cost)
            assert sum(entry.amount for entry in ledger.journal) == ledger.available >= 0

    async def everyone() -> None:
        await asyncio.gather(*(caller(f"team{i % 4}", plan) for i, plan in enumerate(plans)))

    asyncio.run(everyone())
    assert ledger.spent <= total
    assert ledger.available == ledger.remaining


def test_a_reservation_is_settled_or_released_only_once() -> None:
    ledger = Ledger(100)
    reservation = ledger.reserve(50, call="c", member="data")
    ledger.settle(reservation, 20)
    with pytest.raises(ValueError, match="before"):
        ledger.settle(reservation, 20)
    with pytest.raises(ValueError, match="before"):
        ledger.release(reservation)
    assert ledger.spent == 20


def test_a_cost_above_the_hold_is_paid_from_the_pool_and_the_rest_is_noted() -> None:
    ledger = Ledger(100)
    entry = ledger.settle(ledger.reserve(50, call="c", member="data"), 130)
    assert (entry.amount, entry.uncovered, ledger.available) == (-100, 30, 0)


def test_a_share_is_charged_only_what_the_pool_could_pay() -> None:
    ledger, share = Ledger(100), Share(1_000)
    ledger.settle(ledger.reserve(50, call="c", member="data", share=share), 130)
    assert share.charged["data"] == 100


def test_a_part_of_a_share_can_hold_no_more_than_the_share_has_left() -> None:
    ledger, share = Ledger(100), Share(10)
    ledger.reserve(6, call="c", member="a", share=share)
    with pytest.raises(InsufficientFundsError, match="4 micro-dollars left, not 5"):
        ledger.reserve(5, call="c", member="a", share=share.part(8, {}))


def test_only_calls_in_flight_that_hold_money_of_the_tightest_share_are_worth_waiting_for() -> None:
    whole = Share(10)
    mine, other = whole.part(3, {}), whole.part(9, {})
    other.begin(1)
    other.take(6)
    assert not mine.is_busy, "the whole has 4 left, and my part 3"
    other.take(2)
    assert mine.is_busy, "the whole has 2 left, and the other's call may give some back"


def test_a_reply_shorter_than_the_shortest_needs_only_its_own_money() -> None:
    budget = Budget(Ledger(50), Share(50), "data")
    price = Price.model_validate({"input": "0", "output": "1"})
    assert budget.affordable("c", price, 20, 0) == 20
    with pytest.raises(InsufficientFundsError, match="can't pay another reply"):
        budget.affordable("c", price, 100, 0)


@pytest.mark.parametrize("end", [Ledger.release, lambda ledger, held: ledger.settle(held, 20)])
def test_who_waits_is_called_once_when_a_call_ends_with_or_without_a_charge(end: Callable[..., object]) -> None:
    ledger, called = Ledger(100), list[str]()
    first, second = (ledger.reserve(40, call="c", member="data") for _ in range(2))
    ledger.wait(lambda: called.append("once"))
    assert called == []
    end(ledger, first)
    end(ledger, second)
    assert called == ["once"]


def test_a_charge_of_an_earlier_process_is_restored_once() -> None:
    ledger = Ledger(100)
    ledger.restore(40, call="data/0/x", member="data")
    assert (ledger.spent, ledger.available) == (40, 60)


def test_negative_amounts_are_refused() -> None:
    ledger = Ledger(100)
    with pytest.raises(ValueError, match="negative"):
        Ledger(-1)
    with pytest.raises(ValueError, match="negative"):
        ledger.reserve(-1, call="c", member="data")
    with pytest.raises(ValueError, match="negative"):
        ledger.settle(ledger.reserve(1, call="c", member="data"), -1)
