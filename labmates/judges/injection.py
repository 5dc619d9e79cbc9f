"""Prompt injections: text in a report that may address its judge.

A report is data, and judges read all of it: rules err, and a sentence about Tukey's rules is not an instruction.
Suspicious passages are flagged. Judges that they could influence judge twice, with and without them, and report the
difference (`judges.rubric`). A false alarm costs only a second judging, so the rules aim for recall: instructions in
eight languages, claims of earlier checks, forged prompts, hidden comments, look-alike letters.

A model gets a report between two lines with an unforgeable mark (`fenced`).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from labmates.judges.order_words import LATIN, OTHER_SCRIPTS

RULES: Final = "3"
"""Version of the rules, part of the version of judges that depend on them."""
MOST_CHARS: Final = 100_000
"""Longer reports are cut."""
MOST_SHOWN: Final = 20
_CUT: Final = 200
_LINES_OF_AN_ORDER: Final = 3
"""Most lines of one instruction."""

_LATIN = re.compile(LATIN, re.IGNORECASE)
_OTHER = re.compile(OTHER_SCRIPTS, re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_WORDS_OF_A_COMMENT = re.compile(r"[^\W\d_]{2}")
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+|(?<=[。!?])(?=[^\s\x00-\x7f])")
_SPACED = re.compile(r"\b(?:\w[ .\-_*]){4,}\w\b")
_ENDS: Final = (".", "!", "?", "。", ":", "|")
_LOOK_ALIKES: Final = str.maketrans(
    "аеорсухіјѕһԁԛԝкмтвнгӏАВЕКМНОРСТХУІЈЅαορνικτυεχηΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɡɑօսհǀ",
    "aeopcyxijshdqwkmtbhrlABEKMHOPCTXYIJSaopvikruexnABEZHIKMNOPTYXigaouhl",
)
"""Cyrillic, Greek, Armenian and phonetic letters that look like Latin ones."""


@dataclass(frozen=True)
class Screened:
    """A report's text, with its passages that may address the judge.

    Attributes
    ----------
    text
        The original text without invisible characters, cut at `MOST_CHARS`.
    injections
        The flagged passages: the first 20, each cut to 200 characters.
    without
        The text without any flagged passage.
    """

    text: str
    injections: tuple[str, ...]
    without: str


@dataclass
class _Piece:
    begin: int
    end: int
    line: int
    flagged: bool


def find_injections(text: str) -> tuple[str, ...]:
    """The passages of `text` that may address the judge, each cut to 200 characters, at most 20 of them."""
    return screen(text).injections


@lru_cache(maxsize=8)  # called by every judge of a report
def screen(text: str) -> Screened:
    """Flag the passages of `text` that may address the judge, in linear time.

    Invisible characters are removed, so that they can't hide an instruction; else the text stays as it was written,
    with its exponents and units. An instruction may span three lines. A comment, invisible to readers, is flagged if it
    has a word.
    """
    plain = "".join(c for c in text[:MOST_CHARS] if c in "\n\t" or unicodedata.category(c)[0] != "C")
    pieces = list(_pieces(plain))
    for first in range(len(pieces)):
        _flag_broken(plain, pieces, first)
    flagged = [piece for piece in pieces if piece.flagged]
    passages = [plain[piece.begin : piece.end].strip()[:_CUT] for piece in flagged[:MOST_SHOWN]]
    begins = [0, *(piece.end for piece in flagged)]
    ends = [*(piece.begin for piece in flagged), len(plain)]
    without = "".join(plain[begin:end] for begin, end in zip(begins, ends, strict=True))
    return Screened(plain, tuple(passages), without)


def is_order(sentence: str) -> bool:
    """Whether a sentence may address the judge of the text."""
    folded = _fold(sentence)
    return bool(
        _LATIN.search(folded)
        or _OTHER.search(unicodedata.normalize("NFKC", sentence))
        or (_SPACED.search(folded) and _LATIN.search(_SPACED.sub(_close_up, folded)))
    )


def _close_up(match: re.Match[str]) -> str:
    """Join spaced letters."""
    return re.sub(r"[ .\-_*]", "", match[0])


def _fold(text: str) -> str:
    """A text with Latin letters in place of look-alikes."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return bare.translate(_LOOK_ALIKES).replace("’", "'").replace("\n", " ")


def _pieces(text: str) -> Iterator[_Piece]:
    """The comments and sentences of a text, each with its position and line number."""
    end, line = 0, 0
    for comment in [*_COMMENT.finditer(text), None]:
        until = len(text) if comment is None else comment.start()
        for row in text[end:until].splitlines(keepends=True):
            stops = [end, *(end + match.end() for match in _SENTENCE.finditer(row)), end + len(row)]
            for a, b in pairwise(stops):
                if a < b:
                    yield _Piece(a, b - row.endswith("\n") * (b == end + len(row)), line, is_order(text[a:b]))
            end, line = end + len(row), line + row.endswith("\n")
        if comment is not None:
            end = comment.end()
            yield _Piece(comment.start(), end, line, _WORDS_OF_A_COMMENT.search(comment[0][4:]) is not None)
            line += comment[0].count("\n")


def _flag_broken(text: str, pieces: list[_Piece], first: int) -> None:
    """Flag an instruction that begins with the piece `first` and continues on the next lines."""
    for last in range(first + 1, min(first + _LINES_OF_AN_ORDER, len(pieces))):
        before, piece = pieces[last - 1], pieces[last]
        ends = text[before.begin : before.end].rstrip().endswith(_ENDS)
        if piece.line != before.line + 1 or ends or before.flagged or piece.flagged:
            return
        if is_order(text[pieces[first].begin : piece.end]):
            for part in pieces[first : last + 1]:
                part.flagged = True
            return


_CUT_LINE = "[cut here: the report goes on for {} more characters]"


@dataclass(frozen=True)
class Fenced(Screened):
    """A report in a prompt, between two lines that hold an unforgeable mark."""

    mark: str


def mark_of(text: str) -> str:
    """The mark of a text: its hash in 32 hexadecimal digits, which it can't contain; equal texts have equal marks."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def fenced(report: str) -> Fenced:
    """Put a report between two marked lines.

    To end the fence, a report would have to contain its own hash.
    """
    mark = mark_of(report)
    screened = screen(report)
    more = len(report) - MOST_CHARS
    cut = f"\n{_CUT_LINE.format(more)}" if more > 0 else ""
    text, without = (
        f"[report {mark} begins]\n{body}{cut}\n[report {mark} ends]" for body in (screened.text, screened.without)
    )
    return Fenced(text, screened.injections, without, mark)
