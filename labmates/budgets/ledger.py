"""The ledger of a run's one pool of credits: reserve before a call, settle after it at what it really used.

Its journal is append-only, and the amounts of the journal add up to the available balance at every moment. Because a
call that can't be reserved does not start, and a call that used more than it reserved is charged no more than the
pool still has, the pool is never overdrawn, whatever runs at the same time. All methods are synchronous: within one
event loop each is atomic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from labmates.errors import LabmatesError

EntryKind = Literal["deposit", "hold", "release", "charge"]

UNLIMITED = 10**15
"""More micro-dollars than any run can spend: the pool of a run that has neither a budget nor a bound."""


class InsufficientFundsError(LabmatesError):
    """The pool can't pay what was to be reserved."""


@dataclass(frozen=True)
class Entry:
    """One line of the journal; `amount` is what it adds to the available balance, in micro-dollars."""

    kind: EntryKind
    amount: int
    call: str = ""
    team: str = ""
    uncovered: int = 0


@dataclass(frozen=True)
class Reservation:
    """Money that is held for one call."""

    number: int
    call: str
    team: str
    amount: int


class Ledger:
    """The pool of one run.

    Parameters
    ----------
    total
        Size of the pool, in micro-dollars.
    """

    def __init__(self, total: int) -> None:
        if total < 0:
            raise ValueError("a pool can't be negative")
        self.total = total
        self._journal: list[Entry] = [Entry("deposit", total)]
        self._available = total
        self._held: dict[int, Reservation] = {}
        self._spent = 0
        self._number = 0

    @property
    def journal(self) -> tuple[Entry, ...]:
        """All entries so far, oldest first."""
        return tuple(self._journal)

    @property
    def available(self) -> int:
        """The amount that can still be reserved: the pool less all charges and holds."""
        return self._available

    @property
    def spent(self) -> int:
        """The sum of all charges."""
        return self._spent

    @property
    def remaining(self) -> int:
        """The pool less all charges; holds are not yet spent."""
        return self.total - self.spent

    def reserve(self, amount: int, *, call: str, team: str) -> Reservation:
        """Hold `amount` micro-dollars for a call.

        Raises
        ------
        InsufficientFundsError
            If less than that is available.
        ValueError
            If `amount` is negative.
        """
        if amount < 0:
            raise ValueError("a reservation can't be negative")
        if amount > self._available:
            raise InsufficientFundsError(f"the pool has {self._available} micro-dollars available, not {amount}")
        self._number += 1
        reservation = Reservation(self._number, call, team, amount)
        self._held[reservation.number] = reservation
        self._write(Entry("hold", -amount, call, team))
        return reservation

    def release(self, reservation: Reservation) -> None:
        """Give a hold back without a charge.

        Raises
        ------
        ValueError
            If it was settled or released before.
        """
        if self._held.pop(reservation.number, None) is None:
            raise ValueError(f"reservation {reservation.number} was settled or released before")
        self._write(Entry("release", reservation.amount, reservation.call, reservation.team))

    def settle(self, reservation: Reservation, cost: int) -> Entry:
        """Replace a hold by the charge of what the call really cost.

        A cost beyond the hold is taken from what is available; what even that can't pay is noted as `uncovered`.

        Returns
        -------
        Entry
            The charge, its amount negative.
        """
        if cost < 0:
            raise ValueError("a cost can't be negative")
        self.release(reservation)
        return self._charge(cost, reservation.call, reservation.team)

    def restore(self, cost: int, *, call: str, team: str) -> None:
        """Enter a charge that an earlier process settled, when a run resumes."""
        self._charge(cost, call, team)

    def _charge(self, cost: int, call: str, team: str) -> Entry:
        paid = min(cost, self._available)
        entry = Entry("charge", -paid, call, team, uncovered=cost - paid)
        self._spent += paid
        self._write(entry)
        return entry

    def _write(self, entry: Entry) -> None:
        self._journal.append(entry)
        self._available += entry.amount
