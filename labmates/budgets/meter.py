"""The money of one model call, attempt by attempt: reserve, then settle, give back, or charge as uncertain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from labmates.budgets.accounts import Account, ReplyHold
from labmates.budgets.ledger import InsufficientFundsError, JournalLine, Ledger
from labmates.budgets.prices import FREE, Price

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
    account
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
        The dollars behind a pool of credits; None where no provider's price is known, or the pool holds dollars.

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
        account: Account,
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
        self._account = account
        self._call = call
        self._inputs, self._limit = input_tokens, output_tokens
        self._reserved = input_tokens if reserved is None else reserved
        self._lost = lost
        self.money = money
        self._held: tuple[ReplyHold, ReplyHold | None] | None = None

    def begin(self) -> None:
        """Reserve what the next attempt can cost.

        Raises
        ------
        InsufficientFundsError
            If the account, or the bound of the run, can't pay it.
        """
        held = ReplyHold(self._account, self._call, self.price, self._reserved, self._limit)
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
            (held, money), self._held = self._held, None
            entry, bill = held.lost(self._inputs, reason), None
            self.cost -= entry.amount
            self.uncertain -= entry.amount
            if money is not None:
                line = money.lost(self._inputs, reason)
                self.excess += line.uncovered
                bill = line.uncovered - line.amount
            if self._lost is not None:
                self._lost(entry, reason, bill)

    def settle(self, cost: int, bill: int | None = None) -> JournalLine:
        """Charge the attempt that brought the reply, in micro-dollars.

        Parameters
        ----------
        cost
            What the account pays.
        bill
            What the provider charges; None where nobody knows.
        """
        assert self._held is not None
        (held, money), self._held = self._held, None
        entry = self.paid = held.charge(cost)
        self.cost -= entry.amount
        if money is not None:
            self.excess += money.charge(-entry.amount if bill is None else bill).uncovered
        elif bill is not None:
            self.excess += entry.uncovered
        return entry

    def _reserve_money(self) -> ReplyHold | None:
        if self.money is None:
            return None
        return ReplyHold(Account(self.money.bound), self._call, self.money.price, self._inputs, self._limit)


def free_meter() -> CallMeter:
    """A meter for a call that nobody pays."""
    return CallMeter(Account(Ledger(0)), FREE, "", 0, 0)
