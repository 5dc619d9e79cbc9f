"""An MCP server on its standard streams, or with a port by HTTP; it writes the names of called tools to a file."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

log = Path(sys.argv[1])
server = MCPServer("papers")


def note(text: str) -> None:
    with log.open("a") as file:
        file.write(f"{text}\n")


@server.tool()
def search(query: str) -> str:
    """Search for papers."""
    note(f"search {query}")
    return f"2 papers about {query}"


@server.tool()
def environment() -> str:
    """The names of the environment variables."""
    return " ".join(sorted(os.environ))


@server.tool()
def long() -> str:
    """A long text."""
    return "x" * 20_000


@server.tool()
def broken() -> str:
    """A tool that fails."""
    raise LookupError("nothing there")


@server.tool()
async def endless() -> str:
    """A tool that gives no answer."""
    await asyncio.sleep(3600)
    return ""


@server.tool()
def crash() -> str:
    """A tool that ends its server."""
    os._exit(3)


if __name__ == "__main__":
    note("started")
    if len(sys.argv) > 2:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run("stdio")
