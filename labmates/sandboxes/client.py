"""Execution of cells in an untrusted kernel: an answer always arrives, within limits of time and size.

``jupyter_client`` builds and signs messages. Reading is separate, since its clients parse messages before their size
can be checked, and everything in a message, even its signature, may come from hostile code in the kernel.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import zmq
import zmq.asyncio
from jupyter_client.session import DELIM, Session

from labmates.sandboxes.base import PATIENCE, SandboxError
from labmates.sandboxes.control import Kernel
from labmates.sandboxes.output import HeadTail
from labmates.sandboxes.process import PORTS
from labmates.util.loops import running

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


IMAGES_PER_CELL = 10
IMAGE_BYTES = 8 << 20
_MOST_DROPPED = 10**15
_PNG = b"\x89PNG\r\n\x1a\n"

_GRACE = 3.0  # seconds for code to react to an interrupt, limited as the code itself
_LAST_OUTPUT = 10.0  # seconds for output after the reply
_CHECK_SECONDS = 1.0  # between looks at the processor time
_FLOOD_BYTES = 256 << 20  # per cell; the runner's limits let at most half of it through

T = TypeVar("T")

Clock = Callable[[], Awaitable[float]]
"""The processor time of an enclosure's kernels so far, in seconds."""

Ending = Literal["finished", "interrupted", "stuck", "flood", "died"]
"""The end of a cell; after the last three, the kernel is unusable."""


class _FloodError(Exception):
    """A kernel sends more than its runner's limits allow."""


@dataclass
class Cell:
    """The result of a cell so far."""

    ending: Ending = "finished"
    waited: bool = False  # whether it was stopped by the clock, not for its processor time
    failed: bool = False  # whether it raised an exception
    output: HeadTail = field(default_factory=HeadTail)
    dropped_inside: int = 0  # characters that the kernel did not send
    images: list[bytes] = field(default_factory=list)  # figures as PNG
    images_left_out: int = 0
    output_lost: bool = False
    crowd_ended: bool = False  # whether it left too many processes running, which were killed

    def take(self, message: Message) -> None:
        """Add a `message` of this cell."""
        content, data = message.content, message.content.get("data")
        if message.kind == "stream":
            self._add(content.get("text"))
        elif message.kind == "error":
            lines = content.get("traceback")
            if isinstance(lines, list):
                self._add("\n".join(line for line in lines if isinstance(line, str)), end="\n")
        elif message.kind in ("display_data", "execute_result") and isinstance(data, dict):
            if "image/png" in data and len(self.images) < IMAGES_PER_CELL and (image := _png(data["image/png"])):
                self.images.append(image)
            elif "image/png" in data or "labmates/left-out" in data:
                self.images_left_out += 1
            else:
                self._add(data.get("text/plain"), end="\n")

    def _add(self, text: object, end: str = "") -> None:
        if isinstance(text, str) and text:
            self.output.add(text + end)


