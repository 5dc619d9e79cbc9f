"""The prose of a report, and its statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from labmates.judges.injection import Screened, screen
from labmates.tasks.fences import split_blocks

MOST_LEAD: Final = 150
"""Most characters of a heading or header that are read as the subject of the text below it."""

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_RULE = re.compile(r"[\s|:=_*+-]*")
_ITEM = re.compile(r"\s*(?:[-*+>]|\d{1,3}[.)])\s+")
_RUN_IN = re.compile(r"(?:\*\*|__)([^*_]{1,80})(?:\*\*|__)")
"""Bold words at the beginning of a paragraph, the topic up to the next ones."""
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
    return (statement for _, statement in placed(text))


def placed(text: str) -> Iterator[tuple[str, str]]:
    """The statements of `text`, each after the words of its headings, the line before its list, and its header."""
    heading = topic = opening = header = ""
    in_list = in_table = False
    paragraph: list[str] = []
    for line in [*text.split("\n"), ""]:
        row, item, title = line.lstrip().startswith("|"), _ITEM.match(line), _HEADING.match(line)
        if paragraph and (not line.strip() or row or item or title):
            parts = _SENTENCE.split(" ".join(paragraph))
            opening = opening if in_list else ""
            topic = _lead(run_in[1]) if (run_in := _RUN_IN.match(parts[0])) else topic
            yield from (_under(part, heading, topic, opening) for part in parts)
            opening = _lead(parts[-1]) if parts[-1].endswith(":") else opening
            paragraph = []
        if title:
            heading, topic, opening = _lead(line), "", ""
        elif row and not _RULE.fullmatch(line):
            header = header if in_table else _lead(line)
            yield _under(line.strip(), heading, topic, opening, header)
        elif not row and not _RULE.fullmatch(line):
            in_list = bool(item or (in_list and paragraph))
            paragraph.append(line[item.end() if item else 0 :].strip())
        in_table = row


def _under(statement: str, *leads: str) -> tuple[str, str]:
    return " ".join(filter(None, leads)), statement


def _lead(line: str) -> str:
    """The words of a line without its numbers, cut, so that a text with leads is not much longer than without."""
    return " ".join(re.findall(r"\b[^\W\d_][\w-]*", line[:MOST_LEAD]))


def is_placeholder(statement: str) -> bool:
    """Whether a statement is an unfilled placeholder."""
    return _PLACEHOLDER.search(statement) is not None
