"""A pool of money with a journal: shares of it, holds for calls, and what these are settled at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from types import TracebackType
from typing import Final, Literal, Self

from labmates.budgets.ledger import InsufficientFundsError, Ledger, Reservation
from labmates.budgets.shares import Share
from labmates.budgets.usage import Usage

NO_USAGE: Final = Usage(0, 0)


@dataclass(frozen=True)
class JournalLine:
    """One line of the journal of a pool.

    Attributes
    ----------
    kind
        ``hold`` before a call; then ``charge``, or ``release`` where the call failed; ``refused`` where the pool could
        not pay it.
    member
        Name of the agent.
    call
        ``model PROVIDER:NAME`` or ``tool NAME``.
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

    kind: Literal["hold", "release", "charge", "refused"]
    member: str
    call: str
    amount: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    uncovered: int = 0
    note: str = ""


class Pool:
    """A ledger, its journal, and the share that is the whole of it; `lock` guards them
    against other threads.

    Parameters
    ----------
    total
        Size of the pool, in micro-dollars.
    """

    def __init__(self, total: int) -> None:
        self.ledger = Ledger(total)
        self.whole = Share(total)
        self.lines: list[JournalLine] = []
        self.waiters: list[Callable[[], None]] = []
        self.lock = RLock()

    def left(self, share: Share) -> int:
        """The funds that a call within a share can still use, in micro-dollars."""
        return min(self.ledger.available, share.left)

    def wake(self) -> None:
        """Tell whoever waits for money that a call has ended."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter()

    def refuse(self, member: str, call: str) -> None:
        """Note a call that could not be paid."""
        self.lines.append(JournalLine("refused", member, call))


class Hold:
    """Money that is held for a call; a context manager that gives it back where the call fails.

    Parameters
    ----------
    share
        The part of the pool that pays.
    member
        Name of the agent.
    call
        What is called, for the journal.
    amount
        The most that the call can cost, in micro-dollars.

    Raises
    ------
    InsufficientFundsError
        If the share or the pool can't pay that.
    """

    def __init__(self, pool: Pool, share: Share, member: str, call: str, amount: int) -> None:
        self.amount = amount
        self._pool, self._share, self._member, self._call = pool, share, member, call
        with pool.lock:
            if amount > share.left:
                raise InsufficientFundsError(f"the share has {share.left} micro-dollars left, not {amount}")
            self._reservation: Reservation | None = pool.ledger.reserve(amount, call=call, team=member)
            share.take(amount)
            pool.lines.append(JournalLine("hold", member, call, -amount))

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

    def release(self, note: str) -> None:
        """Give the money back."""
        with self._pool.lock:
            self._pool.ledger.release(self._ended())
            self._pool.lines.append(JournalLine("release", self._member, self._call, self.amount, note=note))

    def charge(self, cost: int, usage: Usage = NO_USAGE, note: str = "") -> JournalLine:
        """Replace the hold by what the call cost, in micro-dollars."""
        with self._pool.lock:
            entry = self._pool.ledger.settle(self._ended(), cost)
            self._share.charge(self._member, -entry.amount)
            charged = JournalLine(
                "charge",
                self._member,
                self._call,
                entry.amount,
                input_tokens=usage.input_tokens,
                cached_tokens=usage.cached_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                output_tokens=usage.output_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                uncovered=entry.uncovered,
                note=note,
            )
            self._pool.lines += [JournalLine("release", self._member, self._call, self.amount), charged]
            return charged

    def _ended(self) -> Reservation:
        assert self._reservation is not None
        reservation, self._reservation = self._reservation, None
        self._share.take(-self.amount)
        return reservation
