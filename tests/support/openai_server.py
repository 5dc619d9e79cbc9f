"""A real HTTP server that speaks OpenAI's chat completions, with behaviour and faults to order.

It runs in a thread with an event loop of its own, on a free port of 127.0.0.1::

    with OpenAIServer(lambda request, n: Answer(text="Hello")) as server:
        ...  # point a client at server.base_url
    assert server.requests[0].body["seed"] == 7

A behaviour is a function (or coroutine function) of the request's JSON and of how many requests came before it.
`serve_model` puts any LangChain chat model behind the protocol.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage

Json = dict[str, Any]
Cut = Literal["before", "within", "before_done"]
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error"}


@dataclass(frozen=True)
class Call:
    """A tool call in an answer. `arguments` may be text that is no JSON; `id` None leaves the id out."""

    name: str
    arguments: Any = "{}"
    id: str | None = "call_1"

    def on_the_wire(self, index: int | None = None) -> Json:
        arguments = json.dumps(self.arguments) if isinstance(self.arguments, dict) else self.arguments
        wire: Json = {"type": "function", "function": {"name": self.name, "arguments": arguments}}
        if self.id is not None:
            wire["id"] = self.id
        if index is not None:
            wire["index"] = index
        return wire


@dataclass(frozen=True)
class Answer:
    """What the server answers.

    Attributes
    ----------
    text, calls, finish, reasoning
        The message: its content (text, None, or a list of parts), tool calls, why it stopped (by default ``stop`` or
        ``tool_calls``), and its ``reasoning_content``.
    message
        Further fields of the message.
    usage
        The usage to report; None reports none; by default counts that follow from the lengths in characters.
    choices
        Whether there is a choice at all.
    status, headers, body
        With another status or with a `body` (text, bytes or JSON) that is sent in place of the completion.
    delay
        Seconds before the answer begins.
    cut
        Drop the connection: before the answer, within its body or stream, or (stream) before the closing ``[DONE]``.
    silent
        Take the request and never answer.
    pings
        Seconds between comments in a stream that never brings anything else; 0 for a stream that does.
    content_length
        Whether the body's length is announced; without it, a cut looks like the end.
    held
        How many events of a stream are sent before it waits for a signal.
    """

    text: Any = "ok"
    calls: tuple[Call, ...] = ()
    finish: str | None = ""
    reasoning: str | None = None
    message: Json = field(default_factory=dict)
    usage: Json | None = field(default_factory=lambda: {"auto": True})
    choices: bool = True
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | bytes | Json | list[Any] | None = None
    delay: float = 0.0
    cut: Cut | None = None
    silent: bool = False
    pings: float = 0.0
    content_length: bool = True
    held: tuple[int, threading.Event] | None = None


def fault(status: int, body: str | Json | None = None, **headers: str) -> Answer:
    """Return an answer that is an error; `headers` with ``_`` for ``-``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    text = {"error": {"message": f"fault {status}", "type": "test"}} if body is None else body
    return Answer(status=status, body=text, headers=named)


Behaviour = Callable[[Json, int], Answer | Awaitable[Answer]]


