"""The process from which all others are forked: it has numpy loaded, and no data of strategies.

A request is a packet with the name of a role and its settings as JSON, and descriptors: a socket to the client, and any
others for the role. The child replies on its socket. The process exits when all clients have closed their sockets.
"""

from __future__ import annotations

import dataclasses
import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections import deque
from functools import lru_cache, partial
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from labmates.sandboxes.runner import forking
from labmates_populations.engine.kernel.confine import UnconfinedError, filter_program
from labmates_populations.engine.kernel.wire import ClosedError, receive, send

_KERNEL = "labmates_populations.engine.kernel"
_ROLES = ("engine", "players", "source")
_PACKET_BYTES = 1 << 16
_MOST_DESCRIPTORS = 4
_MOST_TEXTS = 256


def fork(
    requests: socket.socket, role: str, settings: dict[str, Any], descriptors: tuple[int, ...] = ()
) -> tuple[socket.socket, dict[str, Any]]:
    """Request a process; its socket and first message, or ClosedError."""
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            packet = json.dumps({"role": role, "settings": settings}).encode()
            socket.send_fds(requests, [packet], [theirs.fileno(), *descriptors])
        return ours, receive(ours)[0]
    except (ClosedError, OSError) as error:
        ours.close()
        raise ClosedError(str(error)) from error


def main() -> None:
    """Load the modules of all processes, and fork these."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _warm_up()
    filter_program()  # kept for all processes
    requests = socket.socket(fileno=0)  # until it closes; children do not inherit it
    roles = {name: importlib.import_module(f"{_KERNEL}.{name}").serve for name in _ROLES}
    gc.collect()
    gc.freeze()
    while True:
        packet, descriptors, _, _ = socket.recv_fds(requests, _PACKET_BYTES, _MOST_DESCRIPTORS)
        if not packet:
            return
        deque(forking.reap(), maxlen=0)
        request = json.loads(packet)
        forking.fork(partial(_become, roles[request["role"]], request["settings"], descriptors))
        for descriptor in descriptors:
            os.close(descriptor)


def _become(role: Any, settings: dict[str, Any], descriptors: list[int]) -> None:
    forking.drop_streams()
    connection = socket.socket(fileno=descriptors[0])
    try:
        role(connection, settings, *descriptors[1:])
    except (ClosedError, UnconfinedError) as error:
        send(connection, {"ready": False, "confined": isinstance(error, ClosedError), "error": str(error)})


@lru_cache(_MOST_TEXTS)
def _compiled(text: str) -> CodeType:
    return compile(text, "<string>", "exec")


def _execute(text: str, names: Any = None, made: Any = None) -> None:
    exec(_compiled(text), names, made)  # noqa: S102 - what the module `dataclasses` has written


def _warm_up() -> None:
    """Trigger lazy imports of numpy and of strategies' modules, because a confined process can't open files."""
    values = np.arange(6.0).reshape(2, 3)
    str(values), values.mean(), values.std(), np.median(values), np.percentile(values, 50), values @ values.T
    np.linalg.inv(np.eye(2)), np.linalg.svd(values), np.unique(values), np.random.default_rng(0).random()
    np.random.RandomState(0).rand(), np.polyfit([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], 1), np.corrcoef(values)
    np.isclose(values, values), np.array_equal(values, values), np.histogram(values), np.quantile(values, 0.5)
    for part in ("char", "fft", "ma", "polynomial", "rec", "strings"):
        importlib.import_module(f"numpy.{part}")
    sys.modules["strategy"] = ModuleType("strategy")  # where `dataclass` looks up names of a strategy's annotations
    vars(dataclasses)["exec"] = _execute  # each player makes its data classes anew: their code is compiled once
    np.seterr(all="ignore")  # warnings have no reader here, and take longer than a decision


if __name__ == "__main__":
    sys.path[:] = [path for path in sys.path if path]
    main()
