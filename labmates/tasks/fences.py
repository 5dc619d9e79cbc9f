"""Fenced blocks and prose of a Markdown text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_FENCE = re.compile(r"\s{0,12}(?:(`{3,})([^`]*)|(~{3,})(.*))$")
_FINDINGS = re.compile(r"\bfindings\b", re.IGNORECASE)
_WRAPPERS = ("markdown", "md")


@dataclass(frozen=True)
class Block:
    """One fenced block: the words after its opening fence, and its lines."""

    info: str
    body: str

    @property
    def is_findings(self) -> bool:
        """Whether the block is marked as findings."""
        return _FINDINGS.search(self.info) is not None


@dataclass(frozen=True)
class Parts:
    """A text's prose (lines outside blocks) and its fenced blocks, in order."""

    prose: str
    blocks: tuple[Block, ...]


@lru_cache(maxsize=8)  # judges read the parts of the same report
def split_blocks(text: str) -> Parts:
    """Split `text` into prose and fenced blocks, tolerating models' mistakes.

    A fence around the whole report is ignored. A findings block opens even inside an unclosed block. At the end of the
    text an open block without a name is a stray fence, and its lines are prose.
    """
    prose: list[str] = []
    blocks: list[Block] = []
    fence, info, body = "", "", list[str]()
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _FENCE.match(line)
        marks, words = (match[1] or match[3], (match[2] or match[4] or "").strip()) if match else ("", "")
        opens = bool(marks) and (not fence or _FINDINGS.search(words) is not None)
        if opens and words.lower() in _WRAPPERS:
            continue
        closes = bool(fence and marks.startswith(fence) and not words)
        if fence and (opens or closes):
            blocks.append(Block(info, "\n".join(body)))
        if opens:
            fence, info, body = marks, words, []
        elif closes:
            fence = ""
        else:
            (body if fence else prose).append(line)
    if fence and info:
        blocks.append(Block(info, "\n".join(body)))
    elif fence:
        prose += body
    return Parts("\n".join(prose), tuple(blocks))
