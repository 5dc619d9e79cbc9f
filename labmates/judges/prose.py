"""The prose of a report, and its statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from labmates.judges.injection import Screened, screen
from labmates.tasks.fences import split_blocks

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_RULE = re.compile(r"[\s|:=_*+-]*")
_ITEM = re.compile(r"\s*(?:[-*+>]|\d{1,3}[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]*_]{0,3}\s+(?=[\"'(\[*_]{0,3}[A-Z])")
_WORD = re.compile(r"[^\W_]+(?:[.'’-][^\W_]+)*")
_PLACEHOLDER = re.compile(
    r"\b(?:todo|tbd|lorem ipsum|placeholder|to be (?:written|completed|added|filled in|determined))\b"
    r"|[\[<](?:insert|your|add)\b",
    re.IGNORECASE,
)


def read_prose(report: str) -> Screened:
    """The text of a report without fenced blocks and comments; long reports are cut."""
    screened = screen(report)
    return replace(screened, text=_readable(screened.text), without=_readable(screened.without))


def _readable(text: str) -> str:
    return _COMMENT.sub("", split_blocks(text).prose)


def words(text: str) -> list[str]:
    """The words and numbers of `text`, in lower case."""
    return [word.lower() for word in _WORD.findall(text)]


def statements(text: str) -> Iterator[str]:
    """The sentences, list items and table rows of `text`, without headings; lines of a paragraph are joined."""
    paragraph: list[str] = []
    for line in [*text.split("\n"), ""]:
        row, item, heading = line.lstrip().startswith("|"), _ITEM.match(line), _HEADING.match(line)
        if paragraph and (not line.strip() or row or item or heading):
            yield from _SENTENCE.split(" ".join(paragraph))
            paragraph = []
        if row and not _RULE.fullmatch(line):
            yield line.strip()
        elif not (row or heading or _RULE.fullmatch(line)):
            paragraph.append(line[item.end() if item else 0 :].strip())


def is_placeholder(statement: str) -> bool:
    """Whether a statement is an unfilled placeholder."""
    return _PLACEHOLDER.search(statement) is not None
