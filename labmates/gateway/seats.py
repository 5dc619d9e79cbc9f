"""The gateway's seats: programs at one pool, with a key each."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from labmates.budgets.ledger import LEAST_OUTPUT_TOKENS, Hold, Ledger
from labmates.budgets.prices import Price
from labmates.budgets.shares import Share
from labmates.budgets.visibility import budget_status
from labmates.models.protocols.base import RefusedRequestError


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
        """Spending of the seat, in micro-dollars."""
        return self.share.spent.get(self.name, 0)


class Seats:
    """All seats of a gateway and the pool that they share.

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
        limits = {name: total if most is None else most for name, most in seats.items()}
        self.by_name = {name: Seat(name, self._whole.part(limit, {})) for name, limit in limits.items()}
        self._by_key = {seat.key: seat for seat in self.by_name.values()}
        self._patience = patience

    def __str__(self) -> str:
        return budget_status("full", self.ledger.total, self._whole.spent, "", notice=False)

    def of_key(self, key: str) -> Seat | None:
        """The seat that has a key; None if there is no such key."""
        return self._by_key.get(key)

    def restore(self, name: str, cost: int) -> None:
        """Enter what a seat spent before the gateway was restarted, in micro-dollars."""
        share = self.by_name[name].share if name in self.by_name else self._whole
        self.ledger.restore(cost, call="restored", member=name, share=share)

    async def hold(
        self, seat: Seat, call: str, price: Price, input_tokens: int, output_tokens: int, choices: int = 1
    ) -> tuple[Hold, int]:
        """Hold the most that a call can cost.

        Where the rest of the pool pays only a shorter reply, the call waits for those in flight. Once there are none,
        the reply is shortened, to `LEAST_OUTPUT_TOKENS` at least.

        Returns
        -------
        Hold, int
            The money, and the longest reply that it pays, in tokens.

        Raises
        ------
        RefusedRequestError
            With status 402 if the pool or the seat can't pay the call, and no call in flight could change that; with
            429 if calls in flight held the money for longer than the pool's patience.
        """
        dearest, ledger = price.dearest, self.ledger

        def affordable() -> int:
            return min(output_tokens, dearest.most_output(input_tokens, ledger.left(seat.share)) // choices)

        await self._wait(lambda: affordable() >= output_tokens or ledger.available == ledger.remaining)
        limit = affordable()
        if limit < min(LEAST_OUTPUT_TOKENS, output_tokens):
            if ledger.available < ledger.remaining:
                raise RefusedRequestError("the rest of the budget is held by other calls; try again", 429)
            raise RefusedRequestError("the shared budget can't pay this call", 402)
        return Hold(ledger, seat.share, seat.name, call, dearest.cost(input_tokens, limit * choices)), limit

    async def _wait(self, ready: Callable[[], bool]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                while not ready():
                    freed = asyncio.Event()
                    self.ledger.wait(freed.set)
                    await freed.wait()
