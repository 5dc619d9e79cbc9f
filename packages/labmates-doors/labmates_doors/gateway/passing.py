"""Requests passed to a provider with their protocol, and replies passed back as they arrive."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import anyio
import httpx2
from starlette.requests import Request
from starlette.responses import Response

from labmates.budgets.budget import GATEWAY_TIMEOUTS
from labmates.budgets.tokens import read_usage
from labmates.models.clients import pieces
from labmates.models.failures import BrokenReplyError
from labmates.models.provider_words import cost_in_headers, reported_cost
from labmates.models.sending import Attempt
from labmates_doors.gateway.asking import ask
from labmates_doors.gateway.calls import LEFT, Call, Payment
from labmates_doors.protocols.answering import PassedStream
from labmates_doors.protocols.base import Json, RefusedRequestError, parsed
from labmates_doors.protocols.responses import RESPONSES

_BROKEN = (httpx2.TransportError, httpx2.DecodingError, BrokenReplyError)
_PASSED = ("content-type", "retry-after", "request-id", "x-request-id")
_SENT = ("anthropic-version", "anthropic-beta", "openai-beta")
_BETAS = (
    *("claude-code", "context-management", "effort", "extended-thinking", "fine-grained-tool-streaming"),
    *("interleaved-thinking", "output-128k", "prompt-caching", "responses", "structured-outputs"),
    *("token-efficient-tools", "tool-search-tool"),
)
"""Beginnings of features in beta headers that leave prices as they are."""
_ERROR_BYTES = 16_384
_END_OF_EVENT = re.compile(rb"\n\n|\r\n\r\n")


async def pass_on(call: Call, request: Request) -> Response:
    """Hold the money, pass the request on, and settle."""
    _check_betas(call, request)
    payment = await call.hold()
    if await request.is_disconnected():
        payment.free(LEFT, "the program disconnected before the call began")
        return Response(status_code=LEFT)
    upstream = call.upstream
    client = call.gateway.client
    try:
        sent = call.protocol.limited(call.body, upstream.model, payment.limit)
        headers = {name: request.headers[name] for name in _SENT if name in request.headers} | upstream.headers()
        message = client.build_request("POST", upstream.address + call.protocol.path, json=sent, headers=headers)
    except (ValueError, TypeError) as error:  # a number or a character that JSON or a header has not
        payment.free(400, f"the request can't be sent: {error}")
        return call.error(400, f"the request can't be sent: {error}")
    try:
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
        content = b"".join([piece async for piece in _bounded(reply, payment)])
    except BaseException as error:
        payment.lost(504, type(error).__name__)
        if not isinstance(error, _BROKEN):
            raise
        return call.error(504, f"the provider's answer was interrupted: {error}")
    finally:
        await _closed(reply)
    if reply.status_code != 200:
        text = call.gateway.redact(content.decode("utf-8", "replace"))
        told = parsed(text.encode()) or text
        if reply.status_code in GATEWAY_TIMEOUTS:
            payment.lost(reply.status_code, f"HTTP {reply.status_code}", told)
        else:
            payment.free(reply.status_code, told)
        return Response(text, reply.status_code, headers=_passed(reply))
    body = parsed(content)
    if body is None:
        payment.lost(200, "not JSON", content.decode("utf-8", "replace"))
    else:
        bill = _bill(body, cost_in_headers(reply.headers))
        _settle(call, payment, call.protocol.usage(body), body, len(content), bill)
        if call.body.get("stream") and (events := _as_stream(call, body)):
            return Response(events, media_type="text/event-stream")
    return Response(content, headers=_passed(reply))


def _as_stream(call: Call, body: Json) -> bytes:
    """The events of a reply whose server ignored that the program asked for a stream; empty if it has no known form."""
    writer = call.protocol.writer(call.upstream.name, call.body)
    try:
        said = call.protocol.said([body])
        parts = [writer.begin(), writer.text(said["content"]) if said["content"] else b""]
        for asked in said.get("tool_calls", ()):
            function = asked["function"]
            parts += [writer.call(asked["id"], function["name"]), writer.arguments(function["arguments"])]
        return b"".join([*parts, writer.end(body)])
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return b""


def _check_betas(call: Call, request: Request) -> None:
    """Refuse features that may change prices."""
    for header in ("anthropic-beta", "openai-beta"):
        for beta in filter(None, map(str.strip, request.headers.get(header, "").split(","))):
            if not beta.startswith(_BETAS) and beta not in call.gateway.allowed:
                raise RefusedRequestError(
                    f"'{beta:.80}' in the header {header} is of unknown cost; leave it out, or start the gateway with "
                    f"--allow-field {beta:.80}"
                )


async def _bounded(reply: httpx2.Response, payment: Payment) -> AsyncIterator[bytes]:
    """The pieces of a body, which can't be longer than the limit on the reply allows; an error is cut."""
    streamed = "event-stream" in reply.headers.get("content-type", "")
    most = _ERROR_BYTES if reply.status_code != 200 else Attempt(0, payment.limit).most_bytes(streamed=streamed)
    read = 0
    async for piece in pieces(reply):
        read += len(piece)
        if read <= most:
            yield piece
        elif reply.status_code != 200:
            yield piece[: most - read]
            return
        else:
            raise BrokenReplyError(f"it has more than {most:,} bytes, which its limit can't fill")


