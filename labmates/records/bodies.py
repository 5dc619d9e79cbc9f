"""Bodies: the long things of a run (messages, texts, pictures), each kept once and named by its number."""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass
from typing import Any, Literal

Media = Literal["json", "text", "png", "bytes"]
Value = dict[str, Any] | list[Any] | str | bytes
"""What a body can be: JSON data, text, or bytes (of a PNG picture, or of any file)."""


_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Body:
    """One body as it is stored: compressed, but for pictures, which are so already."""

    number: int
    media: Media
    data: bytes


class Bodies:
    """The bodies of one run. The same value gets the same number again."""

    def __init__(self, stored: list[Body] | None = None) -> None:
        self._values: dict[int, Value] = {}
        self._numbers: dict[bytes, int] = {}
        self._new: list[Body] = []
        for body in stored or []:
            self._values[body.number] = unpack(body)
            self._numbers[_digest(body.media, _raw(body))] = body.number

    def keep(self, value: Value) -> int:
        """Keep `value` and return its number."""
        media, raw = _encode(value)
        digest = _digest(media, raw)
        if digest not in self._numbers:
            number = len(self._numbers) + 1
            self._numbers[digest] = number
            self._values[number] = value
            self._new.append(Body(number, media, raw if media == "png" else _compress(raw)))
        return self._numbers[digest]

    def __getitem__(self, number: int) -> Any:
        return self._values[number]

    def text(self, number: int) -> str:
        """Return the text that has this number."""
        value = self._values[number]
        if not isinstance(value, str):
            raise TypeError(f"body {number} is no text")
        return value

    def take_new(self) -> list[Body]:
        """Return the bodies kept since the last call, for writing them to the store."""
        new, self._new = self._new, []
        return new


def unpack(body: Body) -> Value:
    """Return the value of a stored body."""
    if body.media in ("png", "bytes"):
        return _raw(body)
    raw = _raw(body).decode("utf-8")
    return raw if body.media == "text" else json.loads(raw)


def _raw(body: Body) -> bytes:
    return body.data if body.media == "png" else zlib.decompress(body.data)


def _compress(raw: bytes) -> bytes:
    # A window as small as the body: setting up the usual one takes longer than compressing a short text.
    window = min(15, max(9, len(raw).bit_length()))
    packer = zlib.compressobj(wbits=window, memLevel=min(8, max(1, window - 6)))
    return packer.compress(raw) + packer.flush()


def _encode(value: Value) -> tuple[Media, bytes]:
    if isinstance(value, bytes):
        return ("png" if value.startswith(_PNG) else "bytes"), value
    if isinstance(value, str):
        # Lone surrogates can't be stored as UTF-8; hostile output holds them.
        return "text", value.encode("utf-8", "replace")
    # In the order of its keys: what is told of a tool call's arguments, and the prompt that repeats them, depend on it.
    return "json", json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def _digest(media: Media, raw: bytes) -> bytes:
    return hashlib.blake2b(media.encode() + b"\0" + raw, digest_size=16).digest()
