"""A cell's printed text: standard output and standard error in one stream, in the order of writing."""

from __future__ import annotations

import ctypes
import os
import select
import threading
from codecs import getincrementaldecoder
from io import TextIOBase
from typing import Any, Self

from jupyter_client.session import Session, extract_header

from .output import BUDGET, encodable

_SEND_SECONDS = 0.02  # text that a dying kernel has not sent is lost
_FLUSH_SECONDS = 10.0
_PIPE_BYTES = 1 << 20  # more than a pipe holds, so that one read empties it
_UNBUFFERED = 2


class Output(TextIOBase):
    """The one stream that ``sys.stdout``, ``sys.stderr`` and the descriptors 1 and 2 of all processes write to.

    Compiled code and child processes write to a pipe. It is emptied before each text of Python code is added, and at
    the end of a cell, so that the order is that of the writes. Every use returns the same stream.
    """

    encoding = "utf-8"
    errors = "replace"
    _only: Self | None = None

    def __new__(cls, *_arguments: Any, **_options: Any) -> Self:
        """The stream of this process."""
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __init__(self, session: Session, thread: Any, name: str, echo: object = None) -> None:
        del echo
        if name != "stdout":  # standard error, which comes second
            return
        self.name = name
        self._session, self._thread = session, thread
        self._process = os.getpid()
        self._parent: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._unsent: list[str] = []
        self._is_due = self._is_sending = False
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._pipe, end = os.pipe()
        os.set_blocking(self._pipe, False)
        for descriptor in (1, 2):
            os.dup2(end, descriptor)
        os.close(end)
        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, _UNBUFFERED, 0)
        threading.Thread(target=self._watch, daemon=True).start()

    def write(self, text: str) -> int:
        """Add as much of `text` as the budget of the cell allows."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if os.getpid() != self._process:  # a fork: its threads are gone, and a lock of theirs may be held
            _write_all(encodable(text).encode())
            return len(text)
        with self._lock:
            self._empty_pipe()
            self._add(BUDGET.take(text))
        return len(text)

    def write_tail(self) -> None:
        """Add the end of what was too much."""
        with self._lock:
            self._empty_pipe()
            self._add(BUDGET.tail())

    def flush(self) -> None:
        """Send what was written, and wait until it is sent."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._empty_pipe()
            if not (self._unsent or self._is_sending):
                return
        if threading.current_thread() is self._thread.thread:
            self._send()
            return
        sent = threading.Event()
        self._thread.schedule(self._send)
        self._thread.schedule(sent.set)
        sent.wait(_FLUSH_SECONDS)

    def set_parent(self, parent: dict[str, Any]) -> None:
        """Begin the output of a request; what was written since the last one belongs to that."""
        self.flush()
        self._parent = extract_header(parent)

    def fileno(self) -> int:
        """The descriptor, for child processes."""
        return 1

    def writable(self) -> bool:
        """True."""
        return True

    def _watch(self) -> None:
        """Empty the pipe while no text of Python code is added: it holds little, and writers to a full one wait."""
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        while True:
            poll.poll()
            with self._lock:
                self._empty_pipe()

    def _empty_pipe(self) -> None:
        try:
            data = os.read(self._pipe, _PIPE_BYTES)
        except BlockingIOError:
            return
        self._add(BUDGET.take(self._decode(data)))

    def _add(self, text: str) -> None:
        if text:
            self._unsent.append(text)
        if self._unsent and not self._is_due:
            self._is_due = True
            self._thread.schedule(lambda: self._thread.io_loop.call_later(_SEND_SECONDS, self._send))

    def _send(self) -> None:
        """Send what was added; called in the thread of the socket."""
        with self._lock:
            text, self._unsent, self._is_due = "".join(self._unsent), [], False
            self._is_sending = bool(text)
            parent = self._parent
        if text:
            message = self._session.msg("stream", {"name": self.name, "text": text}, parent=parent)
            # By the socket itself: by its thread it would be queued behind what was queued meanwhile, as a cell's end.
            self._session.send(self._thread.socket, message, ident=b"stream.stdout")
            self._is_sending = False


def _write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
