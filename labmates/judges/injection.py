"""Text in a report that addresses whoever judges it.

A report is data. A sentence that tells the judge what to do is taken out before rules look at the text, and is
reported.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

_WHO = (
    r"(?:judges?|graders?|evaluators?|reviewers?|assessors?|scorers?|ai|llms?|language models?|assistants?|chatbots?)"
)
_WORK = r"(?:report|paper|submission|manuscript)"
_GIVE = r"(?:give|assign|award|grant|rate|grade|score|mark)"
_METRIC = r"(?:completeness|quality|accuracy)"
_PATTERNS = (
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,50}"
    r"\b(?:instructions?|rules|prompts?|rubrics?|criteria|guidelines)\b",
    rf"\b(?:dear|attention|hello|hey|note (?:to|for)|message (?:to|for)|instructions? (?:to|for))\b.{{0,25}}\b{_WHO}\b",
    rf"\b{_GIVE}(?:\s+\w+){{0,3}}\s+{_WORK}\b",
    rf"\b{_WORK}\b.{{0,30}}\b(?:deserves?|merits|(?:must|should|shall|ought to)\s+(?:be\s+|get\b|receive\b))",
    rf"\b(?:{_GIVE}|deserves?|receives?|get)\b.{{0,40}}\b(?:full|maximum|maximal|perfect|highest|top|best possible)\b"
    r".{0,20}\b(?:scores?|marks?|ratings?|grades?|points|credit)\b",
    rf"\b{_METRIC}\W{{0,3}}[:=]\W{{0,3}}\d.{{0,40}}\b{_METRIC}\W{{0,3}}[:=]",
    rf"\byou\s+(?:are|must|should|will|shall|have to)\b.{{0,60}}\b(?:{_WHO}|scores?|grade|rate|rating|award)\b",
    rf"\b(?:judges?|graders?|evaluators?|reviewers?)\b.{{0,30}}\b(?:must|should|please|shall)\b.{{0,40}}\b{_GIVE}\b",
    rf"\bplease\s+{_GIVE}\b",
    r"\bsystem\s+(?:prompt|message|override)\b|\b(?:new|updated|revised)\s+instructions?\s*:",
    r"^\W{0,4}(?:system|assistant|human|user)\s*:",
    r"</?(?:system|instructions?|report|assistant|user|human|prompt)>|\[/?inst\]|<\|\w{1,20}\|>",
    r"\b(?:begin|start|end) of (?:the )?(?:report|paper|submission|prompt)\b",
)
_INJECTION = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS), re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
MOST_SHOWN = 20
_CUT = 200


@dataclass(frozen=True)
class Screened:
    """A text without the sentences that address the judge, and these sentences (the first ones, cut)."""

    text: str
    found: tuple[str, ...]


@dataclass
class _Piece:
    line: int
    text: str
    flagged: bool


def find_injections(text: str) -> tuple[str, ...]:
    """Return the sentences of `text` that address the judge, each cut to 200 characters, at most 20 of them."""
    return screen(text).found


@lru_cache(maxsize=8)  # every judge of a report asks
def screen(text: str) -> Screened:
    """Take the sentences that address the judge out of `text`.

    Invisible characters are dropped and look-alike forms (full-width letters and the like) made plain first, so that
    they can't hide a sentence. A sentence may run over two lines.
    """
    plain = "".join(c for c in unicodedata.normalize("NFKC", text) if c in "\n\t" or unicodedata.category(c)[0] != "C")
    lines = plain.split("\n")
    pieces = [
        _Piece(number, part, _INJECTION.search(part) is not None)
        for number, line in enumerate(lines)
        for part in _SENTENCE.split(line)
    ]
    for one, following in pairwise(pieces):
        wraps = following.line == one.line + 1 and not one.text.rstrip().endswith((".", "!", "?"))
        if wraps and not (one.flagged or following.flagged) and _INJECTION.search(f"{one.text} {following.text}"):
            one.flagged = following.flagged = True
    kept: list[list[str]] = [[] for _ in lines]
    for piece in pieces:
        if not piece.flagged:
            kept[piece.line].append(piece.text)
    found = tuple(piece.text.strip()[:_CUT] for piece in pieces if piece.flagged)
    return Screened("\n".join(" ".join(parts) for parts in kept), found[:MOST_SHOWN])
