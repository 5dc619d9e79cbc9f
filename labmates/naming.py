"""What a model may be called for short."""

from __future__ import annotations

import re
from collections.abc import Iterator


def short_names(name: str) -> Iterator[str]:
    """Yield a model's name in small letters, whole and then without one part before it after the other.

    Examples
    --------
    >>> list(short_names("openai:Qwen/Qwen3-4B"))
    ['openai:qwen/qwen3-4b', 'qwen/qwen3-4b', 'qwen3-4b']
    """
    lower = name.lower()
    yield lower
    for mark in re.finditer("[:/]", lower):
        yield lower[mark.end() :]
