"""The payment of a model call's attempts: reserve, then settle, release, or charge as uncertain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from labmates.budgets.budget import Budget, ReplyHold
from labmates.budgets.ledger import InsufficientFundsError, JournalLine, Ledger
from labmates.budgets.prices import FREE, Price
from labmates.budgets.usage import Usage


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


class CallMeter:
    """The payer of one call's attempts.

    Parameters
    ----------
    call
        Name of the call in the ledger.
    input_tokens, output_tokens
        Usage of an attempt: the estimated prompt, and the limit on the reply.
    reserved
        Input tokens to reserve; `input_tokens` by default.
    lost
        Called for each attempt that is charged without a reply.
    by_bill
        Whether the budget pays the provider's bill where it is known, instead of the price.
    money
        The dollars behind a pool of credits; None if no provider's price is known, or the pool holds dollars.

    Attributes
    ----------
    cost
        Charges so far, in micro-dollars.
    uncertain
        The part of `cost` for attempts without a reply.
    excess
        The part of the provider's bill beyond the run's bound, in micro-dollars.
    paid
        The charge of the attempt that brought the reply; None before.
    """

    def __init__(
        self,
        budget: Budget,
        price: Price,
        call: str,
        input_tokens: int,
        output_tokens: int,
        *,
        reserved: int | None = None,
        lost: Lost | None = None,
        by_bill: bool = False,
        money: Money | None = None,
    ) -> None:
        self.cost = self.uncertain = self.excess = 0
        self.paid: JournalLine | None = None
        self.price = price
        self._budget = budget
        self._call = call
        self._inputs, self._limit = input_tokens, output_tokens
        self._reserved = input_tokens if reserved is None else reserved
        self._lost = lost
        self._by_bill = by_bill
        self.money = money
        self._held: tuple[ReplyHold, ReplyHold | None] | None = None

    def begin(self) -> None:
        """Reserve the maximum cost of the next attempt.

        Raises
        ------
        InsufficientFundsError
            If the budget, or the bound of the run, can't pay it.
        """
        credits = ReplyHold(self._budget, self._call, self.price, self._reserved, self._limit)
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
            entry, bill = credits.lost(self._inputs, reason), None
            self.cost -= entry.amount
            self.uncertain -= entry.amount
            if money is not None:
                line = money.lost(self._inputs, reason)
                self.excess += line.uncovered
                bill = line.uncovered - line.amount
            self._tell(LostAttempt(entry, reason, credits.usage, bill))

    def failed(self, reason: str, usage: Usage, bill: int | None) -> None:
        """Charge an attempt without a reply for which the server reported the usage."""
        if self._held is not None:
            entry = self._charge(usage, bill, reason)
            self._tell(LostAttempt(entry, reason, usage, bill, is_certain=True))

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
        is_billed = self._by_bill and bill is not None
        entry = credits.charge(bill if is_billed and bill is not None else usage.cost(self.price), usage, note)
        self.cost -= entry.amount
        if money is not None:
            self.excess += money.charge(-entry.amount if bill is None else bill).uncovered
        elif is_billed:
            self.excess += entry.uncovered
        return entry

    def _tell(self, attempt: LostAttempt) -> None:
        if self._lost is not None:
            self._lost(attempt)

    def _reserve_money(self) -> ReplyHold | None:
        if self.money is None:
            return None
        return ReplyHold(Budget(self.money.bound), self._call, self.money.price, self._inputs, self._limit)


def free_meter(lost: Lost | None = None) -> CallMeter:
    """A meter for a call without charge."""
    return CallMeter(Budget(Ledger(0)), FREE, "", 0, 0, lost=lost)
