"""Output of the command line: results on standard output, everything else on standard error."""

from __future__ import annotations

import errno
import io
import math
import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO

from labmates.util.safe_text import clean as clean

if TYPE_CHECKING:
    from rich.console import Console


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writes to a full or broken disk."""

TOLD_SECONDS = 30.0
"""Seconds between lines on work that goes on."""
_PLAIN: Mapping[str, Any] = {"highlight": False, "emoji": False, "markup": False}
"""No markup in texts: they may come from a model."""


def make_streams_safe() -> None:
    """Keep output from failing on closed streams, and on encodings smaller than UTF-8."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - open until the end
        elif isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="backslashreplace")


@cache
def out() -> Console:
    """The console of standard output: as wide as the terminal or COLUMNS, else 80.

    It raises `BrokenPipeError` when nobody reads on.
    """
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Output(**_PLAIN)


def discard(stream: TextIO) -> None:
    """Let the rest of a stream that nobody reads vanish."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(text: str, style: str | None = None) -> None:
    """Write a text to standard output, wrapped between words: no name or path is cut."""
    from labmates.cli.grid import wrapped

    out().print("\n".join(wrapped(clean(text), out().width)), style=style, soft_wrap=True)


def quote(text: str) -> None:
    """Write a recorded text to standard output; only a terminal wraps it."""
    out().print(clean(text), soft_wrap=not out().is_terminal)


@cache
def err() -> Console:
    """The console of standard error, on which work goes on when nobody reads."""
    from rich.console import Console

    class Errors(Console):
        def on_broken_pipe(self) -> None:
            discard(sys.stderr)

        def status(self, status: Any, **settings: Any) -> Any:
            return super().status(status, **settings) if self.is_terminal else Told(status)

    return Errors(stderr=True, **_PLAIN, soft_wrap=not sys.stderr.isatty())


class Told:
    """The status of long work without a terminal: its latest text, as a line every half minute."""

    def __init__(self, text: str | Callable[[], str]) -> None:
        self._text = text
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def update(self, text: str | Callable[[], str]) -> None:
        """Change the text."""
        self._text = text

    def start(self) -> None:
        """Begin to tell."""
        self._thread.start()

    def stop(self) -> None:
        """Tell no more."""
        self._ended.set()
        self._thread.join()

    def __enter__(self) -> Told:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _tell(self) -> None:
        while not self._ended.wait(TOLD_SECONDS):
            with suppress(OSError):  # as of a full disk
                notify(self._text if isinstance(self._text, str) else self._text())


def print_json(data: dict[str, Any]) -> None:
    """Write one JSON object as one line to standard output; non-finite numbers become null."""
    import json  # `labmates --help` does without

    sys.stdout.write(json.dumps(_in_json(data), ensure_ascii=True, allow_nan=False) + "\n")
    sys.stdout.flush()


def _in_json(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _in_json(member) for name, member in value.items()}
    return list(map(_in_json, value)) if isinstance(value, list | tuple) else value


def notify(text: str) -> None:
    """Show a line to the user, on standard error."""
    err().print(clean(text))


def complain(text: str) -> None:
    """Write an error message to standard error."""
    sys.stderr.write(f"labmates: {clean(text)}\n")
