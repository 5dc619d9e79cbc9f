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
_METRIC = r"(?:completeness|quality|accuracy)"
_GIVE = r"(?:give|assign|award|grant)"
_RATE = r"(?:rate|grade|score|mark)"
_RATED = r"(?:given|assigned|awarded|granted|rated|graded|scored|marked|ranked|judged|accepted)"
_THIS = r"(?:(?:this|that|these|the|it|our|my|us|me|its|all|each|every\w*|any|above|whole|entire|present)\s+){0,3}"
_FULL = (
    r"\b(?:full|maximum|maximal|perfect|highest|top|best possible)\b.{0,20}"
    r"\b(?:scores?|marks?|ratings?|grades?|points|credit)\b"
)
# Where an order begins. "Grade", "score" and "mark" are nouns in many reports, and a model may "give the highest
# score", so that an order is told by how it begins and by what it is about, not by these words alone.
_ORDER = r"(?:^\W*|[,:;!]\s*|\b(?:please|kindly|simply|just|now|you|you to)\s+)"
_IT = r"(?:this|that|it|us|me|our|my|all|every\w*)"
_PATTERNS = (
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,50}"
    r"\b(?:instructions?|rules|prompts?|rubrics?|criteria|guidelines)\b",
    rf"\b(?:dear|attention|hello|hey|note (?:to|for)|message (?:to|for)|instructions? (?:to|for))\b.{{0,25}}\b{_WHO}\b",
    rf"\b(?:{_GIVE}|{_RATE})\s+(?:to\s+|for\s+)?{_THIS}{_WORK}\b",
    rf"\b{_WORK}\b.{{0,30}}\b(?:deserves?|merits)\b.{{0,30}}\b(?:\d|five|ten|scores?|marks?|ratings?|grades?|points|accept)",
    rf"\b{_WORK}\b.{{0,30}}\b(?:must|should|shall|ought to)\s+"
    rf"(?:get\b|receive\b|be\s+(?:\w+\s+)?(?:given\s+an?\b|(?!given){_RATED}\b))",
    rf"(?:{_ORDER}(?:{_GIVE}|get|{_RATE}\s+(?:{_IT}|the|with|as|at))|\band\s+(?:{_GIVE}|{_RATE})\s+{_IT})\b.{{0,40}}{_FULL}",
    rf"\b(?:deserves?|(?:must|should|shall|ought to|has to)\s+(?:receive|get|be\s+{_RATED}))\b.{{0,40}}{_FULL}",
    rf"\b(?:judges?|graders?|evaluators?|reviewers?|assessors?)\b.{{0,40}}\b{_GIVE}\b.{{0,40}}{_FULL}",
    rf"{_FULL}.{{0,20}}\bfor\s+(?:this|the|our|my)\s+{_WORK}\b",
    rf"\b(?P<metric>{_METRIC})\W{{0,3}}[:=]\W{{0,3}}\d.{{0,40}}\b(?!(?P=metric)){_METRIC}\W{{0,3}}[:=]",
    rf"\byou\s+(?:are|must|should|will|shall|have to)\b.{{0,60}}\b(?:{_WHO}|scores?|grade|rate|rating|award)\b",
    r"\b(?:judges?|graders?|evaluators?|reviewers?)\b.{0,30}\b(?:must|should|please|shall)\b.{0,40}"
    rf"\b(?:{_GIVE}|{_RATE})\b",
    rf"\bplease\s+(?:{_GIVE}|{_RATE})\b",
    r"\bsystem\s+(?:prompt|message|override)\b|\b(?:new|updated|revised)\s+instructions?\s*:",
    r"^\W{0,4}(?:system|assistant|human|user)\s*:",
    r"</?(?:system|instructions?|report|assistant|user|human|prompt)>|\[/?inst\]|<\|\w{1,20}\|>",
    r"^\W*(?:(?:this|here|it)\s+is\s+)?(?:the\s+)?(?:begin(?:ning)?|start|end)\s+of\s+(?:the\s+)?"
    r"(?:report|paper|submission|prompt)\b",
)
_INJECTION = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS), re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
MOST_CHARS = 100_000
"""Judges read this much of a report's text."""
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
    they can't hide a sentence. A sentence may run over two lines. What goes beyond `MOST_CHARS` is cut, also where
    plain letters take more room than the forms that stood for them.
    """
    shown = unicodedata.normalize("NFKC", text[:MOST_CHARS])[:MOST_CHARS]
    plain = "".join(c for c in shown if c in "\n\t" or unicodedata.category(c)[0] != "C")
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
