"""The host's end of a runner's control socket: start of kernels, clean-up, and the files that code writes to ``out/``.

Received data are not trusted: code in the sandbox should not be able to reach the socket, but might find a way.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import signal
import socket
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labmates.sandboxes.base import OutputFile, SandboxError
from labmates.sandboxes.folders import in_thread
from labmates.sandboxes.process import PORTS

_PACKET_BYTES = 64 << 10
_PIECE_BYTES = 1 << 20
_ANSWER_SECONDS = 20.0  # the runner's orders are quick, even on a busy machine; longer means that it is blocked
_COMPLAINT_CHARS = 1_500
MOST_BYTES = 8 << 20
"""Maximum size of a transferred file."""


class Kernel:
    """A started kernel, which may not be ready yet.

    `sockets` is the path of its unix sockets on the host, up to the number of the channel (see `PORTS`). A kernel that
    `reaches_out` connects to them; others inherit listening sockets. `key` signs its messages. When it has ended,
    `exited` is set, `ending` describes the end for the agent, and `complaint` is the error of a failed start.
    """

    def __init__(self, number: int, folder: Path, *, reaches_out: bool) -> None:
        self.number = number
        self.reaches_out = reaches_out
        self.sockets = str(folder / f"k{number}")
        self.key = secrets.token_hex(16)
        self.exited = asyncio.Event()
        self.ending = "still running"
        self.complaint = ""

    def end(self, ending: str, complaint: str = "") -> None:
        """Record the kernel's end."""
        if not self.exited.is_set():
            self.ending, self.complaint = ending, complaint[-_COMPLAINT_CHARS:]
            self.exited.set()

    @contextlib.contextmanager
    def listeners(self) -> Iterator[dict[str, socket.socket]]:
        """Create the kernel's listening sockets, for the block to pass on; clients can connect at once."""
        with contextlib.ExitStack() as stack:
            listeners: dict[str, socket.socket] = {}
            for channel, number in {} if self.reaches_out else PORTS.items():
                listeners[channel] = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                listeners[channel].bind(f"{self.sockets}-{number}")
                listeners[channel].listen(8)
                listeners[channel].setblocking(False)
            yield listeners


class Control:
    """A connected control socket.

    The private `folder` is for kernels' sockets, which they connect to if they have `reach`; the runner can read `run`.
    """

    def __init__(self, connection: socket.socket, folder: Path, run: Path, reach: str = "") -> None:
        self.lost = asyncio.Event()
        self._connection = connection
        self._folder = folder
        self._run = run
        self._reach = reach
        self._kernel: Kernel | None = None
        self._numbers = 0
        self._failure = ""
        self._answer: asyncio.Future[dict[str, Any]] | None = None
        connection.setblocking(False)
        asyncio.get_running_loop().add_reader(connection, self._read)

    async def start_kernel(self) -> Kernel:
        """Replace the runner's kernel and all its processes by a new kernel.

        Raises `SandboxError` if the order can't be sent.
        """
        self._numbers += 1
        kernel = self._kernel = Kernel(self._numbers, self._folder, reaches_out=bool(self._reach))
        try:
            with kernel.listeners() as listeners:
                order = {"do": "start", "number": kernel.number, "key": kernel.key}
                await self._send(order, [listener.fileno() for listener in listeners.values()])
        except OSError as error:
            raise SandboxError(f"the Python kernel could not be started: {self._failure or error}") from error
        return kernel

    async def ask(self, order: dict[str, Any], seconds: float | None = None) -> dict[str, Any]:
        """Send an order and return the answer, within `seconds` (by default `_ANSWER_SECONDS`).

        Raises `SandboxError` if there is no answer; then the runner is unusable.
        """
        seconds = _ANSWER_SECONDS if seconds is None else seconds
        self._answer = asyncio.get_running_loop().create_future()
        try:
            await self._send(order)
            async with asyncio.timeout(seconds):
                return await self._answer
        except OSError as error:
            why = self._failure or str(error) or f"nothing within {seconds:g} s"
            raise SandboxError(f"the sandbox does not answer: {why}") from error
        finally:
            self._answer = None

    async def content(self, name: str) -> bytes | None:
        """The content of a file in ``out/``, up to `MOST_BYTES` and some more, which the runner sends to a socket.

        None if it doesn't exist. Raises `SandboxError` if there is no answer.
        """
        path = self._run / "kept"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.settimeout(_ANSWER_SECONDS)
            await in_thread(_bind, listener, path)
            listener.listen(1)
            try:
                answer = await self.ask({"do": "open", "name": name})
                return await in_thread(_take, listener) if answer.get("found") else None
            finally:
                await in_thread(path.unlink)

    def close(self) -> None:
        """Close the socket, which ends the runner."""
        self._lose()

    async def _send(self, order: dict[str, Any], descriptors: list[int] | None = None) -> None:
        if self.lost.is_set():
            raise OSError("it has ended")
        async with asyncio.timeout(_ANSWER_SECONDS):
            while True:
                try:
                    socket.send_fds(self._connection, [json.dumps(order).encode()], descriptors or [])
                except BlockingIOError:
                    await asyncio.sleep(0.01)
                else:
                    return

    def _read(self) -> None:
        try:
            packet = self._connection.recv(_PACKET_BYTES)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if not packet:
            self._lose()
            return
        try:
            answer = json.loads(packet)
            event = answer.get("is")
        except (ValueError, AttributeError, RecursionError):
            answer, event = {}, None
        if event in ("exited", "failed"):
            self._note_exit(answer)
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def _note_exit(self, answer: dict[str, Any]) -> None:
        kernel, text = self._kernel, str(answer.get("text", ""))
        if answer["is"] == "failed":  # the runner, which ends now
            self._failure = text
        elif kernel is not None and answer.get("number") == kernel.number:
            kernel.end(_ending(answer), text)

    def _lose(self) -> None:
        if self.lost.is_set():
            return
        asyncio.get_running_loop().remove_reader(self._connection)
        self._connection.close()
        self.lost.set()
        if self._kernel is not None:
            self._kernel.end("its sandbox has ended", self._failure)
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(OSError("it has ended"))


