"""The ledger of one pool of credits: reserve before a call, settle after it at what it really used.

Its journal is append-only, and the amounts of the journal add up to the available balance at every moment. Because a
call that can't be reserved does not start, and a call that used more than it reserved is charged no more than the
pool still has, the pool is never overdrawn, whatever runs at the same time. Threads may share it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Final, Literal

from labmates.budgets.shares import Share
from labmates.budgets.usage import Usage
from labmates.errors import LabmatesError

UNLIMITED = 10**15
"""More micro-dollars than any run can spend: the pool of a run that has neither a budget nor a bound."""
LEAST_OUTPUT_TOKENS: Final = 256
"""A model call for which the pool can't pay at least this much output does not start."""
NO_USAGE: Final = Usage(0, 0)


class InsufficientFundsError(LabmatesError):
    """The pool can't pay what was to be reserved."""


@dataclass(frozen=True)
class JournalLine:
    """One line of the journal of a pool.

    Attributes
    ----------
    kind
        ``deposit`` at the start; ``hold`` before a call; then ``charge``, or ``release`` where the call failed;
        ``refused`` where the pool could not pay it. In a journal of limited length, the deposit is the sum of all lines
        that it lists no more.
    member
        Name of the agent, or of the team that pays together.
    call
        ``model PROVIDER:NAME`` or ``tool NAME``; in the lab, the step.
    amount
        What the line adds to the funds available, in micro-dollars.
    input_tokens, cached_tokens, cache_write_tokens
        The prompt, and what of it was read from, and written to, the provider's prompt cache.
    output_tokens, reasoning_tokens
        The reply, and what of it was reasoning.
    uncovered
        What of the cost the pool could not pay, because the call used more than it could be expected to.
    note
        Why a call was released or charged by an estimate; empty otherwise.
    """

    kind: Literal["deposit", "hold", "release", "charge", "refused"]
    member: str = ""
    call: str = ""
    amount: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    uncovered: int = 0
    note: str = ""


@dataclass(frozen=True)
class Reservation:
    """Money that is held for one call, in micro-dollars, and the share that pays it."""

    number: int
    call: str
    member: str
    amount: int
    share: Share | None


class Ledger:
    """A pool of money.

    Parameters
    ----------
    total
        Size of the pool, in micro-dollars.
    longest
        The most lines of its journal, at least 2; the older half of more become one. None for no limit.

    Attributes
    ----------
    lock
        Held by whoever reads several figures that belong together.
    """

    def __init__(self, total: int, *, longest: int | None = None) -> None:
        if total < 0:
            raise ValueError("a pool can't be negative")
        self.total = total
        self.lock = RLock()
        self._journal: list[JournalLine] = [JournalLine("deposit", amount=total)]
        self._longest = longest
        self._available = total
        self._held: dict[int, Reservation] = {}
        self._spent = 0
        self._number = 0
        self._waiters: list[Callable[[], None]] = []

    @property
    def journal(self) -> tuple[JournalLine, ...]:
        """All lines so far, oldest first."""
        with self.lock:
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

    def left(self, share: Share) -> int:
        """The funds that a call within a share can still use, in micro-dollars."""
        return max(0, min(self._available, share.left))

    def reserve(self, amount: int, *, call: str, member: str, share: Share | None = None) -> Reservation:
        """Hold `amount` micro-dollars for a call.

        Raises
        ------
        InsufficientFundsError
            If less than that is available in the pool, or left in the share that pays.
        ValueError
            If `amount` is negative.
        """
        if amount < 0:
            raise ValueError("a reservation can't be negative")
        with self.lock:
            if amount > self._available:
                raise InsufficientFundsError(f"the pool has {self._available} micro-dollars available, not {amount}")
            if share is not None and amount > share.left:
                raise InsufficientFundsError(f"the share has {share.left} micro-dollars left, not {amount}")
            self._number += 1
            reservation = Reservation(self._number, call, member, amount, share)
            self._held[reservation.number] = reservation
            if share is not None:
                share.take(amount)
            self._write(JournalLine("hold", member, call, -amount))
            return reservation

    def release(self, reservation: Reservation, note: str = "") -> None:
        """Give a hold back without a charge.

        Raises
        ------
        ValueError
            If it was settled or released before.
        """
        with self.lock:
            self._release(reservation, note)
            self._wake()

    def settle(self, reservation: Reservation, cost: int, usage: Usage = NO_USAGE, note: str = "") -> JournalLine:
        """Replace a hold by the charge of what the call really cost.

        A cost beyond the hold is taken from what is available; what even that can't pay is noted as `uncovered`.

        Returns
        -------
        JournalLine
            The charge, its amount negative.
        """
        if cost < 0:
            raise ValueError("a cost can't be negative")
        with self.lock:
            self._release(reservation)
            line = self._charge(cost, reservation.call, reservation.member, reservation.share, usage, note)
            self._wake()
            return line

    def restore(self, cost: int, *, call: str, member: str, share: Share | None = None) -> None:
        """Enter a charge that an earlier process settled, when a run resumes."""
        with self.lock:
            self._charge(cost, call, member, share)

    def refuse(self, member: str, call: str) -> None:
        """Note a call that could not be paid."""
        with self.lock:
            self._write(JournalLine("refused", member, call))

    def wait(self, waiter: Callable[[], None]) -> None:
        """Call `waiter` once, when the next call has ended."""
        with self.lock:
            self._waiters.append(waiter)

    def _release(self, reservation: Reservation, note: str = "") -> None:
        if self._held.pop(reservation.number, None) is None:
            raise ValueError(f"reservation {reservation.number} was settled or released before")
        if reservation.share is not None:
            reservation.share.take(-reservation.amount)
        self._write(JournalLine("release", reservation.member, reservation.call, reservation.amount, note=note))

    def _charge(
        self, cost: int, call: str, member: str, share: Share | None, usage: Usage = NO_USAGE, note: str = ""
    ) -> JournalLine:
        paid = min(cost, self._available)
        self._spent += paid
        if share is not None:
            share.charge(member, paid)
        line = JournalLine(
            "charge",
            member,
            call,
            -paid,
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            output_tokens=usage.output_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            uncovered=cost - paid,
            note=note,
        )
        self._write(line)
        return line

    def _write(self, line: JournalLine) -> None:
        self._journal.append(line)
        self._available += line.amount
        if self._longest is not None and len(self._journal) > self._longest:
            older = self._journal[: self._longest // 2 + 1]
            left = sum(line.amount for line in older)
            self._journal[: len(older)] = [JournalLine("deposit", amount=left, note="the sum of earlier lines")]

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter()
