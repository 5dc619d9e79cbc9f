"""What arrived of a JSON object that was cut off while a model wrote it."""

from __future__ import annotations

import json
import re
from typing import Any

from labmates.models.safe import UnsafeValueError, safe_value

_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"\s*")
_BROKEN_END = re.compile(r"(?:[^\\]|^)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)\Z")
"""An escape sequence that is not whole, at the end of a text."""

_HALF_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


def read_partial(text: str) -> dict[str, Any]:
    """Return the members of a cut JSON object as far as they arrived.

    The last one may be a text that breaks off; numbers, lists and objects that are not whole are left out.

    >>> read_partial('{"name": "final_paper", "content": "## Abstr')
    {'name': 'final_paper', 'content': '## Abstr'}
    """
    members: dict[str, Any] = {}
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        return members
    while True:
        at = _skip(text, at + 1)
        try:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, at)
            if not isinstance(key, str) or text[at : at + 1] != ":":
                return members
            at = _skip(text, at + 1)
            value, end = _value(text, at)
            members[key] = safe_value(value)
        except (ValueError, RecursionError, UnsafeValueError):
            return members
        at = _skip(text, end)
        if text[at : at + 1] != ",":
            return members


def _value(text: str, at: int) -> tuple[Any, int]:
    """Return the value that begins at `at` and where it ends.

    Raises
    ------
    ValueError
        If it is neither whole nor a text.
    """
    try:
        value, end = _DECODER.raw_decode(text, at)
    except ValueError:
        if text[at : at + 1] != '"':
            raise
        rest = text[at + 1 :]
        if broken := _BROKEN_END.search(rest):
            rest = rest[: broken.start(1)]
        return _DECODER.raw_decode(f'"{_HALF_PAIR.sub("", rest)}"')[0], len(text)
    if end == len(text) and not isinstance(value, str):
        raise ValueError("a number may go on")
    return value, end


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()
