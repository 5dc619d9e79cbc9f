"""A cell's text for agents: head and tail in plain characters."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder

HEAD_CHARS = 6_000
TAIL_CHARS = 2_000
PRINTED_HEAD_CHARS = 40_000
PRINTED_TAIL_CHARS = 19_900

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` without terminal escapes and control characters.

    The result can be printed, encoded as UTF-8 and stored in any database. Hostile code, or code that prints bytes,
    could otherwise control a terminal or break later writes (NUL bytes, lone surrogates).
    """
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


class HeadTail:
    """Text of any length that arrives in pieces; only `head` and `tail` characters at its ends are stored."""

    def __init__(self, head: int = HEAD_CHARS, tail: int = TAIL_CHARS) -> None:
        self._room = head
        self._head: list[str] = []
        self._tail_chars = tail
        self._tail = ""
        self._dropped = 0

    def add(self, text: str) -> None:
        """Append `text`."""
        head, rest = text[: self._room], text[self._room :]
        if head:
            self._head.append(head)
            self._room -= len(head)
        if rest:
            joined = self._tail + rest
            cut = max(0, len(joined) - self._tail_chars)
            self._tail = joined[cut:]
            self._dropped += cut

    def finish(self, dropped_before: int = 0) -> tuple[str, int]:
        """The clean text, with a line for omitted characters, and their number; `dropped_before` were never added."""
        head, tail = clean("".join(self._head)), clean(self._tail)
        dropped = self._dropped + dropped_before
        if not dropped:
            return head + tail, 0
        return f"{head}\n[... {dropped:,} characters left out ...]\n{tail}", dropped


class Printed(HeadTail):
    """The output of a program on one stream: its first `head` and last `tail` characters."""

    def __init__(self, head: int = PRINTED_HEAD_CHARS, tail: int = PRINTED_TAIL_CHARS) -> None:
        super().__init__(head, tail)
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def write(self, data: bytes) -> None:
        """Append UTF-8 bytes; invalid ones are replaced."""
        self.add(self._decoder.decode(data))

    def __str__(self) -> str:
        return self.finish()[0]
