"""Servers of GGUF files: child processes on loopback, shared by the hubs of this process."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from labmates.errors import UsageError
from labmates.models.error_bodies import one_line
from labmates.models.failures import AttemptError, Failure
from labmates.models.servers import Weights

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from labmates.models.sending import Request, Send

_SERVERS: dict[Weights, LlamaServer] = {}
_LOCK = threading.Lock()
# The log shares the pipe, and a part of its line may stand before.
_ADDRESS: Final = re.compile(rb"listening (http\S+)$")
_STAMP: Final = re.compile(r"^[\d.]+ [A-Z] ")
_NO_MEMORY: Final = re.compile(r"insufficient memory|failed to allocate|bad_alloc|out of memory", re.IGNORECASE)


def acquire(weights: Weights) -> LlamaServer:
    """The server of a file, which its first call starts; the last user to release it ends it."""
    with _LOCK:
        server = _SERVERS.setdefault(weights, LlamaServer(weights))
        server.users += 1
        return server


class LlamaServer:
    """The server of a file: a child process that also ends when this process does."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.users = 0
        self.address = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: deque[str] = deque(maxlen=200)
        self._is_stopped = False
        self._starting = threading.Lock()
        self._changing = threading.Lock()

    def release(self) -> None:
        """Tell that a user needs the server no longer."""
        with _LOCK:
            self.users -= 1
            if self.users:
                return
            del _SERVERS[self.weights]
        self.stop()

    def sender(self, send: Send, point_to: Callable[[str], None]) -> Send:
        """The sender `send`, which starts the server before the call, also after the server's end."""

        async def send_to_server(request: Request, arguments: dict[str, Any]) -> BaseMessage:
            if not self.is_listening():
                await asyncio.to_thread(self.start)
            point_to(f"{self.address}/v1")
            try:
                return await send(request, arguments)
            except AttemptError as error:
                if error.failure.status is None and (reason := self.end()):
                    raise AttemptError(Failure("retry", reason)) from None
                raise

        return send_to_server

    def is_listening(self) -> bool:
        """Whether the server is ready for calls."""
        return bool(self.address) and self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server, unless it runs, and wait until it is ready.

        Raises `UsageError` if it ends before that, with its reasons.
        """
        with self._starting:
            if self.is_listening():
                return
            self.address = ""
            self._lines.clear()
            with self._changing:
                if self._is_stopped:
                    raise UsageError(f"the server of {self.weights.file} was stopped before its first call")
                self._process = process = self._spawn()
            assert process.stdout is not None
            for line in process.stdout:
                if found := _ADDRESS.search(line):
                    self.address = found[1].decode()
                    threading.Thread(target=self._read_rest, args=(process,), daemon=True).start()
                    return
                self._note(line)
            process.stdout.close()
            process.wait()
            raise UsageError(f"can't serve {self.weights.file}: {self._reasons()}")

    def end(self) -> str:
        """The end of a server that was not stopped, with its reasons; empty while it runs."""
        process = self._process
        if process is None or self._is_stopped:
            return ""
        try:
            process.wait(0.5)  # a broken connection is seen before the process has ended
        except subprocess.TimeoutExpired:
            return ""
        return f"the server of {self.weights.file.name} ended: {self._reasons()}"

    def stop(self) -> None:
        """End the server."""
        with self._changing:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def _spawn(self) -> subprocess.Popen[bytes]:
        weights = self.weights
        numbers = map(str, (weights.context, weights.slots, weights.threads, os.getpid()))
        child = Path(__file__).with_name("child.py")
        return subprocess.Popen(  # noqa: S603 - our own program
            # Without the file's folder among the imported ones, whose modules have common names.
            [sys.executable, "-P", str(child), str(weights.file), weights.file.stem, *numbers],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C ends runs in order; the server ends after them
        )

    def _read_rest(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self._note(line)

    def _note(self, line: bytes) -> None:
        self._lines.append(one_line(line.decode("utf-8", "replace"), 300))

    def _reasons(self) -> str:
        """What a server that ended has said, and what to do."""
        assert self._process is not None
        lines = list(self._lines)
        faults = dict.fromkeys(_STAMP.sub("", line) for line in lines if " E " in line[:20])
        said = "; ".join([*faults][:4]) or "; ".join(_STAMP.sub("", line) for line in lines[-4:])
        code = self._process.returncode
        how = f"{signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        text = f"{said} ({how})" if said else how
        if code == -signal.SIGKILL or _NO_MEMORY.search(text):
            text += "; most likely out of memory: set a smaller context (?context=4096), or take a smaller model"
        return text
