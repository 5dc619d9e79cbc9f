"""Accounts at a pool: how long a reply each can pay, and the money of its calls from the hold to the charge.

Every paid call is made through an account: those of `labmates.SharedBudget`, of the gateway's seats and of the lab.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
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
)
from labmates.budgets.prices import Price
from labmates.budgets.shares import Share
from labmates.budgets.usage import Usage

T = TypeVar("T")
Waiter = Callable[[], None]


class BusyError(Exception):
    """Calls in flight hold money that may come back."""


class Account:
    """What one member can take of a pool.

    Parameters
    ----------
    share
        The part of the pool that pays; all of it by default.
    name
        Who is charged.
    """

    def __init__(self, ledger: Ledger, share: Share | None = None, name: str = "") -> None:
        self.ledger = ledger
        self.share = share or Share(UNLIMITED)
        self.name = name

    @property
    def available(self) -> int:
        """The money that it can still pay, in micro-dollars."""
        return self.ledger.left(self.share)

    def affordable(
        self,
        price: Price,
        wanted: int,
        prompt: int,
        *,
        stated: Callable[[], int] | None = None,
        choices: int = 1,
        least: int = LEAST_OUTPUT_TOKENS,
        waiter: Waiter | None = None,
    ) -> int:
        """The limit on a reply that the account pays, in tokens: `wanted`, or the highest below it.

        Parameters
        ----------
        prompt
            Tokens of the prompt.
        stated
            Its tokens where it states the limit `wanted`, as a lowered limit is stated; by default `prompt`.
        choices
            How many replies the call brings.
        least
            A reply with a lower limit, and below `wanted`, is not paid.
        waiter
            Called when a call has ended that holds money for a longer reply.

        Raises
        ------
        InsufficientFundsError
            If the account pays no such reply.
        BusyError
            If a `waiter` is given and will be called.
        """
        funds, dearest = self.available, price.dearest
        limit = dearest.most_output(prompt, funds) // choices
        if limit < wanted and stated is not None:
            limit = dearest.most_output(stated(), funds) // choices
        if limit < wanted and waiter is not None and self.share.is_busy:
            self.ledger.wait(waiter)
            raise BusyError
        if limit < min(least, wanted):
            raise InsufficientFundsError("the pool can't pay another reply")
        return min(limit, wanted)

    def reserve(self, amount: int, call: str) -> Hold:
        """Hold `amount` micro-dollars for a call; see `Hold`."""
        return Hold(self, call, amount)


class Hold:
    """Money that is held for a call; a context manager that gives it back where the call fails.

    Parameters
    ----------
    call
        What is called, for the journal.
    amount
        The most that the call can cost, in micro-dollars.

    Raises
    ------
    InsufficientFundsError
        If the account can't pay that.
    """

    def __init__(self, account: Account, call: str, amount: int) -> None:
        self.amount = amount
        self._account = account
        self._share = account.share
        self._reservation: Reservation | None = account.ledger.reserve(
            amount, call=call, member=account.name, share=self._share
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reservation is not None and error is not None:
            self.failed(error)

    def failed(self, error: BaseException) -> None:
        """Settle a call that raised an error: give the money back."""
        self.release(type(error).__name__)

    def release(self, note: str = "") -> None:
        """Give the money back."""
        with self._account.ledger.lock:
            self._account.ledger.release(self._ended(), note)

    def charge(self, cost: int, usage: Usage = NO_USAGE, note: str = "") -> JournalLine:
        """Replace the hold by what the call cost, in micro-dollars."""
        with self._account.ledger.lock:
            return self._account.ledger.settle(self._ended(), cost, usage, note)

    def _ended(self) -> Reservation:
        assert self._reservation is not None
        reservation, self._reservation = self._reservation, None
        return reservation


class ReplyHold(Hold):
    """Money that is held for a model's reply: the most that its prompt and its limit, in tokens, can cost.

    Attributes
    ----------
    limit
        The limit on the reply, in tokens.
    price
        Price of the model; once charged, the price that was.
    usage
        What was charged.
    """

    def __init__(self, account: Account, call: str, price: Price, prompt: int, limit: int) -> None:
        super().__init__(account, call, price.dearest.cost(prompt, limit))
        self.limit, self.price, self.usage = limit, price, NO_USAGE
        self._share.begin(1)

    def settle(self, usage: Usage, note: str = "") -> JournalLine:
        """Charge what the reply used."""
        self.usage = usage
        return self.charge(usage.cost(self.price), usage, note)

    def lost(self, prompt: int, reason: str) -> JournalLine:
        """Charge the estimated prompt and the whole limit: nobody knows what the provider bills."""
        self.price = self.price.dearest
        return self.settle(Usage(prompt, self.limit, estimated=True), f"may be billed ({reason})")

    def _ended(self) -> Reservation:
        self._share.begin(-1)
        return super()._ended()


async def when_free(reserve: Callable[[Waiter], T]) -> T:
    """The money that `reserve` gets; it is called anew whenever it raised `BusyError` and its waiter was called."""
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
