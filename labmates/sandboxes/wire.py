"""Jupyter's messages on this side of the sockets, where nothing that arrives is trusted.

Messages are built and signed by ``jupyter_client``. They are read here: its clients parse a message before anyone can
look at its size, and everything in a message, its signature too, may come from hostile code that runs in the kernel.
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
"""Largest frame: ZeroMQ drops a peer that announces a larger one, before it is read."""
_QUEUED_MESSAGES = 4  # per channel, so that a flood fills the kernel's queue and not ours
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
}  # the kinds that we read, with the largest content of each in bytes


@dataclass(frozen=True)
class Message:
    """A message from a kernel.

    Attributes
    ----------
    kind
        Its type in Jupyter's protocol; empty for one that can't be read or is of no use to us.
    parent
        Identifier of the request that it belongs to; may be empty.
    content
        Its content, of which nothing but being an object has been checked.
    size
        Size of all its frames, in bytes.
    """

    kind: str
    parent: str
    content: dict[str, Any]
    size: int


def read(frames: list[bytes]) -> Message:
    """The messages in `frames`; an unreadable frame becomes a message of no kind."""
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

    Parameters
    ----------
    sockets
        Path of the kernel's unix sockets up to the channel's number.
    key
        Key that signs the requests.
    listens
        Whether the sockets are made here, and the kernel connects to them.
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
        """Make a new iopub socket: ZeroMQ drops a peer for good after an oversized frame."""
        self.iopub.close()
        self.iopub = self._subscribe()

    def close(self) -> None:
        """Close the sockets; whoever still waits for a message is cancelled."""
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
            path.chmod(0o777)  # the kernel may have another user id; the folders above are private
        else:
            socket.connect(f"ipc://{path}")
        return socket
