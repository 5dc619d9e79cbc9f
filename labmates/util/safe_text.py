"""Text that is safe to show: models' replies must not control a terminal or an editor."""

from __future__ import annotations

import math
import re
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


PLAIN_LETTERS = "letters (A-Z and a-z, no accents)"


def clean(text: str) -> str:
    """Text without control characters."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters (except tab, line feed and carriage return) and surrogates."""

SURROGATE = re.compile("[\ud800-\udfff]")
MAX_DEPTH = 64
"""Maximum nesting of a value: far beyond any tool's arguments, far below the limits of JSON and msgpack encoders."""

MAX_INTEGER = 2**63
"""Larger integers don't fit a graph's checkpoint (msgpack) or a database column."""


class UnsafeValueError(ValueError):
    """A value that can't be stored as JSON: not finite, too large or too deeply nested."""


def safe_text(text: str) -> str:
    """`text` with U+FFFD in place of unsafe characters.

    First, split surrogate pairs are joined: a streamed reply may cut an emoji in two.
    """
    if UNSAFE.search(text) is None:
        return text
    if SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return UNSAFE.sub("\ufffd", text)


def safe_value(value: Any, depth: int = 0) -> Any:
    """A JSON value (from ``json.loads``) with all its texts made safe.

    Raises `UnsafeValueError` if the value holds a non-finite number or an integer beyond 64 bits, is nested deeper than
    64 levels, or is not JSON.
    """
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, int):
        if not -MAX_INTEGER <= value < MAX_INTEGER:
            raise UnsafeValueError("an integer of more than 64 bits")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UnsafeValueError("a non-finite number")
        return value
    if value is None:
        return value
    if depth >= MAX_DEPTH:
        raise UnsafeValueError(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return {safe_text(str(key)): safe_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [safe_value(item, depth + 1) for item in value]
    raise UnsafeValueError(f"not a JSON value: {type(value).__name__}")
