"""Finding JSON objects in any text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

MOST_FAILURES: Final = 300
"""After so many braces that open no JSON object the rest is not searched: a hostile text could make it take minutes."""
PLAIN: Final = json.JSONDecoder()


class RepeatedKeyError(Exception):
    """A JSON object has the same key twice: which value was meant can't be known."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedKeyError("a key of the JSON object is given twice")
    return found


ONCE: Final = json.JSONDecoder(object_pairs_hook=_once)
"""Raises `RepeatedKeyError` where a key is given twice."""


@dataclass(frozen=True)
class Found:
    """A JSON object and where it stands."""

    begin: int
    end: int
    value: dict[str, Any]


def find_objects(text: str, decoder: json.JSONDecoder = PLAIN) -> Iterator[Found]:
    """Yield the JSON objects in `text` from front to back, those within another one left out."""
    failures = 0
    at = text.find("{")
    while at >= 0 and failures < MOST_FAILURES:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            failures += 1
            end = at + 1
        else:
            yield Found(at, end, value)
        at = text.find("{", end)


def last_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in `text` that ends last, also one whose braces LaTeX has escaped; None without any.

    Raises
    ------
    RepeatedKeyError
        If an object has the same key twice.
    """
    plain = text.replace("\\{", " {").replace("\\}", " }")
    found = [*find_objects(text, ONCE), *(find_objects(plain, ONCE) if plain != text else ())]
    return max(found, key=lambda one: one.end).value if found else None