@dataclass(frozen=True)
class Recorded:
    """One request as it arrived; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: Json


class OpenAIServer:
    """The server; a context manager.

    Parameters
    ----------
    behaviour
        What to answer to chat completions: a function, one answer for all, or answers in turn, the last one
        repeated.
    models
        Names that ``/v1/models`` lists.
    told
        What it tells of each of them.

    Attributes
    ----------
    requests
        The chat completions asked for, in order of arrival.
    peak
        The most of them that were in work at once.
    """

    def __init__(
        self,
        behaviour: Behaviour | Answer | Sequence[Answer] = Answer(),
        models: Sequence[str] = ("test-model",),
        told: Json | None = None,
    ) -> None:
        self.requests: list[Recorded] = []
        self.peak = 0
        self.port = 0
        self._behaviour = behaviour
        self._listed = [{"id": name, "object": "model", **(told or {})} for name in models]
        self._in_work = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="openai-server", daemon=True)
        self._server: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """Number of connections that are open now."""
        return len(self._writers)

    @property
    def base_url(self) -> str:
        """What a client takes as base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.die()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def die(self) -> None:
        """Stop listening and drop all connections, as a server does that was killed."""
        asyncio.run_coroutine_threadsafe(self._drop(), self._loop).result(10)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=2048)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _drop(self) -> None:
        if self._server is not None:
            # What is being accepted comes first: asyncio loses a connection that it accepts while the server closes.
            for listening in self._server.sockets:
                self._loop.remove_reader(listening.fileno())
            accepting = asyncio.all_tasks() - self._serving - {asyncio.current_task()}
            await asyncio.gather(*accepting, return_exceptions=True)
            self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()

    async def _end(self) -> None:
        """Let no task and no connection outlive the loop."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await asyncio.sleep(0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = self._loop.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (recorded := await _read_request(reader)) is not None:
                if not await self._respond(recorded, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _respond(self, recorded: Recorded, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; tell whether the connection stays open."""
        path = recorded.path.partition("?")[0]
        if path.endswith("/models"):
            return await _send(writer, Answer(body={"object": "list", "data": self._listed}))
        if not path.endswith("/chat/completions"):
            return await _send(writer, fault(404, {"detail": "Not Found"}))
        number = len(self.requests)
        self.requests.append(recorded)
        self._in_work += 1
        self.peak = max(self.peak, self._in_work)
        try:
            answer = await self._answer(recorded.body, number)
            await asyncio.sleep(answer.delay)
            if answer.silent:
                await asyncio.Event().wait()
            if answer.cut == "before":
                writer.transport.abort()
                return False
            if answer.body is None and answer.status == 200 and recorded.body.get("stream"):
                return await _send_stream(writer, answer, recorded.body)
            return await _send(writer, answer, recorded.body)
        finally:
            self._in_work -= 1

    async def _answer(self, request: Json, number: int) -> Answer:
        behaviour = self._behaviour
        if isinstance(behaviour, Answer):
            return behaviour
        if not callable(behaviour):
            return behaviour[min(number, len(behaviour) - 1)]
        answer = behaviour(request, number)
        return answer if isinstance(answer, Answer) else await answer


def completion(answer: Answer, request: Json) -> Json:
    """Return the whole completion of an answer."""
    message: Json = {"role": "assistant", "content": answer.text}
    if answer.calls:
        message["tool_calls"] = [call.on_the_wire() for call in answer.calls]
    if answer.reasoning is not None:
        message["reasoning_content"] = answer.reasoning
    message |= answer.message
    body: Json = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": request.get("model", ""),
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(answer)}] if answer.choices else [],
    }
    usage = _usage(answer, request)
    return body if usage is None else {**body, "usage": usage}


def stream_events(answer: Answer, request: Json) -> list[Json]:
    """Return the events of an answer that is streamed: text and arguments come in pieces."""
    whole = completion(answer, request)
    usage = whole.pop("usage", None)
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    for choice in whole["choices"]:
        message = choice["message"]
        deltas += [{"reasoning_content": piece} for piece in _pieces(message.get("reasoning_content"))]
        content = message.get("content")
        deltas += [{"content": piece} for piece in (_pieces(content) if isinstance(content, str) else [content])]
        for index, call in enumerate(answer.calls):
            deltas += _call_deltas(call, index)
        deltas += [{name: value} for name, value in answer.message.items()]
    events = [{**whole, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if answer.choices:
        events.append({**whole, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish(answer)}]})
    else:
        events = []
    if usage is not None and request.get("stream_options", {}).get("include_usage"):
        events.append({**whole, "choices": [], "usage": usage})
    return events


def _call_deltas(call: Call, index: int) -> list[Json]:
    wire = call.on_the_wire(index)
    arguments = wire["function"]["arguments"]
    pieces = _pieces(arguments) if isinstance(arguments, str) else [arguments]
    first = {**wire, "function": {"name": call.name, "arguments": pieces[0] if pieces else ""}}
    rest = [{"index": index, "function": {"arguments": piece}} for piece in pieces[1:]]
    return [{"tool_calls": [part]} for part in [first, *rest]]


def _pieces(text: str | None, length: int = 5) -> list[str]:
    return [text[at : at + length] for at in range(0, len(text), length)] if text else []


def _finish(answer: Answer) -> str | None:
    return answer.finish if answer.finish != "" else "tool_calls" if answer.calls else "stop"


def _usage(answer: Answer, request: Json) -> Json | None:
    if answer.usage != {"auto": True}:
        return answer.usage
    prompt = len(json.dumps(request.get("messages", ""))) // 4 + 1
    reasoning = len(answer.reasoning or "") // 4
    written = len(str(answer.text or "")) + sum(len(json.dumps(call.on_the_wire())) for call in answer.calls)
    output = written // 4 + 1 + reasoning
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