@contextlib.asynccontextmanager
async def listening(path: Path) -> AsyncIterator[socket.socket]:
    """Create the socket at `path`, to which one runner connects within the block.

    Raises `SandboxError` if it can't be created.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        try:
            await in_thread(_bind, listener, path)
        except OSError as error:
            raise SandboxError(f"can't create a control socket for a sandbox: {error}") from error
        listener.listen(1)
        listener.setblocking(False)
        yield listener


def _bind(listener: socket.socket, path: Path) -> None:
    listener.bind(str(path))
    path.chmod(0o777)  # the runner may have another user id; the parent folders are private


def _take(listener: socket.socket) -> bytes:
    """The data of the first connection, up to `MOST_BYTES` and some more, which have to be there in time."""
    end, content = time.monotonic() + _ANSWER_SECONDS, bytearray()
    try:
        with listener.accept()[0] as connection:
            while len(content) <= MOST_BYTES:
                connection.settimeout(max(0.001, end - time.monotonic()))
                if not (piece := connection.recv(_PIECE_BYTES)):
                    break
                content += piece
    except OSError as error:
        raise SandboxError(f"the sandbox does not send its file: {error}") from error
    return bytes(content)


def _ending(answer: dict[str, Any]) -> str:
    code = answer.get("code")
    if answer.get("oom"):
        return "out of memory"
    if not isinstance(code, int):
        return "for a reason that is not known"
    if -code not in set(signal.Signals):
        return f"exit status {code}" if answer.get("text") else f"os._exit or the like, with exit status {code}"
    name = signal.Signals(-code).name
    return f"killed by {name}, perhaps for want of memory" if name == "SIGKILL" else f"killed by {name}"


FILES_PER_CALL = 10
SESSION_BYTES = 64 << 20
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff/\\]{1,200}")


@dataclass
class Collected:
    """The new and changed files of one call."""

    files: list[OutputFile] = field(default_factory=list)
    left_out: int = 0  # entries of ``out/`` beyond the limits: links, too many or too large files, odd names


class Collector:
    """Collects new and changed files of one session."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self._left_out = 0
        self._room = SESSION_BYTES

    def forget(self) -> None:
        """Forget all files: ``out/`` is new and empty."""
        self._seen.clear()
        self._left_out = 0

    def within(self, figures: list[bytes]) -> list[bytes]:
        """The figures for which the session has room."""
        kept = []
        for figure in figures:
            if len(figure) <= self._room:
                self._room -= len(figure)
                kept.append(figure)
        return kept

    async def collect(self, control: Control) -> Collected:
        """The new files in ``out/``. Raises `SandboxError` if the sandbox does not answer."""
        collected = Collected()
        listing = await control.ask({"do": "list"})
        for name, size, version in _entries(listing.get("files")):
            if self._seen.get(name) == version:
                continue
            self._seen[name] = version
            content = None
            most = min(MOST_BYTES, self._room)
            if _is_fine(name) and size <= most and len(collected.files) < FILES_PER_CALL:
                content = await control.content(name)
            if content is None or len(content) > most:
                collected.left_out += 1
            else:
                self._room -= len(content)
                collected.files.append(OutputFile(name, content))
        beyond = listing.get("left_out")
        if isinstance(beyond, int) and beyond != self._left_out:
            collected.left_out += max(0, beyond - self._left_out)
            self._left_out = beyond
        return collected


def _entries(listed: Any) -> list[tuple[str, int, str]]:
    """Name, size and version of the files in a runner's listing; malformed entries are dropped."""
    rows = listed if isinstance(listed, list) else []
    return [
        (row[0], row[1], row[2])
        for row in rows
        if isinstance(row, list) and len(row) == 3 and [type(value) for value in row] == [str, int, str]
    ]


def _is_fine(name: str) -> bool:
    parts = name.split("/")
    return len(name) <= 200 and all(_NAME.fullmatch(part) and part not in (".", "..") for part in parts)
