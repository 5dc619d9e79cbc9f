"""The ledger of a pool of credits, and its shares: reserve before a call, settle at its actual usage.

The journal is append-only, and its amounts always add up to the available balance. Concurrent calls never overdraw the
pool: a call without a reservation does not start, and a call that exceeds its reservation is charged at most the
pool's remaining funds. Thread-safe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import RLock
from typing import Final, Literal

from labmates.budgets.tokens import Usage
from labmates.errors import LabmatesError


@dataclass(eq=False)
class Share:
    """A part of a pool.

    Equal shares make parallel spending deterministic: the order of calls never decides which member gets the last
    credits. A share reserves nothing; its unspent money stays with its parent.

    Attributes
    ----------
    limit
        Spending limit of its members, in micro-dollars.
    before
        Spending of each member when the share was created, in micro-dollars.
    parent
        The enclosing share; None for the whole pool.
    taken
        Holds and charges in this share and its parts, in micro-dollars.
    in_flight
        Number of open model calls in this share and its parts.
    charged
        Charges by member since the share was created, in micro-dollars.
    """

    limit: int
    before: Mapping[str, int] = field(default_factory=dict)
    parent: Share | None = None
    taken: int = 0
    in_flight: int = 0
    charged: Counter[str] = field(default_factory=Counter)

    @property
    def rest(self) -> int:
        """The limit less all holds and charges, in micro-dollars; negative if a call exceeded its reservation."""
        return self.limit - self.taken

    @property
    def left(self) -> int:
        """The least rest of this share and its parents, in micro-dollars."""
        return min(share.rest for share in self._upwards())

    @property
    def spent(self) -> dict[str, int]:
        """Spending by member, in micro-dollars, excluding other shares' since this one was created."""
        return dict(Counter(self.before) + self.charged)

    def take(self, amount: int) -> None:
        """Add an amount to `taken`; a negative amount is given back."""
        for share in self._upwards():
            share.taken += amount

    @property
    def is_busy(self) -> bool:
        """Whether calls in flight hold money of the tightest share, some of which may come back."""
        return min(self._upwards(), key=lambda share: share.rest).in_flight > 0

    def begin(self, calls: int) -> None:
        """Count model calls as begun, or as ended if negative."""
        for share in self._upwards():
            share.in_flight += calls

    def charge(self, member: str, amount: int) -> None:
        """Count an amount as spent by a member."""
        self.take(amount)
        for share in self._upwards():
            share.charged[member] += amount

    def part(self, limit: int, before: Mapping[str, int]) -> Share:
        """A part of this share."""
        return Share(limit, before, self)

    def _upwards(self) -> Iterator[Share]:
        share: Share | None = self
        while share is not None:
            yield share
            share = share.parent


UNLIMITED = 10**15
"""More micro-dollars than any run can spend: the pool of a run without a budget or a bound."""
LEAST_OUTPUT_TOKENS: Final = 256
"""A model call starts only if the pool can pay at least this much output."""
NO_USAGE: Final = Usage(0, 0)


class InsufficientFundsError(LabmatesError):
    """The pool can't pay a reservation."""


