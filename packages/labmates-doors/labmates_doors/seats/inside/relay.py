"""Runs a program beside a relay from a port to a Unix socket, under the sandboxes' filter of system calls.

``relay.py PORT SOCKET PROCESSES PROGRAM ARGUMENT …``: the network of the sandbox holds nothing else. PROCESSES is the
limit on processes and threads; 0 for none. Inside the sandbox, the module of the filter stands beside this file.
"""

from __future__ import annotations

import asyncio
import resource
import runpy
import sys
from pathlib import Path

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

    server = await asyncio.start_server(relay, "127.0.0.1", port)
    async with server:
        process = await asyncio.create_subprocess_exec(*command)
        return await process.wait()


def confine(processes: int) -> None:
    """Limit this process and all that it will start."""
    limits = {resource.RLIMIT_NOFILE: OPEN_FILES, resource.RLIMIT_FSIZE: FILE_BYTES, resource.RLIMIT_CORE: 0}
    if processes:
        limits[resource.RLIMIT_NPROC] = processes
    for what, most in limits.items():
        resource.setrlimit(what, (most, most))
    runpy.run_path(str(Path(__file__).with_name("filter.py")))["refuse_calls"]()


if __name__ == "__main__":
    confine(int(sys.argv[3]))
    sys.exit(asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[4:])) & 0xFF)
