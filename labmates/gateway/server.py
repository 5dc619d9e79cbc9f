"""The gateway's server: it passes requests on to providers, and settles each at its true usage."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Send

from labmates.budgets.money import format_dollars
from labmates.budgets.pool import Hold
from labmates.budgets.tokens import TEMPLATE_TOKENS, estimate_tokens
from labmates.budgets.usage import Usage, read_usage
from labmates.gateway.exchanges import Exchange
from labmates.gateway.protocols import (
    IMAGE_TOKENS,
    PROTOCOLS,
    Json,
    Protocol,
    RefusedRequestError,
    referred_images,
)
from labmates.gateway.seats import BusyPoolError, EmptyPoolError, Seat, Seats
from labmates.gateway.upstream import Upstream
from labmates.models.redact import Redactor

MOST_BYTES = 32_000_000
"""Longest request."""
_LEFT = 499
_STOP_SECONDS = 3
_PASSED = ("content-type", "retry-after", "request-id", "x-request-id")
_SENT = ("anthropic-version", "anthropic-beta", "openai-beta")


class Gateway:
    """What the routes of the gateway work with.

    Parameters
    ----------
    seats
        Pay.
    upstreams
        The models.
    record
        Called with each exchange that has ended.
    timeout
        Seconds without a byte from a provider after which a call is given up.
    max_output_tokens
        Limit on the reply to a request that has none.
    """

    def __init__(
        self,
        seats: Seats,
        upstreams: Sequence[Upstream],
        *,
        record: Callable[[Exchange], None],
        timeout: float = 600.0,
        max_output_tokens: int = 4096,
    ) -> None:
        self.seats = seats
        self.models = {name: upstream for upstream in upstreams for name in upstream.names}
        self.max_output_tokens = max_output_tokens
        self.record = record
        self.redact = Redactor([upstream.key for upstream in upstreams])
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=128)
        self.client = httpx2.AsyncClient(timeout=httpx2.Timeout(timeout, connect=10.0), limits=limits)

    def budget(self) -> Json:
        """What the pool has, as ``GET /budget`` tells it."""
        ledger = self.seats.pool.ledger
        amounts = {"total": ledger.total, "spent": ledger.spent, "remaining": ledger.remaining}
        held = ledger.remaining - ledger.available
        seats = {
            seat.name: {"spent": format_dollars(seat.spent), "remaining": format_dollars(seat.share.left)}
            for seat in self.seats.by_name.values()
        }
        shown = {name: format_dollars(amount) for name, amount in {**amounts, "held": held}.items()}
        return {**shown, "seats": seats}


def make_app(gateway: Gateway) -> Starlette:
    """Return the application: the protocols' paths, ``/v1/models`` and ``/budget``."""

    async def budget(_request: Request) -> Response:
        return JSONResponse(gateway.budget())

    async def models(_request: Request) -> Response:
        listed = [{"id": name, "object": "model", "type": "model"} for name in gateway.models]
        return JSONResponse({"object": "list", "data": listed})

    async def unknown(request: Request) -> Response:
        paths = ", ".join(protocol.path for protocol in PROTOCOLS)
        return _error(
            PROTOCOLS[0], 404, f"'{request.url.path}' is not a path of this gateway; POST {paths}; GET /budget"
        )

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with gateway.client:
            yield

    routes = [Route(protocol.path, _handler(gateway, protocol), methods=["POST"]) for protocol in PROTOCOLS]
    routes += [
        Route("/budget", budget),
        Route("/v1/models", models),
        Route("/{path:path}", unknown, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def make_server(gateway: Gateway) -> uvicorn.Server:
    """The server of the gateway."""
    config = uvicorn.Config(
        make_app(gateway),
        log_level="warning",
        access_log=False,
        lifespan="on",
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    return uvicorn.Server(config)


def _handler(gateway: Gateway, protocol: Protocol) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        seat = gateway.seats.of_key(_key(request))
        if seat is None:
            return _error(protocol, 401, "the key is not that of a seat of this gateway")
        call = _Call(gateway, protocol, seat)
        try:
            return await call.answer(request)
        except RefusedRequestError as error:
            return call.refused(400, str(error))
        except EmptyPoolError as error:
            return call.refused(402, str(error))
        except BusyPoolError as error:
            return call.refused(429, str(error))

    return handle


class _Call:
    """One exchange, from the request to its charge."""

    def __init__(self, gateway: Gateway, protocol: Protocol, seat: Seat) -> None:
        self._gateway, self._protocol, self._seat = gateway, protocol, seat
        self._began = time.time()
        self._body: Json = {}
        self._model = ""
        self._tokens = 0

    async def answer(self, request: Request) -> Response:
        """Hold the money, pass the request on, and settle."""
        raw = await _read(request)
        self._body = body = _parsed(raw)
        upstream = self._upstream()
        self._model = upstream.name
        self._protocol.check(body)
        self._tokens = len(raw) + TEMPLATE_TOKENS + IMAGE_TOKENS * referred_images(body)
        wanted = self._protocol.wanted(body) or self._gateway.max_output_tokens
        choices = self._protocol.choices(body)
        seats = self._gateway.seats
        hold, limit = await seats.hold(self._seat, upstream.name, upstream.price, self._tokens, wanted, choices)
        payment = _Payment(self, upstream, hold, limit * choices)
        if await request.is_disconnected():
            payment.free(_LEFT, "the program left before the call began")
            return Response(status_code=_LEFT)
        try:
            sent = self._protocol.limited(body, upstream.model, limit)
            headers = {name: request.headers[name] for name in _SENT if name in request.headers} | upstream.headers()
            client = self._gateway.client
            message = client.build_request("POST", upstream.address + self._protocol.path, json=sent, headers=headers)
            reply = await client.send(message, stream=True)
        except httpx2.ConnectError:
            payment.free(502, "the provider is unreachable")
            return _error(self._protocol, 502, f"the provider of '{upstream.name}' is unreachable")
        except BaseException as error:
            payment.lost(504, type(error).__name__)
            if not isinstance(error, httpx2.TransportError):
                raise
            return _error(
                self._protocol, 504, f"the provider of '{upstream.name}' did not answer: {type(error).__name__}"
            )
        if reply.status_code == 200 and "text/event-stream" in reply.headers.get("content-type", ""):
            return _Stream(payment.stream(reply), headers=_passed(reply))
        return await payment.whole(reply)

    def refused(self, status: int, message: str) -> Response:
        """Answer a request that was not passed on."""
        error = self._protocol.error(status, message)
        self.note(status, error, note=message)
        return JSONResponse(error, status)

    def note(
        self,
        status: int,
        reply: object,
        *,
        cost: int = 0,
        uncovered: int = 0,
        usage: Usage | None = None,
        note: str = "",
    ) -> None:
        """Record how the exchange ended."""
        names = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")
        tokens = {name: getattr(usage, name) for name in names} if usage else {}
        self._gateway.record(
            Exchange(
                at=self._began,
                seconds=round(time.time() - self._began, 6),
                seat=self._seat.name,
                protocol=self._protocol.name,
                model=self._model,
                status=status,
                cost=cost,
                uncovered=uncovered,
                usage=tokens,
                note=note,
                request=self._body,
                reply=reply,
            )
        )

    def _upstream(self) -> Upstream:
        name = self._body.get("model")
        usable = {
            known: upstream
            for known, upstream in self._gateway.models.items()
            if upstream.provider == self._protocol.provider
        }
        if isinstance(name, str) and name in usable:
            return usable[name]
        known = ", ".join(dict.fromkeys(upstream.name for upstream in usable.values())) or "none"
        raise RefusedRequestError(f"model {name!r} is not served at {self._protocol.path}; served: {known}")


class _Payment:
    """The money of a call that was passed on; each ends with exactly one of `free`, `lost` and a settled reply."""

    def __init__(self, call: _Call, upstream: Upstream, hold: Hold, most: int) -> None:
        self._call, self._upstream, self._hold, self._most = call, upstream, hold, most
        self._protocol, self._pool = call._protocol, call._gateway.seats.pool

    def free(self, status: int, reply: object) -> None:
        """Give the money back: the provider bills nothing."""
        self._hold.release("not billed")
        self._pool.wake()
        self._call.note(status, reply, note="not billed")

    def lost(self, status: int, reason: str, reply: object = None) -> None:
        """Charge the estimated prompt and the whole limit: nobody knows what the provider bills."""
        usage = Usage(self._prompt(), self._most, estimated=True)
        self._charge(status, usage, reply, f"may be billed ({reason})")

    async def whole(self, reply: httpx2.Response) -> Response:
        """Settle an answer that comes in one piece, and pass it on."""
        try:
            content = await reply.aread()
        except BaseException as error:
            self.lost(504, type(error).__name__)
            if not isinstance(error, httpx2.TransportError):
                raise
            return _error(self._protocol, 504, "the provider's answer broke off")
        finally:
            await _closed(reply)
        parsed = _json(content)
        if reply.status_code != 200:
            text = self._call._gateway.redact(content.decode("utf-8", "replace"))
            self.free(reply.status_code, _json(text.encode()) or text)
            return Response(text, reply.status_code, headers=_passed(reply))
        if parsed is None:
            self.lost(200, "not JSON", content.decode("utf-8", "replace"))
        else:
            self._settle(self._protocol.usage(parsed), parsed, len(content))
        return Response(content, headers=_passed(reply))

    async def stream(self, reply: httpx2.Response) -> AsyncIterator[bytes]:
        """Pass the events of a stream on as they come, and settle at its end."""
        hides = self._protocol.hides_usage(self._call._body)
        events, usage, done = list[bytes](), dict[str, Any](), False
        try:
            async for complete in _events(reply.aiter_bytes()):
                events += complete
                shown = []
                for event in complete:
                    part = _usage_part(event)
                    if part and (found := self._protocol.usage(part)):
                        usage.update({name: value for name, value in found.items() if value is not None})
                        if hides and not part.get("choices"):
                            continue
                    shown.append(event)
                if shown:
                    yield b"".join(shown)
            done = True
        except httpx2.TransportError as error:
            self.lost(504, type(error).__name__, _text(events))
        except BaseException:
            if not done:
                self.lost(_LEFT, "the program left", _text(events))
            raise
        else:
            if usage:
                self._settle(usage, _text(events), sum(map(len, events)))
            else:
                self.lost(200, "the stream reported no usage", _text(events))
        finally:
            await _closed(reply)

    def _settle(self, reported: Json | None, reply: object, size: int) -> None:
        most = (self._call._tokens, self._most)
        usage, doubts = read_usage(
            reported, prompt=self._prompt, output=lambda: max(1, size // 4), reasoning=0, most=most
        )
        note = "; ".join(doubts) or ("estimated: the provider reported no usage" if usage.estimated else "")
        self._charge(200, usage, reply, note)

    def _charge(self, status: int, usage: Usage, reply: object, note: str) -> None:
        price = self._upstream.price
        cost = usage.cost(price.dearest if note.startswith("may be") else price)
        line = self._hold.charge(cost, usage, note)
        self._pool.wake()
        self._call.note(status, reply, cost=-line.amount, uncovered=line.uncovered, usage=usage, note=note)

    def _prompt(self) -> int:
        return estimate_tokens(json.dumps(self._call._body, ensure_ascii=False))


class _Stream(StreamingResponse):
    """A stream that is closed at once when the program leaves."""

    async def stream_response(self, send: Send) -> None:
        """Send the stream."""
        async with aclosing(self.body_iterator):  # type: ignore[type-var]
            await super().stream_response(send)


async def _closed(reply: httpx2.Response) -> None:
    """Close the connection to the provider, also while the call is being cancelled."""
    with anyio.CancelScope(shield=True):
        await reply.aclose()


async def _read(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            raise RefusedRequestError(f"the request is longer than {MOST_BYTES:,} bytes")
        parts.append(part)
    return b"".join(parts)


def _parsed(raw: bytes) -> Json:
    body = _json(raw)
    if body is None:
        raise RefusedRequestError("the request is not a JSON object")
    return body


def _json(content: bytes) -> Json | None:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


async def _events(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """The events of a stream as they come, each with the empty line that ends it."""
    rest = b""
    async for piece in pieces:
        rest += piece
        events = []
        while (end := _end_of_event(rest)) is not None:
            events.append(rest[:end])
            rest = rest[end:]
        if events:
            yield events
    if rest:
        yield [rest]


def _end_of_event(text: bytes) -> int | None:
    ends = [at + len(mark) for mark in (b"\n\n", b"\r\n\r\n") if (at := text.find(mark)) >= 0]
    return min(ends, default=None)


def _usage_part(event: bytes) -> Json | None:
    """The data of an event that may hold usage; the others are not parsed, since there are many."""
    if b'"usage"' not in event:
        return None
    lines = [line[5:] for line in event.splitlines() if line.startswith(b"data:")]
    return _json(b"\n".join(lines))


def _key(request: Request) -> str:
    bearer = request.headers.get("authorization", "")
    return request.headers.get("x-api-key") or bearer.removeprefix("Bearer ").strip()


def _passed(reply: httpx2.Response) -> Mapping[str, str]:
    return {name: reply.headers[name] for name in _PASSED if name in reply.headers}


def _text(events: Sequence[bytes]) -> str:
    return b"".join(events).decode("utf-8", "replace")


def _error(protocol: Protocol, status: int, message: str) -> Response:
    return JSONResponse(protocol.error(status, message), status)
