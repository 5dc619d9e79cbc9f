"""Runs a program beside a relay from a port to a Unix socket; it stands inside the sandbox, and alone.

``relay.py PORT SOCKET PROGRAM ARGUMENT …``: the network of the sandbox holds nothing else.
"""

from __future__ import annotations

import asyncio
import resource
import sys

OPEN_FILES = 1024
FILE_BYTES = 256 << 20


async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy one direction of a connection until it ends."""
    try:
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    finally:
        target.close()


async def main(port: int, socket: str, command: list[str]) -> int:
    """Run the program and return its exit status."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_unix_connection(socket)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    server = await asyncio.start_server(relay, "127.0.0.1", port)
    async with server:
        process = await asyncio.create_subprocess_exec(*command)
        return await process.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])) & 0xFF)
