"""Requests passed to a provider with their protocol, and replies passed back as they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import anyio
import httpx2
from starlette.requests import Request
from starlette.responses import Response

from labmates.budgets.tokens import read_usage
from labmates.models.clients import pieces
from labmates_doors.gateway.asking import ask
from labmates_doors.gateway.calls import LEFT, Call, Payment
from labmates_doors.protocols.answering import PassedStream
from labmates_doors.protocols.base import Json, parsed
from labmates_doors.protocols.responses import RESPONSES

_PASSED = ("content-type", "retry-after", "request-id", "x-request-id")
_SENT = ("anthropic-version", "anthropic-beta", "openai-beta")


async def pass_on(call: Call, request: Request) -> Response:
    """Hold the money, pass the request on, and settle."""
    payment = await call.hold()
    if await request.is_disconnected():
        payment.free(LEFT, "the program disconnected before the call began")
        return Response(status_code=LEFT)
    upstream = call.upstream
    try:
        sent = call.protocol.limited(call.body, upstream.model, payment.limit)
        headers = {name: request.headers[name] for name in _SENT if name in request.headers} | upstream.headers()
        client = call.gateway.client
        message = client.build_request("POST", upstream.address + call.protocol.path, json=sent, headers=headers)
        reply = await client.send(message, stream=True)
    except httpx2.ConnectError:
        payment.free(502, "the provider is unreachable")
        return call.error(502, f"the provider of '{upstream.name}' is unreachable")
    except BaseException as error:
        payment.lost(504, type(error).__name__)
        if not isinstance(error, httpx2.TransportError):
            raise
        return call.error(504, f"the provider of '{upstream.name}' did not answer: {type(error).__name__}")
    if reply.status_code == 404 and call.protocol is RESPONSES and upstream.access.base_url:
        await _closed(reply)
        payment.free(404, "the server has no responses API; it is asked by chat completions instead")
        call.gateway.without_responses.add(upstream.name)
        return await ask(call)
    if reply.status_code == 200 and "text/event-stream" in reply.headers.get("content-type", ""):
        return PassedStream(_stream(call, payment, reply), headers=_passed(reply))
    return await _whole(call, payment, reply)


async def _whole(call: Call, payment: Payment, reply: httpx2.Response) -> Response:
    """Settle a complete answer, and pass it on."""
    try:
        content = await reply.aread()
    except BaseException as error:
        payment.lost(504, type(error).__name__)
        if not isinstance(error, httpx2.TransportError):
            raise
        return call.error(504, "the provider's answer was interrupted")
    finally:
        await _closed(reply)
    if reply.status_code != 200:
        text = call.gateway.redact(content.decode("utf-8", "replace"))
        payment.free(reply.status_code, parsed(text.encode()) or text)
        return Response(text, reply.status_code, headers=_passed(reply))
    body = parsed(content)
    if body is None:
        payment.lost(200, "not JSON", content.decode("utf-8", "replace"))
    else:
        _settle(call, payment, call.protocol.usage(body), body, len(content))
    return Response(content, headers=_passed(reply))


async def _stream(call: Call, payment: Payment, reply: httpx2.Response) -> AsyncIterator[bytes]:
    """Pass the events of a stream on as they arrive, and settle at its end."""
    hides = call.protocol.hides_usage(call.body)
    events, usage, done = list[bytes](), dict[str, Any](), False
    try:
        async for complete in _events(pieces(reply)):
            events += complete
            shown = []
            for event in complete:
                part = _usage_part(event)
                if part and (reported := call.protocol.usage(part)):
                    usage.update({name: value for name, value in reported.items() if value is not None})
                    if hides and not part.get("choices"):
                        continue
                shown.append(event)
            if shown:
                yield b"".join(shown)
        done = True
    except httpx2.TransportError as error:
        payment.lost(504, type(error).__name__, _text(events))
    except BaseException:
        if not done:
            payment.lost(LEFT, "the program disconnected", _text(events))
        raise
    else:
        if usage:
            _settle(call, payment, usage, _text(events), sum(map(len, events)))
        else:
            payment.lost(200, "the stream reported no usage", _text(events))
    finally:
        await _closed(reply)


def _settle(call: Call, payment: Payment, reported: Json | None, reply: object, size: int) -> None:
    most = (call.tokens, payment.most)
    usage, doubts = read_usage(
        reported, prompt=call.prompt_tokens, output=lambda: max(1, size // 4), reasoning=0, most=most
    )
    estimated = "estimated: the provider reported no usage" if usage.estimated else ""
    payment.settle(usage, reply, "; ".join(doubts) or estimated)


async def _closed(reply: httpx2.Response) -> None:
    """Close the connection to the provider, even if the call is cancelled."""
    with anyio.CancelScope(shield=True):
        await reply.aclose()


async def _events(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """The events of a stream as they arrive, each with its final empty line."""
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
    """The data of an event with usage; the many other events are not parsed."""
    if b'"usage"' not in event:
        return None
    lines = [line[5:] for line in event.splitlines() if line.startswith(b"data:")]
    return parsed(b"\n".join(lines))


def _passed(reply: httpx2.Response) -> Mapping[str, str]:
    return {name: reply.headers[name] for name in _PASSED if name in reply.headers}


def _text(events: Sequence[bytes]) -> str:
    return b"".join(events).decode("utf-8", "replace")
