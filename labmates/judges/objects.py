"""Finding JSON objects in any text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

MOST_FAILURES: Final = 300
"""After so many braces that open no JSON object the rest is not searched: a hostile text could make it take minutes."""
PLAIN: Final = json.JSONDecoder()


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
