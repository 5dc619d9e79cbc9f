"""The HTTP server of one step of an agent from outside: its order, its tools by MCP, its model by OpenAI's protocol."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from hmac import compare_digest
from pathlib import Path
from typing import Any

import uvicorn
from langchain_core.messages import BaseMessage, convert_to_messages, convert_to_openai_messages
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from labmates.agents.tools import ToolError
from labmates.loopback import address_of, open_socket
from labmates.models.reply import Reply
from labmates.workflows.science.seats.session import BUDGET, RefusedCallError, SeatSession

MOST_BYTES = 8_000_000
"""Of a request."""
_STOP_SECONDS = 1

_BUDGET_TOOL = {
    "name": BUDGET,
    "description": "Read what is left of the budget, as far as you may know it.",
    "inputSchema": {"type": "object", "properties": {}},
}


class Server(uvicorn.Server):
    """A server within a program that handles signals itself; `ready` is set when it has started."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


@asynccontextmanager
async def served(session: SeatSession, *, path: Path | None = None) -> AsyncIterator[str]:
    """Serve a session on a Unix socket, or on a free port of this machine, while the context is open.

    Parameters
    ----------
    path
        Where the socket is made; None for a port.

    Yields
    ------
    str
        The address, without a slash at its end; for a socket, `path`.
    """
    listening = None if path else open_socket("127.0.0.1", 0, what="seat", usual=0)
    config = uvicorn.Config(
        make_app(session),
        uds=str(path) if path else None,
        log_level="error",
        access_log=False,
        lifespan="on",
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    server = Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening] if listening else None))
    try:
        await server.ready.wait()
        yield address_of(listening) if listening else str(path)
    finally:
        server.should_exit = True
        await asyncio.shield(serving)
        if listening:
            listening.close()


def make_app(session: SeatSession) -> ASGIApp:
    """The application that serves a session to whoever shows its key."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    manager = StreamableHTTPSessionManager(_mcp_server(session), json_response=True, stateless=True)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        del app
        async with manager.run():
            yield

    routes = [
        Route("/order", _page(session, _order), methods=["GET"]),
        Route("/budget", _page(session, _budget), methods=["GET"]),
        Route("/v1/models", _page(session, _models), methods=["GET"]),
        Route("/v1/chat/completions", _page(session, _chat), methods=["POST"]),
        Mount("/mcp", manager.handle_request),
    ]
    return _Gate(Starlette(routes=routes, lifespan=lifespan), session)


class _Gate:
    """Lets through whoever shows the key of the session; any other one is told in the record."""

    def __init__(self, app: ASGIApp, session: SeatSession) -> None:
        self._app, self._session = app, session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == "/mcp":
            scope = {**scope, "path": "/mcp/", "raw_path": b"/mcp/"}
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ").strip()
        if compare_digest(key.encode(), self._session.key.encode()):
            await self._app(scope, receive, send)
            return
        self._session.note("somebody asked the seat's server with a key that is not the seat's; it was refused")
        await _error(401, "the key is not that of this seat and step")(scope, receive, send)


Handler = Callable[[SeatSession, Request], Awaitable[Response]]


def _page(session: SeatSession, handle: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return await handle(session, request)

    return answer


async def _order(session: SeatSession, request: Request) -> Response:
    """What the agent is told, as messages and as text, and the tools that it may call."""
    del request
    return JSONResponse(
        {
            "seat": session.speaker.agent,
            "messages": convert_to_openai_messages(session.opening),
            "text": session.order,
            "tools": session.tools,
        }
    )


async def _budget(session: SeatSession, request: Request) -> Response:
    del request
    return PlainTextResponse(session.budget())


async def _models(session: SeatSession, request: Request) -> Response:
    del request
    models = [{"id": session.speaker.model, "object": "model", "owned_by": "labmates"}]
    return JSONResponse({"object": "list", "data": models})


async def _chat(session: SeatSession, request: Request) -> Response:
    """A chat completion by the model of the seat, whichever the request names."""
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > MOST_BYTES:
            session.note(f"the agent sent a request of more than {MOST_BYTES:,} bytes; it was refused")
            return _error(413, f"the request has more than {MOST_BYTES:,} bytes")
    try:
        body = json.loads(session.clean(raw.decode()))
        messages = _messages(body)
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise ValueError("max_completion_tokens must be a number of tokens, at least 1")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return _error(400, f"the request is not a chat completion: {error}")
    try:
        reply = await session.ask(messages, body.get("tools") or (), limit)
    except RefusedCallError as error:
        return _error(error.status, str(error))
    answer = _completion(session, reply)
    return _streamed(answer) if body.get("stream") else JSONResponse(answer)


def _messages(body: Any) -> list[BaseMessage]:
    messages = body["messages"]
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages must be a list with at least one message")
    return convert_to_messages(messages)


def _completion(session: SeatSession, reply: Reply) -> dict[str, Any]:
    message = convert_to_openai_messages(reply.message)
    finish = reply.finish if reply.finish in ("stop", "length", "tool_calls", "content_filter") else "stop"
    usage = reply.usage
    return {
        "id": "chatcmpl-seat",
        "object": "chat.completion",
        "created": 0,
        "model": session.speaker.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
    }


def _streamed(answer: dict[str, Any]) -> Response:
    """The completion as a stream of one piece: the lab has the whole reply before the agent gets any of it."""
    [choice] = answer["choices"]
    message = choice["message"]
    calls = [{"index": at, **call} for at, call in enumerate(message.get("tool_calls", []))]
    delta = {**message, **({"tool_calls": calls} if calls else {})}
    head = {name: value for name, value in answer.items() if name not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    pieces = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        {**head, "choices": [], "usage": answer["usage"]},
    ]
    lines = [f"data: {json.dumps(piece, ensure_ascii=False)}\n\n" for piece in pieces]
    return StreamingResponse(iter([*lines, "data: [DONE]\n\n"]), media_type="text/event-stream")


def _error(status: int, message: str) -> Response:
    kind = {402: "insufficient_quota", 429: "rate_limit_exceeded"}.get(status, "invalid_request_error")
    return JSONResponse({"error": {"message": message, "type": kind, "param": None, "code": kind}}, status)


def _mcp_server(session: SeatSession) -> Any:
    """The MCP server of a session, with the lab's own descriptions of its tools."""
    from mcp.server.lowlevel import Server
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

    async def listed(context: Any, params: Any) -> ListToolsResult:
        del context, params
        functions = [tool["function"] for tool in session.tools]
        described = [
            {"name": one["name"], "description": one.get("description", ""), "inputSchema": one["parameters"]}
            for one in functions
        ]
        return ListToolsResult(tools=[Tool.model_validate(one) for one in (*described, _BUDGET_TOOL)])

    async def called(context: Any, params: Any) -> CallToolResult:
        del context
        try:
            text = await session.use(params.name, params.arguments or {})
        except ToolError as error:
            text = f"Error: {error}"
        failed = text.startswith("Error: ")
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)

    return Server("labmates", on_list_tools=listed, on_call_tool=called)
