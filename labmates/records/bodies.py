"""Bodies: the long contents of a run (messages, texts, pictures), each stored once and referred to by number."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, Literal

from labmates.errors import LabmatesError

Media = Literal["json", "text", "png", "bytes"]
Value = dict[str, Any] | list[Any] | str | bytes
"""A body: JSON data, text, or bytes (of a PNG picture or any file)."""


_PNG = b"\x89PNG\r\n\x1a\n"
_TO_JSON = json.JSONEncoder(separators=(",", ":")).encode  # built once: it takes as long as encoding


MOST_PASSED = 100_000
"""Maximum number of forgotten values with a known digest, at about 200 bytes each."""
_DICTIONARY_BYTES = 16 * 1024
"""Size of the compression dictionary, made of earlier bodies: messages are short, but repetitive."""


_STRETCH = 64
"""Number of bodies that are unpacked together: each needs those before it."""
_MOST_STRETCHES = 8
"""Most unpacked stretches in memory."""


@dataclass(frozen=True)
class Body:
    """A stored body, compressed with the previous bodies as dictionary; pictures are compressed already.

    `content` are the stored bytes, or uncompressed bytes if there is a dictionary `before`. `digest` is the
    `content_digest`; empty for a body from a store.
    """

    number: int
    media: Media
    content: bytes
    before: bytes | None = None
    digest: bytes = b""

    @cached_property
    def data(self) -> bytes:
        """The stored bytes; compressed at first use, when they are written."""
        return self.content if self.before is None else _compress(self.content, self.before)


class UnreadableBodyError(LabmatesError, ValueError):
    """A stored text or file can't be unpacked: the store is damaged."""


class Unpacker:
    """Unpacks the stored bodies of a run, in order; to start later, pass an earlier unpacker's `before`."""

    def __init__(self, before: bytes = b"") -> None:
        self.before = before

    def raw(self, body: Body) -> bytes:
        """The bytes of the next body; raises `UnreadableBodyError`."""
        try:
            raw = body.data if body.media == "png" else _decompress(body.data, self.before)
        except zlib.error as error:
            raise _unreadable(body, error) from error
        self.before = _followed(self.before, body.media, raw)
        return raw

    def value(self, body: Body) -> Value:
        """The next body; raises `UnreadableBodyError`."""
        return _decoded(body, self.raw(body))


