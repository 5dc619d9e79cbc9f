"""The HTTP server of one step of an external agent: its order, its tools by MCP, its model by any protocol."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from hmac import compare_digest
from pathlib import Path
from typing import Any

import uvicorn
from langchain_core.messages import convert_to_openai_messages
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from labmates.agents.tools import ToolError
from labmates.models.reply import Reply
from labmates.util.loopback import address_of, open_socket
from labmates.workflows.calls.call import CallOptions
from labmates_doors.protocols import PROTOCOLS
from labmates_doors.protocols.answering import answer as answered
from labmates_doors.protocols.base import (
    TOO_LONG,
    Protocol,
    RefusedRequestError,
    parsed_request,
    read_body,
    shown_key,
)
from labmates_doors.seats.session import BUDGET, SeatSession

MOST_BYTES = 8_000_000
"""Limit of a request."""
_STOP_SECONDS = 1

_BUDGET_TOOL = {
    "name": BUDGET,
    "description": "Read what is left of the budget, as far as you may know it.",
    "inputSchema": {"type": "object", "properties": {}},
}


class Server(uvicorn.Server):
    """A server that leaves signals to its program; `ready` is set after the start."""

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
        Path of the socket; None for a port.

    Yields
    ------
    str
        The address without a trailing slash; for a socket, `path`.
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
    """The application that serves a session to clients with its key."""
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
        *(Route(protocol.path, _asking(session, protocol), methods=["POST"]) for protocol in PROTOCOLS),
        Mount("/mcp", manager.handle_request),
    ]
    return _Gate(Starlette(routes=routes, lifespan=lifespan), session)


class _Gate:
    """Middleware that accepts only the session's key, and records any other key as a warning."""

    def __init__(self, app: ASGIApp, session: SeatSession) -> None:
        self._app, self._session = app, session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == "/mcp":
            scope = {**scope, "path": "/mcp/", "raw_path": b"/mcp/"}
        key = shown_key(Headers(scope=scope))
        if compare_digest(key.encode(), self._session.key.encode()):
            await self._app(scope, receive, send)
            return
        if key:  # Programs probe without a key.
            self._session.note("somebody asked the seat's server with a key that is not the seat's; it was refused")
        protocol = next((protocol for protocol in PROTOCOLS if protocol.path == scope["path"]), PROTOCOLS[0])
        error = protocol.error(401, "the key is not that of this seat and step")
        await JSONResponse(error, 401)(scope, receive, send)


def _page(session: SeatSession, content: Callable[[SeatSession], Response]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        del request
        return content(session)

    return answer


def _order(session: SeatSession) -> Response:
    """The agent's order, as messages and as text, and its tools."""
    return JSONResponse(
        {
            "seat": session.speaker.agent,
            "messages": convert_to_openai_messages(session.opening),
            "text": session.order,
            "tools": session.tools,
        }
    )


def _budget(session: SeatSession) -> Response:
    return PlainTextResponse(session.budget())


def _models(session: SeatSession) -> Response:
    models = [{"id": session.speaker.model, "object": "model", "owned_by": "labmates"}]
    return JSONResponse({"object": "list", "data": models})


def _asking(session: SeatSession, protocol: Protocol) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        """A reply of the seat's model, for any model in the request."""
        try:
            raw = await read_body(request.stream(), MOST_BYTES)
            body = parsed_request(session.clean(raw.decode(errors="replace")).encode())
            protocol.check(body)
            prompt = protocol.prompt(body)
            if not prompt.messages:
                raise RefusedRequestError("the request has no messages")
            options = CallOptions(
                tools=prompt.tools,
                tool_choice=prompt.tool_choice,
                response_format=prompt.response_format,
                limit=protocol.wanted(body) or 0,
            )

            async def asking() -> Reply:
                return await session.ask(prompt.messages, **options)

            return await answered(protocol, body, prompt, session.speaker.model, asking)
        except RefusedRequestError as error:
            if error.status == TOO_LONG:
                session.note(f"a model call of the agent was refused: {error}")
            return JSONResponse(protocol.error(error.status, str(error)), error.status)

    return answer


def _mcp_server(session: SeatSession) -> Any:
    """The MCP server of a session, with the lab's descriptions of its tools."""
    from mcp.server.lowlevel import Server
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

    async def listed(context: Any, params: Any) -> ListToolsResult:
        del context, params
        functions = [tool["function"] for tool in session.tools]
        described = [
            {"name": f["name"], "description": f.get("description", ""), "inputSchema": f["parameters"]}
            for f in functions
        ]
        return ListToolsResult(tools=list(map(Tool.model_validate, (*described, _BUDGET_TOOL))))

    async def called(context: Any, params: Any) -> CallToolResult:
        del context
        try:
            text = await session.use(params.name, params.arguments or {})
        except ToolError as error:
            text = f"Error: {error}"
        failed = text.startswith("Error: ")
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)

    return Server("labmates", on_list_tools=listed, on_call_tool=called)
