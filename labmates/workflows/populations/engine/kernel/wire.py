"""Messages between a worker and whoever started it: an object of JSON and some bytes, each with its length before it.

What a worker sends is not to be trusted: it is read by these lengths and nothing else.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_HEAD = struct.Struct("<QQ")
MOST_BYTES = 1 << 30


class ClosedError(Exception):
    """The other side has gone, or sends what can't be read."""


def send(connection: socket.socket, told: dict[str, Any], data: bytes = b"") -> None:
    """Send a message."""
    text = json.dumps(told).encode()
    try:
        connection.sendall(_HEAD.pack(len(text), len(data)) + text + data)
    except OSError as error:
        raise ClosedError(str(error)) from error


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """Wait for a message and return it.

    Raises
    ------
    ClosedError
        If there will be none.
    """
    try:
        text, data = _HEAD.unpack(_exactly(connection, _HEAD.size))
        if text > MOST_BYTES or data > MOST_BYTES:
            raise ClosedError("the other side sends too much")
        told = json.loads(_exactly(connection, text))
        if not isinstance(told, dict):
            raise ClosedError("the other side sends what can't be read")
        return told, _exactly(connection, data)
    except (OSError, ValueError) as error:
        raise ClosedError(str(error)) from error


def _exactly(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = connection.recv(min(1 << 20, length - len(parts)))
        if not part:
            raise ClosedError("the other side has gone")
        parts += part
    return bytes(parts)
