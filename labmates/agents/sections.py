"""Parts of texts: Markdown sections, continuation of cut texts, excerpts of long texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
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

    Short texts stay whole. The rest of `most` is shared equally by the long ones, which keep equal parts of their
    beginning and end. So no long text crowds out another.
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
    """At most `most` characters of a text from `offset`, with a line that gives the next offset if more follow."""
    end = offset + most
    shown = text[offset:end]
    if end < len(text):
        shown += f"\n[characters {offset} to {end} of {len(text)}; to read on, give offset={end}]"
    return shown


_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_BLOCK = re.compile(r"#{1,6} |`{3}|~{3}")
_LEAST_REPEATED, _MOST_REPEATED = 20, 400


@dataclass(frozen=True)
class Section:
    """A heading of level 1 to 6 with the text under it, including deeper sections.

    `begin` and `end` are positions in the text, in characters; `begin` is that of the heading.
    """

    title: str
    level: int
    begin: int
    end: int


def sections_of(text: str) -> list[Section]:
    """Sections of a Markdown text in order; headings within fenced blocks do not count."""
    headings: list[tuple[str, int, int]] = []
    fence = ""
    at = 0
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if opened := _FENCE.match(bare):
            if not fence:
                fence = opened[1]
            elif opened[1].startswith(fence) and not bare.strip().strip(fence[0]):
                fence = ""
        elif not fence and (heading := _HEADING.fullmatch(bare)):
            headings.append((heading[2], len(heading[1]), at))
        at += len(line)
    return [
        Section(title, level, begin, next((b for _, deep, b in headings[i + 1 :] if deep <= level), len(text)))
        for i, (title, level, begin) in enumerate(headings)
    ]


def named_sections(text: str, heading: str) -> list[Section]:
    """Sections with this heading; level, case and emphasis are ignored."""
    return [section for section in sections_of(text) if _plain(section.title) == _plain(heading)]


def with_section(text: str, section: Section, content: str) -> str:
    """`text` with the text under the heading of `section` replaced by `content`.

    A `content` that begins with the section's own heading replaces the heading, too.
    """
    headed = sections_of(content)
    if headed and not content[: headed[0].begin].strip() and _plain(headed[0].title) == _plain(section.title):
        whole = content.strip()
    else:
        head = text[section.begin : section.end].splitlines()[0]
        whole = f"{head}\n{content.strip()}"
    rest = text[section.end :]
    return f"{text[: section.begin]}{whole}\n\n{rest}" if rest else f"{text[: section.begin]}{whole}\n"


def continued(text: str, piece: str, *, cut: bool) -> str:
    """`text` with `piece` after it.

    Parameters
    ----------
    cut
        Whether `text` is incomplete, so that `piece` continues it; a repeated overlap is removed. Otherwise `piece`
        begins a new paragraph.
    """
    if not cut:
        return f"{text.rstrip()}\n\n{piece.strip()}"
    most = min(len(text), len(piece), _MOST_REPEATED)
    repeated = next((n for n in range(most, _LEAST_REPEATED - 1, -1) if text.endswith(piece[:n])), 0)
    if not repeated and _BLOCK.match(piece) and not text.endswith("\n"):
        return f"{text}\n\n{piece}"
    return text + piece[repeated:]


def _plain(heading: str) -> str:
    return " ".join(heading.strip("#*_`: \t").casefold().split())