class StoredBodies:
    """The stored bodies of a run, unpacked by stretches when they are read; the last stretches stay in memory.

    `fetch` gives the bodies from a number up to, and without, another one.
    """

    def __init__(self, fetch: Callable[[int, int], Iterable[Body]]) -> None:
        self._fetch = fetch
        self._marks = [b""]  # what the first body of each stretch follows
        self._stretches: dict[int, dict[int, Value]] = {}
        self._reading = Lock()

    def values(self, numbers: Iterable[int]) -> dict[int, Value]:
        """The bodies with these numbers, except missing ones; raises `UnreadableBodyError`."""
        values: dict[int, Value] = {}
        for number in sorted(set(numbers)):
            stretch = self._stretch((number - 1) // _STRETCH) if number > 0 else {}
            if number in stretch:
                values[number] = stretch[number]
        return values

    def get(self, number: int, default: Any = None) -> Any:
        """The body with this number; the default if it is missing."""
        return self.values([number]).get(number, default)

    def _stretch(self, place: int) -> dict[int, Value]:
        with self._reading:  # metrics are computed in a thread of their own
            while len(self._marks) <= place:
                unpacker = Unpacker(self._marks[-1])
                if not [unpacker.raw(body) for body in self._packed(len(self._marks) - 1)]:
                    return {}  # it is beyond the last body
                self._marks.append(unpacker.before)
            values = self._stretches.pop(place, None)
            if values is None:
                unpacker = Unpacker(self._marks[place])
                values = {body.number: unpacker.value(body) for body in self._packed(place)}
            self._stretches[place] = values  # at the end: the first is the least recently used
            if len(self._stretches) > _MOST_STRETCHES:
                del self._stretches[next(iter(self._stretches))]
        return values

    def _packed(self, place: int) -> Iterable[Body]:
        return self._fetch(place * _STRETCH + 1, (place + 1) * _STRETCH + 1)


class Bodies:
    """The bodies of one run, each value stored once; `stored` are existing bodies, from the first without a gap."""

    def __init__(self, stored: Iterable[Body] = ()) -> None:
        self._stored: list[Body] = []
        self._past = StoredBodies(lambda first, end: self._stored[first - 1 : end - 1])
        self._values: dict[int, Value] = {}  # the bodies added since
        self._numbers: dict[bytes, int] = {}  # by digest; the least recently added first
        self._forgets = False
        self._count = 0
        self._new: list[Body] = []
        unpacker = Unpacker()
        for body in stored:
            if body.number != len(self._stored) + 1:
                raise _unreadable(body, ValueError(f"that with number {len(self._stored) + 1} is missing"))
            self._numbers[content_digest(body.media, unpacker.raw(body))] = self._count = body.number
            self._stored.append(body)
        self._before = unpacker.before

    def keep(self, value: Value) -> int:
        """Add `value` and return its number."""
        media, raw = _encode(value)
        digest = content_digest(media, raw)
        number = self._numbers.pop(digest, None)
        if number is None:
            number = self._add(media, raw, digest)
            if not self._forgets:
                self._values[number] = value
        self._numbers[digest] = number
        if self._forgets and len(self._numbers) > MOST_PASSED:
            del self._numbers[next(iter(self._numbers))]
        return number

    def forget(self) -> None:
        """Forget all values, now and in future: they become unreadable, and are identified by digest."""
        self._forgets = True
        self._past = StoredBodies(lambda *_: ())
        self._stored.clear()
        self._values.clear()

    def _add(self, media: Media, raw: bytes, digest: bytes) -> int:
        self._count += 1
        self._new.append(Body(self._count, media, raw, None if media == "png" else self._before, digest))
        self._before = _followed(self._before, media, raw)
        return self._count

    def __getitem__(self, number: int) -> Any:
        return self._values[number] if number in self._values else self._past.values([number])[number]

    def get(self, number: int, default: Any = None) -> Any:
        """The body with this number; the default if it is missing."""
        return self._values[number] if number in self._values else self._past.get(number, default)

    def text(self, number: int) -> str:
        """The text that has this number."""
        value = self[number]
        if not isinstance(value, str):
            raise TypeError(f"body {number} is not text")
        return value

    def take_new(self) -> list[Body]:
        """The bodies added since the last call, for writing to the store."""
        new, self._new = self._new, []
        return new


def _followed(before: bytes, media: Media, raw: bytes) -> bytes:
    return before if media == "png" else (before + raw)[-_DICTIONARY_BYTES:]


def _decompress(data: bytes, before: bytes) -> bytes:
    unpacker = zlib.decompressobj(zdict=before)  # ignored by texts stored without a dictionary
    raw = unpacker.decompress(data) + unpacker.flush()
    if not unpacker.eof or unpacker.unused_data:
        raise zlib.error("it is cut, or has bytes after its end")
    return raw


def _unreadable(body: Body, error: Exception) -> UnreadableBodyError:
    return UnreadableBodyError(
        f"its text or file {body.number} can't be read ({error}): the store is damaged; take the run from a copy "
        "(labmates store copy)"
    )


def _compress(raw: bytes, before: bytes) -> bytes:
    # A window of the size of the text: setting up the default takes longer than compressing a short text.
    window = min(15, max(9, (len(raw) + len(before)).bit_length()))
    memory = min(8, max(1, window - 6))
    packer = zlib.compressobj(wbits=window, memLevel=memory, zdict=before)
    return packer.compress(raw) + packer.flush()


def _decoded(body: Body, raw: bytes) -> Value:
    if body.media in ("png", "bytes"):
        return raw
    try:
        text = raw.decode("utf-8")
        return text if body.media == "text" else json.loads(text)
    except ValueError as error:
        raise _unreadable(body, error) from error


def _encode(value: Value) -> tuple[Media, bytes]:
    if isinstance(value, bytes):
        return ("png" if value.startswith(_PNG) else "bytes"), value
    if isinstance(value, str):
        # Lone surrogates can't be stored as UTF-8; hostile output holds them.
        return "text", value.encode("utf-8", "replace")
    # The order of keys matters for tool calls' arguments and the prompts that repeat them.
    return "json", _TO_JSON(value).encode()


def content_digest(media: str, raw: bytes) -> bytes:
    """The SHA-256 of a body's uncompressed content."""
    return hashlib.sha256(media.encode() + b"\0" + raw).digest()
