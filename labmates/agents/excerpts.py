"""Excerpts of texts that are too long to be shown whole; each says how much it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Excerpt = Literal["ends", "first"]
"""The shown part of a long text: beginning and end in equal parts, or the beginning alone."""


LEFT_OUT = "characters left out"
"""Follows the number of omitted characters in an excerpt."""


def excerpt(text: str, most: int, keep: Excerpt = "ends") -> str:
    """At most `most` characters of a text, with a line that counts the omitted ones."""
    if len(text) <= most:
        return text
    mark = f"[{len(text) - most} {LEFT_OUT}]"
    if keep == "first":
        return f"{text[:most]}\n{mark}"
    tail = most // 2
    return f"{text[: most - tail]}\n{mark}\n{text[len(text) - tail :]}"


def excerpts(texts: Sequence[str], most: int) -> str:
    """Different texts one below the other, with at most `most` of their characters in all.

    Short texts stay whole. What they leave of `most` is shared equally by the long ones, each of which keeps as much of
    its beginning as of its end; so no text, however long, crowds out another.
    """
    texts = list(dict.fromkeys(texts))
    left, share = most, most
    for place, length in enumerate(sorted(map(len, texts))):
        share = left // (len(texts) - place)
        if length > share:
            break
        left -= length
    else:
        share = most
    return "\n".join(excerpt(text, share) for text in texts)


def page(text: str, offset: int, most: int) -> str:
    """At most `most` characters of a text from `offset` on; if more follow, a line gives the next offset."""
    end = offset + most
    shown = text[offset:end]
    if end < len(text):
        shown += f"\n[characters {offset} to {end} of {len(text)}; to read on, give offset={end}]"
    return shown