async def _stream(call: Call, payment: Payment, reply: httpx2.Response) -> AsyncIterator[bytes]:
    """Pass the events of a stream on as they arrive, and settle at its end."""
    hides = call.protocol.hides_usage(call.body)
    events, usage, done, bill = list[bytes](), dict[str, Any](), False, cost_in_headers(reply.headers)
    try:
        async for complete in _events(_bounded(reply, payment)):
            events += complete
            shown = []
            for event in complete:
                part = _usage_part(event)
                if part and (reported := call.protocol.usage(part)):
                    usage.update({name: value for name, value in reported.items() if value is not None})
                    bill = _bill(part, bill)
                    if hides and not part.get("choices"):
                        continue
                shown.append(event)
            if shown:
                yield b"".join(shown)
        done = True
    except _BROKEN as error:
        payment.lost(504, type(error).__name__, _text(events))
    except BaseException:
        if not done:
            payment.lost(LEFT, "the program disconnected", _text(events))
        raise
    else:
        if usage:
            _settle(call, payment, usage, _text(events), sum(map(len, events)), bill)
        else:
            payment.lost(200, "the stream reported no usage", _text(events))
    finally:
        await _closed(reply)


def _settle(call: Call, payment: Payment, reported: Json | None, reply: object, size: int, bill: int | None) -> None:
    most = (call.tokens, payment.limit)
    usage, doubts = read_usage(
        reported, prompt=call.prompt_tokens, output=lambda: max(1, size // 4), reasoning=0, most=most
    )
    estimated = "estimated: the provider reported no usage" if usage.estimated else ""
    payment.settle(usage, reply, "; ".join(doubts) or estimated, bill)


async def _closed(reply: httpx2.Response) -> None:
    """Close the connection to the provider, even if the call is cancelled."""
    with anyio.CancelScope(shield=True):
        await reply.aclose()


async def _events(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """The events of a stream as they arrive, each with its final empty line."""
    rest = bytearray()
    async for piece in pieces:
        searched = max(0, len(rest) - 3)
        rest += piece
        ends = [match.end() for match in _END_OF_EVENT.finditer(rest, searched)]
        if ends:
            yield [bytes(rest[start:end]) for start, end in pairwise([0, *ends])]
            del rest[: ends[-1]]
    if rest:
        yield [bytes(rest)]


def _usage_part(event: bytes) -> Json | None:
    """The data of an event with usage; the many other events are not parsed."""
    if b'"usage"' not in event:
        return None
    lines = [line[5:] for line in event.splitlines() if line.startswith(b"data:")]
    return parsed(b"\n".join(lines))


def _bill(part: Json, known: int | None) -> int | None:
    """The cost that a provider reports in a reply or an event of any protocol, in micro-dollars; else the known one."""
    holder = next((part[name] for name in ("response", "message") if isinstance(part.get(name), dict)), part)
    cost = reported_cost(holder.get("usage"))
    return known if cost is None else cost


def _passed(reply: httpx2.Response) -> Mapping[str, str]:
    return {name: reply.headers[name] for name in _PASSED if name in reply.headers}


def _text(events: Sequence[bytes]) -> str:
    return b"".join(events).decode("utf-8", "replace")
