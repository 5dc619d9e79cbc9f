"""Text in a report that may address whoever judges it.

A report is data, and all of it stays in what judges read: rules err, and a sentence about Tukey's rules is no order.
What looks like an order is flagged. Judges that could be moved by it judge twice, with and without what was flagged,
and report the difference (`judges.rubric`). Since a false alarm costs a second judging and no word of the paper, the
rules look for recall: orders in eight languages, claims that somebody has checked the paper already, forged prompts,
hidden comments, look-alike letters.

A model gets a report between two lines with a mark that nobody can forge (`fenced`).
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

RULES: Final = "2"
"""Version of the rules, a part of the version of the judges that they change."""
MOST_CHARS: Final = 100_000
"""Judges read this much of a report's text."""
MOST_SHOWN: Final = 20
_CUT: Final = 200
_LINES_OF_AN_ORDER: Final = 3
"""Maximum number of lines that an order is spread over."""

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
    """A report's text and what of it may address the judge.

    Attributes
    ----------
    text
        The text as it was written, but for invisible characters and typographic forms of letters, which are made plain.
        Cut at `MOST_CHARS`.
    found
        The flagged passages: the first 20, each cut to 200 characters.
    without
        The text without any flagged passage.
    """

    text: str
    found: tuple[str, ...]
    without: str


@dataclass
class _Piece:
    begin: int
    end: int
    line: int
    flagged: bool


def find_injections(text: str) -> tuple[str, ...]:
    """The passages of `text` that may address the judge, each cut to 200 characters, at most 20 of them."""
    return screen(text).found


@lru_cache(maxsize=8)  # every judge of a report asks
def screen(text: str) -> Screened:
    """Flag the passages of `text` that may address the judge; time grows linearly with its length.

    Invisible characters are dropped and forms of letters (full-width ones and the like) made plain first, so that they
    can't hide an order. An order may be broken over three lines. A comment, which no reader of the paper sees, is
    flagged if it has a word.
    """
    shown = unicodedata.normalize("NFKC", text[:MOST_CHARS])[:MOST_CHARS]
    plain = "".join(c for c in shown if c in "\n\t" or unicodedata.category(c)[0] != "C")
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
        or _OTHER.search(sentence)
        or (_SPACED.search(folded) and _LATIN.search(_SPACED.sub(_close_up, folded)))
    )


def _close_up(match: re.Match[str]) -> str:
    """Join letters that stand apart."""
    return re.sub(r"[ .\-_*]", "", match[0])


def _fold(text: str) -> str:
    """A text in plain Latin letters, as far as they look like such."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return bare.translate(_LOOK_ALIKES).replace("’", "'").replace("\n", " ")


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield the comments and sentences of a text, each with its place and the number of its line."""
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
    """Flag an order that begins with the piece `first` and goes on over the next lines."""
    for last in range(first + 1, min(first + _LINES_OF_AN_ORDER, len(pieces))):
        before, piece = pieces[last - 1], pieces[last]
        ends = text[before.begin : before.end].rstrip().endswith(_ENDS)
        if piece.line != before.line + 1 or ends or before.flagged or piece.flagged:
            return
        if is_order(text[pieces[first].begin : piece.end]):
            for one in pieces[first : last + 1]:
                one.flagged = True
            return


_CUT_LINE = "[cut here: the report goes on for {} more characters]"


@dataclass(frozen=True)
class Fenced:
    """A report as a model gets it.

    Attributes
    ----------
    text
        As it was written, between two lines that hold the `mark`.
    mark
        What nobody who wrote the report can have written into it.
    injections
        The flagged passages, which may address the judge; they are in `text`.
    without
        The same without them.
    """

    text: str
    mark: str
    injections: tuple[str, ...]
    without: str


def fenced(report: str) -> Fenced:
    """Put a report between two marked lines.

    The mark is a hash of the report, 32 hexadecimal digits: to end the fence within the report, one would have to write
    a text that holds its own hash. So it can't be guessed, and the prompt of the same report is still the same each
    time.
    """
    mark = hashlib.blake2b(report.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    screened = screen(report)
    more = len(report) - MOST_CHARS
    cut = f"\n{_CUT_LINE.format(more)}" if more > 0 else ""
    text, without = (
        f"[report {mark} begins]\n{one}{cut}\n[report {mark} ends]" for one in (screened.text, screened.without)
    )
    return Fenced(text, mark, screened.found, without)
