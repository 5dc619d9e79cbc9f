"""`Budget`: one member's access to a pool, and the holds and charges of its calls.

All paid calls go through it: `labmates.SharedBudget`, the purses of the lab's members, and the gateway's seats are
budgets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from labmates.budgets.ledger import (
    LEAST_OUTPUT_TOKENS,
    NO_USAGE,
    UNLIMITED,
    InsufficientFundsError,
    JournalLine,
    Ledger,
    Reservation,
    Share,
)
from labmates.budgets.prices import FREE, Price
from labmates.budgets.tokens import Usage
from labmates.budgets.visibility import Visibility, budget_status

T = TypeVar("T")
Waiter = Callable[[], None]


class BusyError(Exception):
    """Calls in flight hold money that may come back."""


class Budget:
    """One member's access to a pool, whoever makes the calls: LangChain agents, the lab, or programs at a gateway.

    A call takes four steps: `status` for the prompt, `affordable` for the limit on the reply, a hold (`reserve`, or a
    `ReplyHold`), and then the hold's charge or release.

    Parameters
    ----------
    ledger
        The pool.
    share
        The part of the pool that pays; the whole pool by default.
    member
        The member that is charged.
    """

    def __init__(self, ledger: Ledger, share: Share | None = None, member: str = "") -> None:
        self.ledger = ledger
        self._share = share or Share(UNLIMITED)
        self._member = member

    @property
    def share(self) -> Share:
        """The part of the pool that pays."""
        return self._share

    @property
    def member(self) -> str:
        """The member that is charged."""
        return self._member

    @property
    def available(self) -> int:
        """The remaining funds, in micro-dollars."""
        return self.ledger.left(self.share)

    def status(self, visibility: Visibility, who: str = "you have") -> str:
        """The budget text for the member, with a notice if the pool runs low; empty if the budget is hidden.

        Parameters
        ----------
        visibility, who
            See `labmates.budgets.visibility.budget_status`.
        """
        return budget_status(
            visibility, self.ledger.total, self._spending, self.member, who, aside=self._aside, notice=self._warns
        )

    def affordable(
        self,
        call: str,
        price: Price,
        wanted: int,
        prompt: int,
        *,
        stated: Callable[[], int] | None = None,
        least: int = LEAST_OUTPUT_TOKENS,
        waiter: Waiter | None = None,
    ) -> int:
        """The highest affordable limit on a reply, in tokens; at most `wanted`.

        Parameters
        ----------
        call
            Name of the call in the journal, in case that it is refused.
        prompt
            Tokens of the prompt.
        stated
            Tokens of the prompt with a line that states the limit, used when the limit is lowered; `prompt` by default.
        least
            Shorter replies are refused, unless `wanted` itself is lower.
        waiter
            Called when the next call ends and may free money for a longer reply.

        Raises
        ------
        InsufficientFundsError
            If even the shortest allowed reply is too expensive.
        BusyError
            If `waiter` is registered and will be called.
        """
        funds, worst = self.ledger.left(self.share), price.worst_case
        limit = worst.most_output(prompt, funds)
        if limit < wanted and stated is not None:
            limit = worst.most_output(stated(), funds)
        if limit < wanted and waiter is not None and self.share.is_busy:
            self.ledger.wait(waiter)
            raise BusyError
        if limit < min(least, wanted):
            self.ledger.refuse(self.member, call)
            raise InsufficientFundsError("the pool can't pay another reply")
        return min(limit, wanted)

    def reserve(self, amount: int, call: str) -> Hold:
        """Hold `amount` micro-dollars for a call."""
        return Hold(self, call, amount)

    _aside = 0
    _warns = True

    @property
    def _spending(self) -> Mapping[str, int]:
        return self.share.spent


class Hold:
    """Money held for a call; a context manager that gives it back if the call fails.

    Parameters
    ----------
    call
        Name of the call in the journal.
    amount
        Maximum cost of the call, in micro-dollars.

    Raises
    ------
    InsufficientFundsError
        If the budget can't pay the amount.
    """

    def __init__(self, budget: Budget, call: str, amount: int) -> None:
        self.amount = amount
        self._ledger = budget.ledger
        self._share = budget.share
        self._reservation: Reservation | None = self._ledger.reserve(
            amount, call=call, member=budget.member, share=self._share
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reservation is not None and error is not None:
            self.failed(error)

    def failed(self, error: BaseException) -> None:
        """Give the money of a failed call back."""
        self.release(type(error).__name__)

    def release(self, note: str = "") -> None:
        """Give the money back."""
        with self._ledger.lock:
            self._ledger.release(self._ended(), note)

    def charge(self, cost: int, usage: Usage = NO_USAGE, note: str = "") -> JournalLine:
        """Replace the hold by the call's cost, in micro-dollars."""
        with self._ledger.lock:
            return self._ledger.settle(self._ended(), cost, usage, note)

    def _ended(self) -> Reservation:
        assert self._reservation is not None
        reservation, self._reservation = self._reservation, None
        return reservation


class ReplyHold(Hold):
    """Money held for a model's reply: the maximum cost of its prompt and its output limit.

    Attributes
    ----------
    limit
        The limit on the reply, in tokens.
    price
        Price of the model; after the charge, the price that was charged.
    usage
        Charged tokens.
    """

    def __init__(self, budget: Budget, call: str, price: Price, prompt: int, limit: int) -> None:
        super().__init__(budget, call, price.worst_case.cost(prompt, limit))
        self.limit, self.price, self.usage = limit, price, NO_USAGE
        self._share.begin(1)

    def settle(self, usage: Usage, note: str = "") -> JournalLine:
        """Charge the reply's usage."""
        self.usage = usage
        return self.charge(usage.cost(self.price), usage, note)

    def lost(self, prompt: int, reason: str) -> JournalLine:
        """Charge the estimated prompt and the whole limit: the provider's bill is unknown."""
        self.price = self.price.worst_case
        return self.settle(Usage(prompt, self.limit, estimated=True), f"may be billed ({reason})")

    def _ended(self) -> Reservation:
        self._share.begin(-1)
        return super()._ended()


