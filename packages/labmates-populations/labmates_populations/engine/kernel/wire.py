"""Messages between processes: a JSON object and bytes, each with a length prefix.

Messages from processes of strategies are untrusted.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_HEAD = struct.Struct("<QQ")
MOST_BYTES = 1 << 30


class ClosedError(Exception):
    """The other side has closed the connection, or sends invalid messages."""


def send(connection: socket.socket, told: dict[str, Any], data: bytes = b"") -> None:
    """Send a message with an object and bytes."""
    text = json.dumps(told).encode()
    try:
        connection.sendall(_HEAD.pack(len(text), len(data)) + text + data)
    except OSError as error:
        raise ClosedError(str(error)) from error


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """Wait for a message and return its object and bytes; ClosedError if it is invalid or the connection closes."""
    try:
        head = _exactly(connection, _HEAD.size)
        complete(head, MOST_BYTES)
        return parsed(_exactly(connection, sum(_HEAD.unpack(head)), head))
    except (OSError, ValueError) as error:
        raise ClosedError(str(error)) from error


def complete(message: bytes | bytearray, most: int) -> bool:
    """Whether a message is complete; ValueError if it is larger than its announced size, or this than `most`."""
    if len(message) < _HEAD.size:
        return False
    size: int = sum(_HEAD.unpack_from(message))
    if size > most or len(message) > _HEAD.size + size:
        raise ValueError("the other side sends too much")
    return len(message) == _HEAD.size + size


def parsed(message: bytes | bytearray) -> tuple[dict[str, Any], bytes]:
    """The object and the bytes of a message; ValueError if it is invalid."""
    text, _ = _HEAD.unpack_from(message)
    told = json.loads(message[_HEAD.size : _HEAD.size + text])
    if not isinstance(told, dict):
        raise ValueError("the other side sends what can't be read")
    return told, bytes(message[_HEAD.size + text :])


def _exactly(connection: socket.socket, length: int, before: bytes = b"") -> bytes:
    parts = bytearray(before)
    while (missing := len(before) + length - len(parts)) > 0:
        part = connection.recv(min(1 << 20, missing))
        if not part:
            raise ClosedError("the other side has gone")
        parts += part
    return bytes(parts)
