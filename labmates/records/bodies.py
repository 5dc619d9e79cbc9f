"""Bodies: the long things of a run (messages, texts, pictures), each kept once and named by its number."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

Media = Literal["json", "text", "png", "bytes"]
Value = dict[str, Any] | list[Any] | str | bytes
"""The types of a body: JSON data, text, or bytes (of a PNG picture, or of any file)."""


_PNG = b"\x89PNG\r\n\x1a\n"
_TO_JSON = json.JSONEncoder(separators=(",", ":")).encode  # made once: that takes as long as encoding


MOST_PASSED = 100_000
"""So many values are known again after they were forgotten, at about 200 bytes each."""
_DICTIONARY_BYTES = 16 * 1024
"""The size of the dictionary, taken from the bodies before: messages repeat each other, and are short by themselves."""


@dataclass(frozen=True)
class Body:
    """One body as it is stored.

    All but pictures, which are so already, are compressed, with what stands in the bodies before as dictionary.

    Attributes
    ----------
    content
        The bytes that are stored, or those that are yet to be compressed.
    before
        The dictionary to compress with; None for what is so already.
    digest
        `content_digest` of what was kept; empty for a body that was read from a store.
    """

    number: int
    media: Media
    content: bytes
    before: bytes | None = None
    digest: bytes = b""

    @cached_property
    def data(self) -> bytes:
        """The bytes that are stored; compressed when first asked for, which is by whoever writes them."""
        return self.content if self.before is None else _compress(self.content, self.before)


class Unpacker:
    """Unpacks the stored bodies of a run, which have to come one after the other without a gap.

    Parameters
    ----------
    before
        What `before` was after the body that comes before the first one.
    """

    def __init__(self, before: bytes = b"") -> None:
        self.before = before

    def raw(self, body: Body) -> bytes:
        """The bytes of the next body."""
        raw = body.data if body.media == "png" else _decompress(body.data, self.before)
        self.before = _followed(self.before, body.media, raw)
        return raw

    def value(self, body: Body) -> Value:
        """The next body."""
        return _decode(body.media, self.raw(body))


class Bodies:
    """The bodies of one run. The same value gets the same number again.

    Parameters
    ----------
    stored
        Those that are there already, from the first on without a gap.
    """

    def __init__(self, stored: Iterable[Body] = ()) -> None:
        self._values: dict[int, Value] = {}
        # By content, not digest: a prompt keeps all of its messages again, and few of them are new.
        self._numbers: dict[tuple[Media, bytes], int] = {}
        self._passed: dict[bytes, int] | None = None  # by digest, once values are forgotten
        self._count = 0
        self._new: list[Body] = []
        unpacker = Unpacker()
        for body in stored:
            raw = unpacker.raw(body)
            self._take(body.number, (body.media, raw), _decode(body.media, raw))
        self._before = unpacker.before

    def keep(self, value: Value) -> int:
        """Keep `value` and return its number."""
        media, raw = content = _encode(value)
        if self._passed is not None:
            return self._pass(content, self._passed)
        if content not in self._numbers:
            self._add(content, content_digest(media, raw))
            self._take(self._count, content, value)
        return self._numbers[content]

    def forget(self) -> None:
        """Forget all values, from now on too: they can't be read any more, and each is known by its digest."""
        if self._passed is None:
            self._passed = {content_digest(*content): number for content, number in self._numbers.items()}
            self._values.clear()
            self._numbers.clear()

    def _pass(self, content: tuple[Media, bytes], passed: dict[bytes, int]) -> int:
        digest = content_digest(*content)
        number = passed.pop(digest, None) or self._add(content, digest)
        passed[digest] = number  # at the end: the first is the one that has not come for longest
        if len(passed) > MOST_PASSED:
            del passed[next(iter(passed))]
        return number

    def _add(self, content: tuple[Media, bytes], digest: bytes) -> int:
        media, raw = content
        self._count += 1
        self._new.append(Body(self._count, media, raw, None if media == "png" else self._before, digest))
        self._before = _followed(self._before, media, raw)
        return self._count

    def _take(self, number: int, content: tuple[Media, bytes], value: Value) -> None:
        self._count = number
        self._numbers[content] = number
        self._values[number] = value

    def __getitem__(self, number: int) -> Any:
        return self._values[number]

    def text(self, number: int) -> str:
        """The text that has this number."""
        value = self._values[number]
        if not isinstance(value, str):
            raise TypeError(f"body {number} is not text")
        return value

    def take_new(self) -> list[Body]:
        """The bodies kept since the last call, for writing them to the store."""
        new, self._new = self._new, []
        return new


def _followed(before: bytes, media: Media, raw: bytes) -> bytes:
    """The dictionary after a body."""
    return before if media == "png" else (before + raw)[-_DICTIONARY_BYTES:]


def _decompress(data: bytes, before: bytes) -> bytes:
    unpacker = zlib.decompressobj(zdict=before)  # ignored by texts stored without a dictionary
    return unpacker.decompress(data) + unpacker.flush()


def _compress(raw: bytes, before: bytes) -> bytes:
    # A window as small as there is to see: setting up the usual one takes longer than compressing a short text.
    window = min(15, max(9, (len(raw) + len(before)).bit_length()))
    memory = min(8, max(1, window - 6))
    packer = zlib.compressobj(wbits=window, memLevel=memory, zdict=before)
    return packer.compress(raw) + packer.flush()


def _decode(media: Media, raw: bytes) -> Value:
    if media in ("png", "bytes"):
        return raw
    text = raw.decode("utf-8")
    return text if media == "text" else json.loads(text)


def _encode(value: Value) -> tuple[Media, bytes]:
    if isinstance(value, bytes):
        return ("png" if value.startswith(_PNG) else "bytes"), value
    if isinstance(value, str):
        # Lone surrogates can't be stored as UTF-8; hostile output holds them.
        return "text", value.encode("utf-8", "replace")
    # In the order of its keys: what is told of a tool call's arguments, and the prompt that repeats them, depend on it.
    return "json", _TO_JSON(value).encode()


def content_digest(media: str, raw: bytes) -> bytes:
    """The SHA-256 of what a body holds, whatever it is compressed to."""
    return hashlib.sha256(media.encode() + b"\0" + raw).digest()
