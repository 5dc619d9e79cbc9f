"""The process that reads files of strategies and forks workers, which find all that was read in their memory.

Started by `labmates.workflows.populations.engine.workers` with a socket as its standard input; it ends when the other
side has gone. It never runs a strategy's code itself.
"""

from __future__ import annotations

import gc
import mmap
import os
import signal
import socket
import sys
from typing import Any

from labmates.workflows.populations.engine.kernel.confine import UnconfinedError, die_with_parent
from labmates.workflows.populations.engine.kernel.source import Code, Found, UnreadableError, read_source
from labmates.workflows.populations.engine.kernel.wire import ClosedError, receive, send
from labmates.workflows.populations.engine.kernel.worker import MARKS, work

MOST_WORKERS = 256


def main() -> None:
    """Serve until the other side has gone."""
    connection = socket.socket(fileno=0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with mmap.mmap(int(sys.argv[1]), MARKS * MOST_WORKERS) as shared:
        codes: list[Code | None] = []
        while True:
            try:
                asked, data = receive(connection)
                if "load" in asked:
                    send(connection, _load(asked["load"], data, codes))
                else:
                    send(connection, {"pid": _fork(asked, connection, shared, codes)})
            except ClosedError:
                return


def _load(name: str, data: bytes, codes: list[Code | None]) -> dict[str, Any]:
    """Read a file; strategies get the numbers that follow those before."""
    first = len(codes)
    gc.disable()
    try:
        found = list(read_source(data.decode(), name))
    except (UnreadableError, UnicodeDecodeError) as error:
        return {"error": str(error)}
    finally:
        gc.enable()
    codes += [one if isinstance(one, Code) else None for one in found]
    return {"first": first, "found": [(one if isinstance(one, Found) else one.found).as_json() for one in found]}


def _fork(asked: dict[str, Any], connection: socket.socket, shared: mmap.mmap, codes: list[Code | None]) -> int:
    """Fork a worker; it is given its own socket with the message."""
    _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    theirs = socket.socket(fileno=descriptors[0])
    pid = os.fork()
    if pid:
        theirs.close()
        return pid
    try:
        die_with_parent()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        os.closerange(3, theirs.fileno())
        os.closerange(theirs.fileno() + 1, 4096)
        place = asked["place"] * MARKS
        marks = memoryview(shared)[place : place + MARKS]
        work(theirs, codes, marks, seconds=asked["seconds"], memory=asked["memory"], unsafe=asked["unsafe"])
    except BaseException as error:
        send(theirs, {"ready": False, "confined": not isinstance(error, UnconfinedError), "error": str(error)})
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
