"""Exchanges of programs with models, and what keeps them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labmates.budgets.prices import FREE, Price
from labmates.budgets.usage import Usage

if TYPE_CHECKING:
    from labmates.models.protocols.base import Json, Protocol


@dataclass(frozen=True)
class Exchange:
    """One request and its result.

    Attributes
    ----------
    at, seconds
        Unix time of the request, and its length.
    seat, protocol, model
        Who asked what.
    status
        HTTP status of the answer; 499 where the program left before its end.
    request
        What the program sent.
    reply
        What it got: JSON, or the text of a stream.
    note
        Why there was no charge, or why it is an estimate; empty otherwise.
    cost, uncovered
        What the seat was charged, and what of the cost the pool could not pay, in micro-dollars.
    usage, price
        What was charged; None if nothing was.
    limit
        The limit on each reply, in tokens.
    is_lost
        It may be billed, though it brought no whole reply.
    """

    at: float
    seconds: float
    seat: str
    protocol: Protocol
    model: str
    status: int
    request: Json
    reply: Any
    note: str = ""
    cost: int = 0
    uncovered: int = 0
    usage: Usage | None = None
    price: Price = FREE
    limit: int = 0
    is_lost: bool = False


class Record:
    """Keeps exchanges in memory.

    Attributes
    ----------
    exchanges
        The exchanges that have ended.
    fault
        Why no more can be kept, so that no call may start; empty otherwise.
    """

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.fault = ""

    def add(self, exchange: Exchange) -> None:
        """Keep an exchange."""
        self.exchanges.append(exchange)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """The time for which a gateway is served."""
        yield
