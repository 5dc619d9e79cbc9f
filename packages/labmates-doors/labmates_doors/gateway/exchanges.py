"""Exchanges of programs with models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labmates.budgets.prices import FREE, Price
from labmates.budgets.tokens import Usage

if TYPE_CHECKING:
    from labmates_doors.protocols.base import Json, Protocol


@dataclass(frozen=True)
class Exchange:
    """A request and its result.

    Attributes
    ----------
    at, seconds
        Unix time of the request, and its duration.
    status
        HTTP status of the answer; 499 if the program disconnected before its end.
    reply
        JSON, or the text of a stream.
    note
        Reason for a missing or estimated charge; empty otherwise.
    cost, uncovered
        The seat's charge, and the unpaid part of the cost, in micro-dollars.
    bill
        The cost that the provider reported, in micro-dollars; None without a report.
    usage, price
        Charged usage (None without a charge), and its price.
    limit
        The limit on the reply, in tokens.
    is_lost
        Whether the call may be billed without a complete reply.
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
    bill: int | None = None
    usage: Usage | None = None
    price: Price = FREE
    limit: int = 0
    is_lost: bool = False