async def when_free(reserve: Callable[[Waiter], T]) -> T:
    """The result of `reserve`, retried after each `BusyError` once its waiter is called."""
    loop = asyncio.get_running_loop()
    while True:
        freed = asyncio.Event()
        try:
            return reserve(partial(_wake, loop, freed))
        except BusyError:
            await freed.wait()


def _wake(loop: asyncio.AbstractEventLoop, freed: asyncio.Event) -> None:
    with suppress(RuntimeError):  # The loop and its waiters have ended.
        loop.call_soon_threadsafe(freed.set)


GATEWAY_TIMEOUTS = (504, 524)
"""Error statuses of servers between that stopped waiting for a model, which may have worked and is billed then."""


@dataclass(frozen=True)
class LostAttempt:
    """An attempt without a reply that is charged: its charge, the reason, the charged usage, and the provider's bill.

    The bill is in micro-dollars, None if unknown. `is_certain` tells that the server reported the usage.
    """

    entry: JournalLine
    reason: str
    usage: Usage
    bill: int | None
    is_certain: bool = False


Lost = Callable[[LostAttempt], None]
"""Called for each attempt that is charged without a reply."""


@dataclass(frozen=True)
class Money:
    """The dollars behind a pool of credits: the run's bound, and the provider's price."""

    bound: Ledger
    price: Price


@dataclass(eq=False)
class CallMeter:
    """The payer of one call's attempts."""

    budget: Budget
    price: Price
    call: str  # name of the call in the ledger
    # Tokens of an attempt: the estimated prompt, what is reserved for it, and the limit on the reply.
    inputs: int
    reserved: int
    limit: int
    _: KW_ONLY
    tell: Lost = lambda _attempt: None
    by_bill: bool = False  # whether the budget pays the provider's bill where it is known, instead of the price
    # The dollars behind a pool of credits; None if no provider's price is known, or the pool holds dollars.
    money: Money | None = None
    # Charges so far, in micro-dollars; those for attempts without a reply; the provider's bill beyond the run's bound.
    cost: int = field(default=0, init=False)
    uncertain: int = field(default=0, init=False)
    excess: int = field(default=0, init=False)
    paid: JournalLine | None = field(default=None, init=False)  # the charge of the attempt that brought the reply
    _held: tuple[ReplyHold, ReplyHold | None] | None = field(default=None, init=False)

    def begin(self) -> None:
        """Reserve the maximum cost of the next attempt.

        Raises
        ------
        InsufficientFundsError
            If the budget, or the bound of the run, can't pay it.
        """
        credits = ReplyHold(self.budget, self.call, self.price, self.reserved, self.limit)
        try:
            self._held = credits, self._reserve_money()
        except InsufficientFundsError:
            credits.release()
            raise

    def release(self) -> None:
        """Give the reservation back: the attempt can't be billed."""
        if self._held is not None:
            (credits, money), self._held = self._held, None
            credits.release()
            if money is not None:
                money.release()

    def lost(self, reason: str) -> None:
        """Charge the estimated prompt and the whole output limit: the provider's bill is unknown."""
        if self._held is not None:
            (credits, money), self._held = self._held, None
            entry, bill = credits.lost(self.inputs, reason), None
            self.cost -= entry.amount
            self.uncertain -= entry.amount
            if money is not None:
                bill = -money.lost(self.inputs, reason).amount  # what was held for it, which always pays it
            self.tell(LostAttempt(entry, reason, credits.usage, bill))

    def failed(self, reason: str, usage: Usage, bill: int | None) -> None:
        """Charge an attempt without a reply for which the server reported the usage."""
        if self._held is not None:
            entry = self._charge(usage, bill, reason)
            self.tell(LostAttempt(entry, reason, usage, bill, is_certain=True))

    def settle(self, usage: Usage, bill: int | None = None) -> JournalLine:
        """Charge the attempt that brought the reply.

        Parameters
        ----------
        bill
            The provider's charge in micro-dollars; None if unknown.
        """
        entry = self.paid = self._charge(usage, bill)
        return entry

    def _charge(self, usage: Usage, bill: int | None, note: str = "") -> JournalLine:
        assert self._held is not None
        (credits, money), self._held = self._held, None
        is_billed = self.by_bill and bill is not None
        entry = credits.charge(bill if is_billed and bill is not None else usage.cost(self.price), usage, note)
        self.cost -= entry.amount
        if money is not None:
            # Without a bill, what the pool could not pay is spent nevertheless.
            self.excess += money.charge(entry.uncovered - entry.amount if bill is None else bill).uncovered
        elif is_billed:
            self.excess += entry.uncovered
        return entry

    def _reserve_money(self) -> ReplyHold | None:
        if self.money is None:
            return None
        return ReplyHold(Budget(self.money.bound), self.call, self.money.price, self.inputs, self.limit)


def free_meter(tell: Lost = lambda _attempt: None) -> CallMeter:
    """A meter for a call without charge."""
    return CallMeter(Budget(Ledger(0)), FREE, "", 0, 0, 0, tell=tell)
