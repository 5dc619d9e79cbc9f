"""Imports what kernels need, once, and forks the runner for each connection to its socket.

Stands alone, as the runner does: it is started with the interpreter, the options and the environment of a kernel.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NoReturn

_PACKET_BYTES = 60_000


def main(runner: str, names: str, address: str) -> None:
    """Go on in a process of its own, and fork runners until the socket is removed."""
    gc.disable()  # as the runner does
    nursery = _imported_runner(runner, names)
    gc.freeze()
    serve(address, socket.SOCK_SEQPACKET, lambda line: _serve(line, nursery))


def serve(address: str, kind: socket.SocketKind, take_over: Callable[[socket.socket], NoReturn]) -> None:
    """Go on in a process of its own, and fork one for each connection until the socket is removed."""
    with socket.socket(socket.AF_UNIX, kind) as door:
        door.bind(address)
        door.listen(64)
        if os.fork():
            return
        os.setsid()
        for stream in (1, 2):
            os.dup2(0, stream)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that take over
        door.settimeout(1.0)
        while Path(address).exists():
            with contextlib.suppress(TimeoutError):
                line, _ = door.accept()
                if os.fork() == 0:
                    door.close()
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    take_over(line)
                line.close()


def _imported_runner(folder: str, names: str) -> Any:
    spec = spec_from_file_location("runner", f"{folder}/__init__.py")
    assert spec is not None
    sys.modules["runner"] = module_from_spec(spec)
    nursery = importlib.import_module("runner.nursery")
    importlib.import_module("runner.packages").find_only(names.split(","))  # as the runner does
    for module in ("numpy", "pandas", *nursery._LIKELY):
        importlib.import_module(module)
    return nursery


def _serve(line: socket.socket, nursery: Any) -> NoReturn:
    """Fork one runner, and tell how it has ended when that is asked."""
    try:
        order, [output], *_ = socket.recv_fds(line, _PACKET_BYTES, 1)
        pid = os.fork()
        if pid == 0:
            _become_runner(line, output, nursery, *json.loads(order))
        os.close(output)
        line.recv(1)  # until then its number must not be given to another process
        line.send(os.waitpid(pid, 0)[1].to_bytes(4, "big"))
    finally:
        os._exit(0)


def _become_runner(
    line: socket.socket, output: int, nursery: Any, settings: str, environment: dict[str, str], folder: str
) -> NoReturn:
    try:
        os.setsid()
        line.send(os.getpid().to_bytes(4, "big"))
        line.close()
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        tempfile.tempdir = None
        sys.modules["numpy"].random.seed()  # forks would draw the same numbers
        for stream in (1, 2):
            os.dup2(output, stream)
        os.close(output)
        nursery.main(settings)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
