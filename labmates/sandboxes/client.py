"""Execution of cells in an untrusted kernel: an answer always arrives, within limits of time and size."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.control import Kernel
from labmates.sandboxes.output import HeadTail
from labmates.sandboxes.wire import Channels, Message

IMAGES_PER_CELL = 10
IMAGE_BYTES = 8 << 20
_MOST_DROPPED = 10**15
_PNG = b"\x89PNG\r\n\x1a\n"

_GRACE = 3.0  # seconds for code to react to an interrupt
_LAST_OUTPUT = 2.0  # seconds for output after the reply
_FLOOD_BYTES = 256 << 20  # per cell; the runner's limits let at most half of it through

T = TypeVar("T")

Ending = Literal["finished", "interrupted", "stuck", "flood", "died"]
"""The end of a cell; after the last three, the kernel is unusable."""


class _FloodError(Exception):
    """A kernel sends more than its runner's limits allow."""


@dataclass
class Cell:
    """The result of a cell so far."""

    ending: Ending = "finished"
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

    async def run(self, code: str, timeout: float) -> Cell:
        """Run `code` and return its result, after at most `timeout` seconds and a grace period."""
        cell, channels = Cell(), self._channels
        content = {
            "code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False,
            "stop_on_error": False,
        }  # fmt: skip
        request = await channels.send(channels.shell, "execute_request", content)
        async with running(self._collect(request, cell)) as work:
            try:
                if await self._in_time(work, timeout):
                    return cell
                cell.ending = await self._interrupt(work)
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

    async def _interrupt(self, work: asyncio.Task[None]) -> Ending:
        if self._kernel.exited.is_set():
            return "died"
        channels, clock = self._channels, asyncio.get_running_loop().time
        end = clock() + _GRACE
        request = await channels.send(channels.control, "interrupt_request", {})
        # Wait for the reply to the interrupt, too: a late interrupt would hit the next cell.
        async with running(self._reply(channels.control, request)) as reply:
            in_time = await self._in_time(reply, _GRACE) and await self._in_time(work, end - clock())
        return "interrupted" if in_time else "stuck"

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


@contextlib.asynccontextmanager
async def running(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run `work` during the block, and cancel it at the end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _png(encoded: object) -> bytes | None:
    if not isinstance(encoded, str) or len(encoded) > 1.4 * IMAGE_BYTES:
        return None
    try:
        image = base64.b64decode(encoded)
    except (ValueError, binascii.Error):
        return None
    return image if image.startswith(_PNG) and len(image) <= IMAGE_BYTES else None
