"""Sessions with MCP servers, whose tools an organisation's agents use."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

from labmates.agents.mcp_servers import McpServer
from labmates.agents.tools import ToolError

if TYPE_CHECKING:
    from mcp import Client

_log = logging.getLogger(__name__)
_LAST_LINES, _LINE_BYTES, _MOST_LOGGED = 3, 300, 500
"""Limits of a program's standard error: lines in an error, bytes of a line, and lines in the log."""
_LAST_SECONDS = 1.0


class McpSession:
    """A session with a server: opened at the first use, and reopened after a lost connection.

    Parameters
    ----------
    name
        Name of the server in messages.
    seconds
        Time limit of the start and of each call.
    """

    def __init__(self, name: str, server: McpServer, seconds: float) -> None:
        self._name, self._server, self._seconds = name, server, seconds
        self._wrote = _ErrorOutput(name, [os.environ[variable] for variable in server.env if variable in os.environ])
        self._connection: _Connection | None = None
        self._lock = asyncio.Lock()

    async def tools(self) -> list[dict[str, Any]]:
        """The tools of the server, each with ``name``, ``description`` and ``parameters`` (JSON schema).

        Raises
        ------
        ToolError
            If the server is unreachable.
        """
        connection = await self._connect()
        listed: list[dict[str, Any]] = []
        cursor = None
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    page = await connection.client.list_tools(cursor=cursor)
                    listed += (
                        {"name": tool.name, "description": tool.description or "", "parameters": tool.input_schema}
                        for tool in page.tools
                    )
                    if not (cursor := page.next_cursor):
                        return listed
        except Exception as error:
            raise self._failed(error, connection) from error

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The result of a tool call, as text.

        Raises
        ------
        ToolError
            If the server is unreachable, times out, or answers with an error.
        """
        connection = await self._connect()
        try:
            async with asyncio.timeout(self._seconds):
                result = await connection.client.call_tool(tool, dict(arguments))
        except Exception as error:
            raise self._failed(error, connection) from error
        text = "\n".join(map(_text, result.content))
        if result.is_error:
            raise ToolError(text or f"{tool} failed")
        return text

    async def close(self) -> None:
        """End the session, and with it the server's program."""
        if self._connection is not None:
            await self._connection.close()

    async def _connect(self) -> _Connection:
        async with self._lock:
            if self._connection is not None and self._connection.closing.is_set():
                await self._connection.close()
                self._connection = None
            if self._connection is None:
                self._connection = _Connection(self._server, self._seconds, self._wrote)
            connection = self._connection
        try:
            await asyncio.shield(connection.opened)
        except Exception as error:
            raise self._failed(error, connection) from error
        return connection

    def _failed(self, error: BaseException, connection: _Connection) -> ToolError:
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, TimeoutError):
            reason = f"no answer within {self._seconds:g} s"
        elif isinstance(error, MCPError):
            reason = error.message
            if error.code == CONNECTION_CLOSED:
                connection.closing.set()
        wrote = f"; it wrote: {self._wrote.end}" if self._wrote.end else ""
        return ToolError(f"the MCP server {self._name} failed: {reason}{wrote}")


class _Connection:
    """A connection, opened and closed by the same asyncio task, as the SDK requires."""

    client: Client

    def __init__(self, server: McpServer, seconds: float, wrote: _ErrorOutput) -> None:
        self.closing = asyncio.Event()
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve(server, seconds, wrote))

    async def close(self) -> None:
        self.closing.set()
        await asyncio.wait([self._task])

    async def _serve(self, server: McpServer, seconds: float, wrote: _ErrorOutput) -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(seconds):
                    self.client = await _open(server, stack, wrote)
                self.opened.set_result(None)
                await self.closing.wait()
        except BaseException as error:
            self.closing.set()
            if not self.opened.done():
                self.opened.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise


class _ErrorOutput(asyncio.Protocol):
    """The standard error of a server's program, written to the log; the last lines go into errors.

    Parameters
    ----------
    secrets
        Values of the program's variables, which are redacted.
    """

    def __init__(self, name: str, secrets: Sequence[str]) -> None:
        self._name, self._secrets = name, secrets
        self._begun = b""
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._logged = 0
        self._ended = asyncio.Event()

    @property
    def end(self) -> str:
        """The last lines."""
        return " / ".join(self._last)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the start of a program."""
        self._ended.clear()

    async def read_to_its_end(self) -> None:
        """Wait for the last line of an ended program, up to a time limit: child processes may keep the pipe open."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _LAST_SECONDS)

    def data_received(self, data: bytes) -> None:
        """Read the next bytes; incomplete lines are cut."""
        *lines, begun = (self._begun + data).split(b"\n")
        self._begun = begun[:_LINE_BYTES]
        for line in lines:
            self._take(line)

    def connection_lost(self, exc: Exception | None) -> None:
        """Take the rest, which has no end of line."""
        self._take(self._begun)
        self._begun = b""
        self._ended.set()

    def _take(self, line: bytes) -> None:
        text = line[:_LINE_BYTES].decode(errors="replace").strip()
        for secret in filter(None, self._secrets):
            text = text.replace(secret, "[secret]")
        if not text:
            return
        self._last.append(text)
        self._logged += 1
        if self._logged <= _MOST_LOGGED:
            _log.info("the MCP server %s: %s", self._name, text)


async def _open(server: McpServer, stack: AsyncExitStack, wrote: _ErrorOutput) -> Client:
    from mcp import Client, StdioServerParameters, stdio_client

    if server.url:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        from labmates.models.clients import transport

        values = {header: os.environ[variable] for header, variable in server.headers.items() if variable in os.environ}
        # The session bounds all waits. Redirects, which the client does not follow, could take headers elsewhere.
        client = httpx2.AsyncClient(headers=values, timeout=None, transport=transport())
        http = await stack.enter_async_context(client)
        return await stack.enter_async_context(Client(streamable_http_client(server.url, http_client=http)))
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as log:
        read_end, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: wrote, os.fdopen(reading, "rb"))
        stack.callback(read_end.close)
        stack.push_async_callback(wrote.read_to_its_end)
        program, *arguments = server.command
        given = {variable: os.environ[variable] for variable in server.env if variable in os.environ}
        parameters = StdioServerParameters(command=program, args=arguments, env=given)
        return await stack.enter_async_context(Client(stdio_client(parameters, errlog=log)))


def _text(part: Any) -> str:
    """Text of one part of a result, as an agent sees it."""
    text = getattr(part, "text", None) or getattr(getattr(part, "resource", None), "text", None)
    return text or f"[{part.type}]"
