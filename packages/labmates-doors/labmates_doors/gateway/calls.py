"""An exchange of a program with a model: its request, payment and record."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from labmates.budgets.budget import ReplyHold
from labmates.budgets.ledger import JournalLine
from labmates.budgets.tokens import TEMPLATE_TOKENS, Usage, estimate_tokens
from labmates_doors.gateway.exchanges import Exchange
from labmates_doors.gateway.seats import Seat
from labmates_doors.gateway.state import Gateway
from labmates_doors.gateway.upstream import Upstream
from labmates_doors.protocols.base import (
    IMAGE_TOKENS,
    Json,
    Protocol,
    RefusedRequestError,
    parsed_request,
    read_body,
    referred_images,
)

LARGE_BYTES = 256_000
"""A longer request is parsed beside the event loop, one of each seat at a time."""
LEFT = 499
"""Status of an exchange whose program disconnected before its end."""


class Call:
    """An exchange, from the request `body` to its charge; `tokens` is an upper bound of the prompt's tokens."""

    upstream: Upstream

    def __init__(self, gateway: Gateway, protocol: Protocol, seat: Seat) -> None:
        self.gateway, self.protocol, self.seat = gateway, protocol, seat
        self.body: Json = {}
        self.tokens = 0
        self._began = time.time()
        self._model = ""

    async def read(self, request: Request) -> None:
        """Read the request, and check that its cost has a bound.

        Raises
        ------
        RefusedRequestError
            If the cost has no bound, or the request is malformed.
        """
        length = request.headers.get("content-length", "")
        most, size = self.gateway.most_bytes(self.seat), int(length) if length.isdecimal() else LARGE_BYTES + 1
        if length and size > most:
            raise self.gateway.too_long(self.seat, size)
        if size <= LARGE_BYTES:
            self._take(await read_body(request.stream(), most, self._too_long))
            return
        async with self.seat.large:
            raw = await read_body(request.stream(), most, self._too_long)
            await asyncio.to_thread(self._take, raw)

    def _too_long(self, size: int) -> RefusedRequestError:
        return self.gateway.too_long(self.seat, size)

    def _take(self, raw: bytes) -> None:
        """Parse and check a request; the seat's own key in it is left out."""
        raw = raw.replace(self.seat.key.encode(), b"[key]")
        self.body = body = parsed_request(raw)
        name = body.get("model")
        models = self.gateway.models
        if not isinstance(name, str) or name not in models:
            known = ", ".join(dict.fromkeys(upstream.name for upstream in models.values()))
            raise RefusedRequestError(f"model {name!r} is not served; served: {known}")
        self.upstream = models[name]
        self._model = self.upstream.name
        self.protocol.check(body)
        if self.upstream.speaks(self.protocol):
            self.protocol.check_fields(body, self.gateway.allowed)
        self.tokens = len(raw) + TEMPLATE_TOKENS + IMAGE_TOKENS * referred_images(body)

    async def hold(self) -> Payment:
        """Hold the maximum cost of the call; see `Seats.hold`."""
        upstream, seats = self.upstream, self.gateway.seats
        wanted = self.protocol.wanted(self.body) or self.gateway.max_output_tokens
        return Payment(self, await seats.hold(self.seat, upstream.name, upstream.price, self.tokens, wanted))

    def error(self, status: int, message: str) -> Response:
        """An error in the format of the protocol."""
        return JSONResponse(self.protocol.error(status, message), status)

    def refused(self, status: int, message: str) -> Response:
        """Record a rejected request, and answer it."""
        self.note(status, self.protocol.error(status, message), message)
        return self.error(status, message)

    def prompt_tokens(self) -> int:
        """The estimated tokens of the prompt."""
        return estimate_tokens(json.dumps(self.body, ensure_ascii=False))

    def note(self, status: int, reply: object, note: str, **charged: Any) -> None:
        """Record the end of the exchange; `charged` are the fields of an `Exchange` about its charge."""
        self.gateway.record.add(
            Exchange(
                at=self._began,
                seconds=round(time.time() - self._began, 6),
                seat=self.seat.member,
                protocol=self.protocol,
                model=self._model,
                status=status,
                request=self.body,
                reply=reply,
                note=note,
                **charged,
            )
        )


class Payment:
    """The payment of a call, whose reply has a `limit` in tokens; each ends with one of `free`, `lost` and `settle`."""

    def __init__(self, call: Call, hold: ReplyHold) -> None:
        self.limit = hold.limit
        self._call, self._hold = call, hold

    def free(self, status: int, reply: object) -> None:
        """Give the money back: the provider bills nothing."""
        self._hold.release("not billed")
        self._call.note(status, reply, "not billed")

    def lost(self, status: int, reason: str, reply: object = None) -> None:
        """Charge the call by an estimate; see `ReplyHold.lost`."""
        self._note(status, reply, self._hold.lost(self._call.prompt_tokens(), reason), is_lost=True)

    def settle(self, usage: Usage, reply: object, note: str = "", bill: int | None = None) -> None:
        """Charge the reply's usage, and record the provider's `bill`, micro-dollars, where it reported one."""
        self._note(200, reply, self._hold.settle(usage, note), is_lost=False, bill=bill)

    def _note(self, status: int, reply: object, line: JournalLine, *, is_lost: bool, bill: int | None = None) -> None:
        self._call.note(
            status,
            reply,
            line.note,
            cost=-line.amount,
            bill=bill,
            uncovered=line.uncovered,
            usage=self._hold.usage,
            price=self._hold.price,
            limit=self.limit,
            is_lost=is_lost,
        )
