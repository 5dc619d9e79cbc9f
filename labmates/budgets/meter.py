"""The money of one model call, attempt by attempt: reserve, then settle, give back, or charge as uncertain."""

from __future__ import annotations

from collections.abc import Callable

from labmates.budgets.ledger import Entry, Reservation
from labmates.budgets.prices import Price
from labmates.budgets.purse import Purse

Lost = Callable[[Entry, str], None]
"""Called with the charge of an attempt that may be billed though it brought no reply, and with the reason."""


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
        The most that an attempt takes: the prompt as estimated, and the limit on the reply.
    lost
        Told each attempt that is charged without a reply.

    Attributes
    ----------
    price
        Price of the model.
    cost
        What the call has cost so far, in micro-dollars.
    uncertain
        What of it is for attempts that brought no reply.
    """

    def __init__(
        self, purse: Purse, price: Price, call: str, input_tokens: int, output_tokens: int, lost: Lost | None = None
    ) -> None:
        self.cost = 0
        self.uncertain = 0
        self.price = price
        self._purse = purse
        self._call = call
        self._most = price.dearest.cost(input_tokens, output_tokens)
        self._lost = lost
        self._held: Reservation | None = None

    def begin(self) -> None:
        """Reserve what the next attempt can cost.

        Raises
        ------
        InsufficientFundsError
            If the purse can't pay it.
        """
        self._held = self._purse.reserve(self._most, self._call)

    def spare(self) -> None:
        """Give back what is reserved: the attempt can't be billed."""
        if self._held is not None:
            held, self._held = self._held, None
            self._purse.release(held)

    def lost(self, reason: str) -> None:
        """Charge all that is reserved: nobody knows what the attempt is billed with."""
        if self._held is not None:
            held, self._held = self._held, None
            entry = self._purse.settle(held, self._most)
            self.cost -= entry.amount
            self.uncertain -= entry.amount
            if self._lost is not None:
                self._lost(entry, reason)

    def settle(self, cost: int) -> Entry:
        """Charge the `cost` of the attempt that brought the reply, in micro-dollars."""
        assert self._held is not None
        held, self._held = self._held, None
        entry = self._purse.settle(held, cost)
        self.cost -= entry.amount
        return entry
