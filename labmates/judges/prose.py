"""The prose of a report, which rules read, and the statements in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from labmates.judges.injection import screen
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


@dataclass(frozen=True)
class Prose:
    """The readable text of a report.

    Attributes
    ----------
    text
        As it was written, without fenced blocks and comments.
    injections
        The flagged passages, which may address the judge; they are in `text`.
    without
        The text without them.
    """

    text: str
    injections: tuple[str, ...]
    without: str


def read_prose(report: str) -> Prose:
    """The prose of a report; long ones are cut."""
    screened = screen(report)
    return Prose(_readable(screened.text), screened.found, _readable(screened.without))


def _readable(text: str) -> str:
    return _COMMENT.sub("", split_blocks(text).prose)


def words(text: str) -> list[str]:
    """The words and numbers of `text`, in lower case."""
    return [word.lower() for word in _WORD.findall(text)]


def statements(text: str) -> Iterator[str]:
    """Yield the sentences, list items and table rows of `text`, no headings; lines of a paragraph belong together."""
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
    """Whether a statement is a placeholder that was never filled in."""
    return _PLACEHOLDER.search(statement) is not None
