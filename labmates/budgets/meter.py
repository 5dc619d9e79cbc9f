"""The money of one model call, attempt by attempt: reserve, then settle, give back, or charge as uncertain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from labmates.budgets.ledger import Hold, InsufficientFundsError, JournalLine, Ledger
from labmates.budgets.prices import FREE, Price
from labmates.budgets.purse import Purse

Lost = Callable[[JournalLine, str, int | None], None]
"""Called with the charge of an attempt that may be billed though it brought no reply, the reason, and, for a pool of
credits with a bound in dollars, what that paid for it, in micro-dollars."""


@dataclass(frozen=True)
class Money:
    """The dollars that a call draws on beside a pool of credits.

    Attributes
    ----------
    bound
        What the run may spend.
    price
        What the provider charges.
    """

    bound: Ledger
    price: Price


class CallMeter:
    """The payer of one call's attempts.

    Parameters
    ----------
    purse
        Pays.
    price
        Price of the model.
    call
        Name of the call in the ledger.
    input_tokens, output_tokens
        What an attempt takes: the prompt as estimated, and the limit on the reply.
    reserved
        How many input tokens are reserved, where that is more than the estimate.
    lost
        Told each attempt that is charged without a reply.
    money
        The dollars behind a purse of credits; None where no provider's price is known, or the purse holds dollars.

    Attributes
    ----------
    price
        Price of the model.
    cost
        What the call has cost so far, in micro-dollars.
    uncertain
        What of it is for attempts that brought no reply.
    excess
        What of the provider's bill the bound of the run could not pay.
    money
        As given.
    paid
        The charge of the attempt that brought the reply; None before.
    """

    def __init__(
        self,
        purse: Purse,
        price: Price,
        call: str,
        input_tokens: int,
        output_tokens: int,
        *,
        reserved: int | None = None,
        lost: Lost | None = None,
        money: Money | None = None,
    ) -> None:
        self.cost = self.uncertain = self.excess = 0
        self.paid: JournalLine | None = None
        self.price = price
        self._purse = purse
        self._call = call
        self._tokens = (input_tokens, output_tokens)
        self._most = price.dearest.cost(input_tokens if reserved is None else reserved, output_tokens)
        self._lost = lost
        self.money = money
        self._held: tuple[Hold, Hold | None] | None = None

    def begin(self) -> None:
        """Reserve what the next attempt can cost.

        Raises
        ------
        InsufficientFundsError
            If the purse, or the bound of the run, can't pay it.
        """
        held = self._purse.reserve(self._most, self._call)
        try:
            self._held = held, self._reserve_money()
        except InsufficientFundsError:
            held.release()
            raise

    def spare(self) -> None:
        """Give back what is reserved: the attempt can't be billed."""
        if self._held is not None:
            (held, money), self._held = self._held, None
            held.release()
            if money is not None:
                money.release()

    def lost(self, reason: str) -> None:
        """Charge the estimated prompt and the whole output limit: nobody knows what the attempt is billed with."""
        if self._held is not None:
            bill = None if self.money is None else self.money.price.dearest.cost(*self._tokens)
            entry = self._settle(self.price.dearest.cost(*self._tokens), bill)
            self.uncertain -= entry.amount
            if self._lost is not None:
                self._lost(entry, reason, bill)

    def settle(self, cost: int, bill: int | None = None) -> JournalLine:
        """Charge the attempt that brought the reply, in micro-dollars.

        Parameters
        ----------
        cost
            What the purse pays.
        bill
            What the provider charges; None where nobody knows.
        """
        entry = self.paid = self._settle(cost, bill)
        if self.money is None and bill is not None:
            self.excess += entry.uncovered
        return entry

    def _reserve_money(self) -> Hold | None:
        if self.money is None:
            return None
        return Hold(self.money.bound, None, "", self._call, self.money.price.dearest.cost(*self._tokens))

    def _settle(self, cost: int, bill: int | None) -> JournalLine:
        assert self._held is not None
        (held, money), self._held = self._held, None
        entry = held.charge(cost)
        self.cost -= entry.amount
        if money is not None:
            self.excess += money.charge(-entry.amount if bill is None else bill).uncovered
        return entry


def free_meter() -> CallMeter:
    """A meter for a call that nobody pays."""
    return CallMeter(Purse(Ledger(0), "", {}), FREE, "", 0, 0)
