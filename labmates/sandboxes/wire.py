"""Jupyter's messages on the host's side of the sockets, where received data are not trusted.

``jupyter_client`` builds and signs messages. Reading is separate, since its clients parse messages before their size
can be checked, and everything in a message, even its signature, may come from hostile code in the kernel.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.session import DELIM, Session

from labmates.sandboxes.process import PORTS

FRAME_BYTES = 16 << 20
"""Maximum frame; ZeroMQ drops a peer that announces a larger one, before reading it."""
_QUEUED_MESSAGES = 4  # per channel, so that a flood fills the kernel's queue
_HEADER_BYTES = 64 << 10
_KINDS = {
    "stream": 8 << 20,
    "display_data": FRAME_BYTES,
    "execute_result": FRAME_BYTES,
    "error": 1 << 20,
    "status": _HEADER_BYTES,
    "iopub_welcome": _HEADER_BYTES,
    "execute_reply": 1 << 20,
    "interrupt_reply": 1 << 20,
    "kernel_info_reply": 1 << 20,
}  # the accepted kinds, with their maximum content in bytes


@dataclass(frozen=True)
class Message:
    """A message from a kernel."""

    kind: str  # type in Jupyter's protocol; empty for unreadable and ignored messages
    parent: str  # id of its request; may be empty
    content: dict[str, Any]  # an object with unchecked members
    size: int  # of all frames, in bytes


def read(frames: list[bytes]) -> Message:
    """The message in `frames`; unreadable frames become a message without kind."""
    size = sum(map(len, frames))
    nothing = Message("", "", {}, size)
    try:
        start = frames.index(DELIM) + 2
        header, parent, _metadata, content = frames[start : start + 4]
        if max(len(header), len(parent)) > _HEADER_BYTES:
            return nothing
        kind, parent_id = json.loads(header)["msg_type"], json.loads(parent).get("msg_id", "")
        if kind not in _KINDS or len(content) > _KINDS[kind]:
            return nothing
        fields = json.loads(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return nothing
    return Message(kind, parent_id, fields, size) if isinstance(fields, dict) else nothing


class Channels:
    """The sockets of one kernel: shell, control and iopub.

    `sockets` is the path of the unix sockets up to the channel's number, and `key` signs requests. If this side
    `listens`, the kernel connects to the sockets.
    """

    def __init__(self, sockets: str, key: str, *, listens: bool = False) -> None:
        self._sockets = sockets
        self._listens = listens
        self._session = Session(key=key.encode(), username="labmates")
        self._context = zmq.asyncio.Context()
        for option, value in ((zmq.MAXMSGSIZE, FRAME_BYTES), (zmq.RCVHWM, _QUEUED_MESSAGES), (zmq.LINGER, 0)):
            self._context.setsockopt(option, value)
        self.shell = self._connect("shell", zmq.DEALER)
        self.control = self._connect("control", zmq.DEALER)
        self.iopub = self._subscribe()

    async def send(self, channel: zmq.asyncio.Socket, kind: str, content: dict[str, Any]) -> str:
        """Send a request and return its identifier."""
        message = self._session.msg(kind, content)
        await channel.send_multipart(self._session.serialize(message))
        return str(message["header"]["msg_id"])

    async def receive(self, channel: zmq.asyncio.Socket) -> Message:
        """Wait for the next message."""
        return read(await channel.recv_multipart())

    def resubscribe(self) -> None:
        """Replace the iopub socket, since ZeroMQ drops a peer for good after an oversized frame."""
        self.iopub.close()
        self.iopub = self._subscribe()

    def close(self) -> None:
        """Close the sockets; waiting receivers are cancelled."""
        self._context.destroy()

    def _subscribe(self) -> zmq.asyncio.Socket:
        socket = self._connect("iopub", zmq.SUB)
        socket.subscribe(b"")
        return socket

    def _connect(self, channel: str, kind: int) -> zmq.asyncio.Socket:
        socket = self._context.socket(kind)
        path = Path(f"{self._sockets}-{PORTS[channel]}")
        if self._listens:
            socket.bind(f"ipc://{path}")
            path.chmod(0o777)  # the kernel may have another user id; the parent folders are private
        else:
            socket.connect(f"ipc://{path}")
        return socket