class KernelClient:
    """The host's end of one kernel, which may not be ready yet."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._channels = Channels(kernel.sockets, kernel.key, listens=kernel.reaches_out)

    async def wait_until_ready(self, timeout: float) -> None:
        """Wait until the kernel answers and its output arrives.

        Raises `SandboxError` if it ends, or is not ready within `timeout` seconds.
        """
        async with running(self._greet()) as greeting:
            if await self._in_time(greeting, timeout):
                return
        what = self._kernel.ending if self._kernel.exited.is_set() else "it did not answer in time"
        raise SandboxError(f"the Python kernel could not be started: {what}. {self._kernel.complaint}".strip())

    async def run(self, code: str, timeout: float, clock: Clock) -> Cell:
        """Run `code` and return its result, after at most `timeout` seconds and a grace period.

        Both are limited by processor time, and `PATIENCE` times as long by the loop's clock.
        """
        cell, channels = Cell(), self._channels
        start = await clock()
        content = {
            "code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False,
            "stop_on_error": False,
        }  # fmt: skip
        request = await channels.send(channels.shell, "execute_request", content)
        async with running(self._collect(request, cell)) as work:
            try:
                if (spent := await self._within(work, timeout, start, clock)) is None:
                    return cell
                cell.waited = spent < timeout
                cell.ending = await self._interrupt(work, start + spent, clock)
            except _FloodError:
                cell.ending = "flood"
        if self._kernel.exited.is_set():
            cell.ending = "died"
        return cell

    def close(self) -> None:
        """Close the sockets."""
        self._channels.close()

    async def _greet(self) -> None:
        channels = self._channels
        await self._welcome()
        await self._reply(channels.shell, await channels.send(channels.shell, "kernel_info_request", {}))

    async def _welcome(self) -> None:
        while (await self._channels.receive(self._channels.iopub)).kind != "iopub_welcome":
            pass

    async def _interrupt(self, work: asyncio.Task[None], start: float, clock: Clock) -> Ending:
        if self._kernel.exited.is_set():
            return "died"
        channels = self._channels
        request = await channels.send(channels.control, "interrupt_request", {})
        # Wait for the reply to the interrupt, too: a late interrupt would hit the next cell.
        async with running(_both(self._reply(channels.control, request), work)) as both:
            return "interrupted" if await self._within(both, _GRACE, start, clock) is None else "stuck"

    async def _within(self, task: asyncio.Task[Any], seconds: float, start: float, clock: Clock) -> float | None:
        """None if `task` ended before the process and within `seconds` since `start` of the clock, else what it took.

        It raises the task's error.
        """
        loop = asyncio.get_running_loop()
        end, spent = loop.time() + PATIENCE * seconds, 0.0
        while spent < seconds and (waiting := end - loop.time()) > 0 and not self._kernel.exited.is_set():
            if await self._in_time(task, min(seconds - spent, waiting, _CHECK_SECONDS)):
                return None
            spent = await clock() - start
        return spent

    async def _in_time(self, task: asyncio.Task[Any], timeout: float) -> bool:
        """Whether `task` ended within `timeout` seconds and before the process; raises its exception."""
        async with running(self._kernel.exited.wait()) as exit_:
            await asyncio.wait({task, exit_}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if not task.done() or task.cancelled():  # cancelled when the session is closed
            return False
        task.result()
        return True

    async def _collect(self, request: str, cell: Cell) -> None:
        """Fill `cell` until the kernel's reply and its last output."""
        channels = self._channels
        async with (
            running(self._outputs(request, cell)) as outputs,
            running(self._reply(channels.shell, request)) as reply,
        ):
            await asyncio.wait({outputs, reply}, return_when=asyncio.FIRST_COMPLETED)
            if outputs.done():
                outputs.result()
            answer = (await reply).content
            cell.failed = answer.get("status") != "ok"
            dropped = answer.get("labmates_dropped")
            cell.dropped_inside = dropped if isinstance(dropped, int) and 0 < dropped < _MOST_DROPPED else 0
            if (await asyncio.wait({outputs}, timeout=_LAST_OUTPUT))[0]:
                outputs.result()
                return
        cell.output_lost = True
        channels.resubscribe()
        try:
            await asyncio.wait_for(self._welcome(), _LAST_OUTPUT)
        except TimeoutError:
            raise _FloodError from None

    async def _outputs(self, request: str, cell: Cell) -> None:
        received = 0
        while True:
            message = await self._channels.receive(self._channels.iopub)
            received += message.size
            if received > _FLOOD_BYTES:
                raise _FloodError
            if message.parent == request:
                if message.kind == "status" and message.content.get("execution_state") == "idle":
                    return
                cell.take(message)

    async def _reply(self, channel: Any, request: str) -> Message:
        while (message := await self._channels.receive(channel)).parent != request:
            pass
        return message


async def _both(reply: Coroutine[Any, Any, Message], work: asyncio.Task[None]) -> None:
    await reply
    await asyncio.shield(work)


def _png(encoded: object) -> bytes | None:
    if not isinstance(encoded, str) or len(encoded) > 1.4 * IMAGE_BYTES:
        return None
    try:
        image = base64.b64decode(encoded)
    except (ValueError, binascii.Error):
        return None
    return image if image.startswith(_PNG) and len(image) <= IMAGE_BYTES else None