@dataclass(frozen=True)
class JournalLine:
    """One line of the journal of a pool.

    Attributes
    ----------
    kind
        ``deposit`` at the start; ``hold`` before a call; then ``charge``, or ``release`` if the call failed;
        ``refused`` if the pool could not pay it. In a journal of limited length, the deposit is the sum of all omitted
        lines.
    member
        Name of the agent, or of the team that pays together.
    call
        ``model PROVIDER:NAME`` or ``tool NAME``; in the lab, the step.
    amount
        Change of the available funds, in micro-dollars.
    input_tokens, cached_tokens, cache_write_tokens
        Tokens of the prompt; those read from, and written to, the provider's prompt cache.
    output_tokens, reasoning_tokens
        Tokens of the reply; those of its reasoning.
    uncovered
        Unpaid part of the cost of a call that exceeded its reservation, in micro-dollars.
    note
        Reason for a release or an estimated charge; empty otherwise.
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


@dataclass(frozen=True, eq=False)
class Reservation:
    """Money held for one call, in micro-dollars, and the share that pays it."""

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
    available
        The pool less all charges and holds, in micro-dollars.
    spent
        The sum of all charges.
    lock
        To hold while reading several figures that must be consistent.
    """

    def __init__(self, total: int, *, longest: int | None = None) -> None:
        if total < 0:
            raise ValueError("a pool can't be negative")
        self.total = total
        self.lock = RLock()
        self._journal: list[JournalLine] = [JournalLine("deposit", amount=total)]
        self._longest = longest
        self.available = total
        self._held: set[Reservation] = set()
        self.spent = 0
        self._waiters: list[Callable[[], None]] = []

    @property
    def journal(self) -> tuple[JournalLine, ...]:
        """All lines, oldest first."""
        with self.lock:
            return tuple(self._journal)

    @property
    def remaining(self) -> int:
        """The pool less all charges; holds are not subtracted."""
        return self.total - self.spent

    def left(self, share: Share) -> int:
        """The available funds of a share, in micro-dollars."""
        return max(0, min(self.available, share.left))

    def reserve(self, amount: int, *, call: str, member: str, share: Share | None = None) -> Reservation:
        """Hold `amount` micro-dollars for a call, or record that it is refused.

        Raises
        ------
        InsufficientFundsError
            If the pool or the share has less.
        ValueError
            If `amount` is negative.
        """
        if amount < 0:
            raise ValueError("a reservation can't be negative")
        with self.lock:
            if amount > self.available:
                self.refuse(member, call)
                raise InsufficientFundsError(f"the pool has {self.available} micro-dollars available, not {amount}")
            if share is not None and amount > share.left:
                self.refuse(member, call)
                raise InsufficientFundsError(f"the share has {share.left} micro-dollars left, not {amount}")
            reservation = Reservation(call, member, amount, share)
            self._held.add(reservation)
            if share is not None:
                share.take(amount)
            self._write(JournalLine("hold", member, call, -amount))
            return reservation

    def release(self, reservation: Reservation, note: str = "") -> None:
        """Release a hold without a charge.

        Raises
        ------
        ValueError
            If the hold was settled or released before.
        """
        with self.lock:
            self._release(reservation, note)
            self._wake()

    def settle(self, reservation: Reservation, cost: int, usage: Usage = NO_USAGE, note: str = "") -> JournalLine:
        """Replace a hold by a charge for the call's actual cost; the charge's amount is negative.

        A cost beyond the hold is taken from the available funds; any rest is recorded as `uncovered`.
        """
        if cost < 0:
            raise ValueError("a cost can't be negative")
        with self.lock:
            self._release(reservation)
            line = self._charge(cost, reservation.call, reservation.member, reservation.share, usage, note)
            self._wake()
            return line

    def restore(self, cost: int, *, call: str, member: str, share: Share | None = None) -> None:
        """Enter a charge of an earlier process, when a run resumes."""
        with self.lock:
            self._charge(cost, call, member, share)

    def refuse(self, member: str, call: str) -> None:
        """Record a call that the pool could not pay."""
        with self.lock:
            self._write(JournalLine("refused", member, call))

    def wait(self, waiter: Callable[[], None]) -> None:
        """Call `waiter` once, when the next call ends."""
        with self.lock:
            self._waiters.append(waiter)

    def _release(self, reservation: Reservation, note: str = "") -> None:
        if reservation not in self._held:
            raise ValueError(f"the reservation of {reservation.call} was settled or released before")
        self._held.remove(reservation)
        if reservation.share is not None:
            reservation.share.take(-reservation.amount)
        self._write(JournalLine("release", reservation.member, reservation.call, reservation.amount, note=note))

    def _charge(
        self, cost: int, call: str, member: str, share: Share | None, usage: Usage = NO_USAGE, note: str = ""
    ) -> JournalLine:
        paid = min(cost, self.available)
        self.spent += paid
        if share is not None:
            share.charge(member, paid)
        line = JournalLine(
            "charge",
            member,
            call,
            -paid,
            **{name: tokens for name, tokens in vars(usage).items() if name != "estimated"},
            uncovered=cost - paid,
            note=note,
        )
        self._write(line)
        return line

    def _write(self, line: JournalLine) -> None:
        self._journal.append(line)
        self.available += line.amount
        if self._longest is not None and len(self._journal) > self._longest:
            older = self._journal[: self._longest // 2 + 1]
            left = sum(line.amount for line in older)
            self._journal[: len(older)] = [JournalLine("deposit", amount=left, note="the sum of earlier lines")]

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter()
