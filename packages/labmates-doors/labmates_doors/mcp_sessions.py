"""Sessions with MCP servers, whose tools an organisation's agents use."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, TextIO

from labmates.agents.mcp_servers import McpServer
from labmates.agents.tools import ToolError

if TYPE_CHECKING:
    from mcp import Client

_LAST_LINES, _LAST_BYTES = 3, 1_000
"""The end of a program's standard error in an error."""


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
        self._errors = TemporaryFile("w")  # noqa: SIM115 - closed with the session
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
        self._errors.close()

    async def _connect(self) -> _Connection:
        async with self._lock:
            if self._connection is not None and self._connection.closing.is_set():
                await self._connection.close()
                self._connection = None
            if self._connection is None:
                self._connection = _Connection(self._server, self._seconds, self._errors)
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
        wrote = self._last_lines()
        return ToolError(f"the MCP server {self._name} failed: {reason}{f'; it wrote: {wrote}' if wrote else ''}")

    def _last_lines(self) -> str:
        """The end of the standard error of the server's program, without the values of its variables."""
        start = max(0, os.fstat(self._errors.fileno()).st_size - _LAST_BYTES)
        text = os.pread(self._errors.fileno(), _LAST_BYTES, start).decode(errors="replace")  # the program's place stays
        if start:  # the first line may begin within a secret
            text = text.partition("\n")[2]
        for secret in filter(None, map(os.environ.get, self._server.env)):
            text = text.replace(secret, "[secret]")
        return " / ".join(line.strip() for line in text.splitlines()[-_LAST_LINES:])


class _Connection:
    """A connection, opened and closed by the same asyncio task, as the SDK requires."""

    client: Client

    def __init__(self, server: McpServer, seconds: float, errors: TextIO) -> None:
        self.closing = asyncio.Event()
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve(server, seconds, errors))

    async def close(self) -> None:
        self.closing.set()
        await asyncio.wait([self._task])

    async def _serve(self, server: McpServer, seconds: float, errors: TextIO) -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(seconds):
                    self.client = await _open(server, stack, errors)
                self.opened.set_result(None)
                await self.closing.wait()
        except BaseException as error:
            self.closing.set()
            if not self.opened.done():
                self.opened.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise


async def _open(server: McpServer, stack: AsyncExitStack, errors: TextIO) -> Client:
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
    program, *arguments = server.command
    given = {variable: os.environ[variable] for variable in server.env if variable in os.environ}
    parameters = StdioServerParameters(command=program, args=arguments, env=given)
    return await stack.enter_async_context(Client(stdio_client(parameters, errlog=errors)))


def _text(part: Any) -> str:
    """Text of one part of a result, as an agent sees it."""
    text = getattr(part, "text", None) or getattr(getattr(part, "resource", None), "text", None)
    return text or f"[{part.type}]"
