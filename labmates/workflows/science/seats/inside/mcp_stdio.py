"""The tools of a seat on standard streams, for programs that start their MCP servers. It needs mcp alone."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def main(url: str, key: str) -> None:
    """Pass on what is asked on standard streams to the server at `url`."""
    headers = {"authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=None) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):

        async def listed(context: Any, params: Any) -> Any:
            del context, params
            return await client.list_tools()

        async def called(context: Any, params: Any) -> Any:
            del context
            return await client.call_tool(params.name, params.arguments or {})

        server: Server[Any] = Server("labmates", on_list_tools=listed, on_call_tool=called)
        async with stdio_server() as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main(os.environ["LABMATES_MCP_URL"], os.environ["LABMATES_KEY"]))
