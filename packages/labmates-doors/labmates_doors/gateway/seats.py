"""The gateway's seats: programs that share a pool, each with a key."""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from contextlib import suppress

from labmates.budgets.budget import Budget, ReplyHold, Waiter, when_free
from labmates.budgets.ledger import LEAST_OUTPUT_TOKENS, InsufficientFundsError, Ledger, Share
from labmates.budgets.money import MICRO, format_dollars
from labmates.budgets.prices import Price
from labmates.budgets.visibility import budget_status
from labmates.sandboxes.folders import cache_folder
from labmates_doors.protocols.base import RefusedRequestError

_JOURNAL_LINES = 10_000


def lasting_keys(run: str, seats: Iterable[str]) -> dict[str, str]:
    """The keys of a run's seats, the same after each resume: they follow from a secret file of this user."""
    path = cache_folder("gateway-secret")
    with suppress(FileExistsError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
    secret = path.read_bytes()
    digests = {seat: hmac.digest(secret, f"{run}/{seat}".encode(), "sha256") for seat in seats}
    return {seat: f"lm-{urlsafe_b64encode(digest[:24]).decode()}" for seat, digest in digests.items()}


class Seat(Budget):
    """A program's budget, with a key to send in place of a provider's."""

    def __init__(self, ledger: Ledger, share: Share, member: str, key: str = "") -> None:
        super().__init__(ledger, share, member)
        self.key = key or f"lm-{secrets.token_urlsafe(24)}"
        self.large = asyncio.Lock()  # held while a large request of the seat is read

    @property
    def spent(self) -> int:
        """Spending of the seat, in micro-dollars."""
        return self.share.spent.get(self.member, 0)

    @property
    def held(self) -> int:
        """Money held for calls of the seat in flight, in micro-dollars."""
        return self.share.taken - self.spent


class Seats:
    """All seats of a gateway, and their shared pool.

    Parameters
    ----------
    total
        Size of the pool, in micro-dollars.
    seats
        Spending limit of each seat in micro-dollars (None: the whole pool).
    patience
        Seconds that a call waits for money held by other calls.
    keys
        Keys of seats; new ones by default.
    """

    def __init__(
        self,
        total: int,
        seats: Mapping[str, int | None],
        *,
        patience: float = 60.0,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        self.ledger = Ledger(total, longest=_JOURNAL_LINES)  # the record holds every call
        self._whole = Share(total)
        limits = {name: total if most is None else most for name, most in seats.items()}
        self.by_name = {
            name: Seat(self.ledger, self._whole.part(limit, {}), name, (keys or {}).get(name, ""))
            for name, limit in limits.items()
        }
        self._by_key = {seat.key: seat for seat in self.by_name.values()}
        self._patience = patience

    def most_input(self, seat: Seat, price: Price) -> int | None:
        """The tokens of a prompt that the seat's money can pay, spent by calls in flight or not; None if it is free."""
        return self._left(seat) * MICRO // price.input if price.input else None

    def refusal(self, seat: Seat, needed: int) -> RefusedRequestError:
        """The error of a call that needs `needed` micro-dollars: whose purse can't pay it, and what is left."""
        pool, own = self.ledger.remaining, self._left(seat)
        whose, left = (f"the limit of the seat {seat.member}", own) if own < pool else ("the shared budget", pool)
        return RefusedRequestError(
            f"{whose} can't pay this call: ${format_dollars(left)} are left, and it needs ${format_dollars(needed)}",
            402,
        )

    @staticmethod
    def _left(seat: Seat) -> int:
        return max(0, seat.share.left) + seat.held

    def __str__(self) -> str:
        return budget_status("full", self.ledger.total, self._whole.spent, "", notice=False)

    def of_key(self, key: str) -> Seat | None:
        """The seat with a key; None if the key is unknown."""
        return self._by_key.get(key)

    def restore(self, name: str, cost: int) -> None:
        """Enter a seat's earlier spending, when a gateway resumes, in micro-dollars."""
        share = self.by_name[name].share if name in self.by_name else self._whole
        self.ledger.restore(cost, call="restored", member=name, share=share)

    async def hold(self, seat: Seat, call: str, price: Price, input_tokens: int, output_tokens: int) -> ReplyHold:
        """Hold the maximum cost of a call.

        The call waits while calls in flight hold the money for a whole reply. Once there are none, or after `patience`
        seconds, the reply is shortened, to `LEAST_OUTPUT_TOKENS` at least.

        Raises
        ------
        RefusedRequestError
            With status 402 if the pool or the seat can't pay the call; with 429 if calls in flight still hold the
            money.
        """

        def reserve(waiter: Waiter | None = None) -> ReplyHold:
            limit = seat.affordable(call, price, output_tokens, input_tokens, waiter=waiter)
            return ReplyHold(seat, call, price, input_tokens, limit)

        try:
            async with asyncio.timeout(self._patience):
                return await when_free(reserve)
        except InsufficientFundsError:
            least = min(LEAST_OUTPUT_TOKENS, output_tokens)
            raise self.refusal(seat, price.worst_case.cost(input_tokens, least)) from None
        except TimeoutError:
            pass
        try:
            return reserve()
        except InsufficientFundsError:
            raise RefusedRequestError("the rest of the budget is held by other calls; try again", 429) from None