async def _read_request(reader: asyncio.StreamReader) -> Recorded | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    lines = head.decode("latin-1").split("\r\n")
    method, _, rest = lines[0].partition(" ")
    if not rest:
        return None
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    found = json.loads(body) if body.startswith((b"{", b"[")) else {"raw": body.decode()} if body else {}
    return Recorded(method, rest.partition(" ")[0], headers, found)


async def _send(writer: asyncio.StreamWriter, answer: Answer, request: Json | None = None) -> bool:
    body = completion(answer, request or {}) if answer.body is None else answer.body
    kind = "text/html" if isinstance(body, str) and body.lstrip().startswith("<") else "application/json"
    data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    headers = {"content-type": kind, **answer.headers}
    if answer.content_length:
        headers["content-length"] = str(len(data))
    else:
        headers["connection"] = "close"
    writer.write(_head(answer.status, headers) + (data[: len(data) // 2] if answer.cut == "within" else data))
    await writer.drain()
    return answer.content_length and answer.cut != "within"


async def _send_stream(writer: asyncio.StreamWriter, answer: Answer, request: Json) -> bool:
    headers = {"content-type": "text/event-stream", **answer.headers}
    headers |= {"transfer-encoding": "chunked"} if answer.content_length else {"connection": "close"}
    # Raw U+2028 and the like, as servers in C++ and Rust send them.
    events = [json.dumps(event, ensure_ascii=not _is_utf8(event)) for event in stream_events(answer, request)]
    if answer.cut == "within":
        events = events[: len(events) // 2]
    elif answer.cut is None:
        events.append("[DONE]")
    writer.write(_head(200, headers))
    while answer.pings:
        writer.write(b"8\r\n: ping\n\n\r\n")
        await writer.drain()
        await asyncio.sleep(answer.pings)
    for number, event in enumerate(events):
        await let_go(answer, number)
        data = f"data: {event}\n\n".encode()
        writer.write(b"%x\r\n%s\r\n" % (len(data), data) if answer.content_length else data)
        await writer.drain()
    if answer.cut is None and answer.content_length:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return answer.content_length and answer.cut is None


async def let_go(answer: Answer, number: int) -> None:
    """Wait for the signal if the stream is held before this event."""
    if answer.held is not None and answer.held[0] == number:
        await asyncio.to_thread(answer.held[1].wait, 30)


def _is_utf8(event: Json) -> bool:
    try:
        json.dumps(event, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {REASONS.get(status, 'Answer')}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def serve_model(model: BaseChatModel, latency: float = 0.1) -> Callable[[Json, int], Awaitable[Answer]]:
    """Return the behaviour of a server that runs `model`, answering each request after `latency` seconds.

    The model gets the messages, and as keywords the tools, the seed and the limit of the request.
    """

    from tests.support.lab_orders import with_facts

    async def behave(request: Json, number: int) -> Answer:
        limit = request.get("max_tokens") or request.get("max_completion_tokens")
        given = {"seed": request.get("seed"), "max_tokens": limit, "tools": request.get("tools")}
        keywords = {name: value for name, value in given.items() if value is not None}
        message = await model.ainvoke(with_facts(read_messages(request["messages"])), **keywords)
        return replace(answer_of(message), delay=latency)

    return behave


def answer_of(message: AIMessage) -> Answer:
    """Return the answer that sends a LangChain message."""
    calls = [Call(call["name"], call["args"], call["id"]) for call in message.tool_calls]
    # No arguments at all would be read as none wanted, and the call as a valid one.
    cut = [Call(call["name"] or "", call["args"] or "{", call["id"]) for call in message.invalid_tool_calls]
    answer = Answer(
        text=message.content or None,
        calls=(*calls, *cut),
        finish=message.response_metadata.get("finish_reason", ""),
        reasoning=message.additional_kwargs.get("reasoning_content"),
    )
    used = message.usage_metadata
    if used is None:
        return answer
    reasoning = used.get("output_token_details", {}).get("reasoning", 0)
    usage = {
        "prompt_tokens": used["input_tokens"],
        "completion_tokens": used["output_tokens"],
        "total_tokens": used["total_tokens"],
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
    return replace(answer, usage=usage)


def read_messages(wire: Sequence[Json]) -> list[BaseMessage]:
    """Return the LangChain messages of a request's JSON."""
    from langchain_core.messages import convert_to_messages

    return convert_to_messages([dict(message) for message in wire])
