"""The gateway's pool: seats with a key each, and what every exchange holds and costs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from labmates.budgets.ledger import Entry, Ledger, Reservation
from labmates.budgets.prices import Price
from labmates.budgets.shares import Share
from labmates.budgets.visibility import budget_status
from labmates.errors import LabmatesError

LEAST_OUTPUT_TOKENS = 256
"""A call that can't have at least this long a reply (or as long a one as it asks for) does not start."""


class EmptyPoolError(LabmatesError):
    """The pool, or the share of the seat, can't pay a call."""


class BusyPoolError(LabmatesError):
    """The rest of the pool is held by calls in flight, and none of them ended in time."""


@dataclass(frozen=True)
class Seat:
    """A program's place at the pool.

    Attributes
    ----------
    name
        For people and records.
    share
        What the seat may take of the pool.
    key
        What the program sends in place of a provider's key.
    """

    name: str
    share: Share
    key: str = field(default_factory=lambda: f"lm-{secrets.token_urlsafe(24)}", repr=False)

    @property
    def spent(self) -> int:
        """What the seat has spent, in micro-dollars."""
        return self.share.spent.get(self.name, 0)


@dataclass(frozen=True)
class Hold:
    """Money that is held for one call, and the longest reply that it pays, in tokens."""

    seat: Seat
    reservation: Reservation
    output_tokens: int


class Pool:
    """One pool of money for all seats.

    Parameters
    ----------
    total
        Size of the pool, in micro-dollars.
    seats
        Name of each seat, and the most that it may spend in micro-dollars (None: the whole pool).
    patience
        Seconds that a call waits for others to end where these hold the money that it needs.
    """

    def __init__(self, total: int, seats: Mapping[str, int | None], *, patience: float = 60.0) -> None:
        self.ledger = Ledger(total)
        self._whole = Share(total)
        self.seats = {
            name: Seat(name, self._whole.part(total if most is None else most, {})) for name, most in seats.items()
        }
        self._by_key = {seat.key: seat for seat in self.seats.values()}
        self._patience = patience
        self._in_flight = 0
        self._freed = asyncio.Event()

    def __str__(self) -> str:
        spent = self._whole.spent
        return budget_status("full", self.ledger.total, spent, "", notice=False)

    def seat_of(self, key: str) -> Seat | None:
        """The seat that has a key; None if there is no such key."""
        return self._by_key.get(key)

    def restore(self, seat: str, cost: int) -> None:
        """Enter what a call cost before the gateway was restarted."""
        self.ledger.restore(cost, call="restored", team=seat)
        if seat in self.seats:
            self.seats[seat].share.charge(seat, cost)
        else:
            self._whole.charge(seat, cost)

    async def hold(self, seat: Seat, price: Price, input_tokens: int, output_tokens: int, choices: int = 1) -> Hold:
        """Hold the most that a call can cost.

        Where the rest of the pool pays only a shorter reply, the call waits for those in flight. Once there are none,
        the reply is shortened, to `LEAST_OUTPUT_TOKENS` at least.

        Raises
        ------
        EmptyPoolError
            If the pool or the seat can't pay the call, and no call in flight could change that.
        BusyPoolError
            If it could not be paid within the pool's patience.
        """
        dearest = price.dearest
        least = min(LEAST_OUTPUT_TOKENS, output_tokens)

        def affordable() -> int:
            return min(output_tokens, dearest.most_output(input_tokens, seat.share.left) // choices)

        await self._wait(lambda: affordable() >= output_tokens or not self._in_flight)
        limit = affordable()
        if limit < least:
            if self._in_flight:
                raise BusyPoolError("the rest of the budget is held by other calls; try again")
            raise EmptyPoolError("the shared budget can't pay this call")
        amount = dearest.cost(input_tokens, limit * choices)
        hold = Hold(seat, self.ledger.reserve(amount, call="", team=seat.name), limit)
        seat.share.take(amount)
        self._in_flight += 1
        return hold

    def settle(self, hold: Hold, cost: int) -> Entry:
        """Charge what a call cost, in micro-dollars."""
        entry = self.ledger.settle(hold.reservation, cost)
        hold.seat.share.charge(hold.seat.name, -entry.amount)
        self._end(hold)
        return entry

    def release(self, hold: Hold) -> None:
        """Give a hold back: the call can't be billed."""
        self.ledger.release(hold.reservation)
        self._end(hold)

    def _end(self, hold: Hold) -> None:
        hold.seat.share.take(-hold.reservation.amount)
        self._in_flight -= 1
        self._freed.set()

    async def _wait(self, ready: Callable[[], bool]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                while not ready():
                    self._freed.clear()
                    await self._freed.wait()
