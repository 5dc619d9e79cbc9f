"""Contradictions between a paper's text and its stated findings.

The text is read as if code had printed it, statement by statement (`judges.printed`). A finding is contradicted where
the text gives its subject and statistic another value and never the stated one, or states another value more often; a
name, where the text speaks of the finding and never mentions the name; a yes or no, where a p-value beside it says the
opposite. Differences of a few percent are rounding.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import BaseModel

from labmates.judges.lookup import Book, has_all, same_word, stated_number
from labmates.judges.printed import Cell, Printed, read_outputs, words_of
from labmates.judges.prose import read_prose, statements
from labmates.judges.rows import agree
from labmates.judges.stated import Asked, claims_of, names_in
from labmates.tasks.words import WORDS

CLOSE: Final = 0.05
"""Relative difference that is no contradiction."""
MOST_BETWEEN: Final = 4
"""Most words from the name of a finding to its value."""
CLEAR: Final = 0.05
"""The p-value that parts yes from no."""


_IN_WORDS = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)


def contradictions(text: str, findings: BaseModel) -> Mapping[str, tuple[float, str]]:
    """The contradicted findings of a paper: the share of their claims, and a statement at odds with them."""
    said = read_outputs(((_in_digits(one), "") for one in statements(read_prose(text).text)), ())
    book, asked = Book(said, names_in(findings)), claims_of(findings)
    at_odds = [(one.finding, place) for one in asked if (place := _contrary(one, said, book))]
    at_odds += _unmentioned([one for one in asked if one.value is None and len(one.names) == 1], said, book)
    counts, places = Counter(finding for finding, _ in at_odds), dict(reversed(at_odds))
    whole = Counter(one.finding for one in asked)
    return {finding: (count / whole[finding], places[finding]) for finding, count in counts.items()}


def _in_digits(statement: str) -> str:
    return _IN_WORDS.sub(lambda match: str(WORDS.index(match[0].lower())), statement)


def _contrary(asked: Asked, said: Printed, book: Book) -> str:
    """A statement that contradicts a number, or a yes or no; empty if none does."""
    if asked.value is None:
        return "" if asked.names else _denied(asked, said)
    if asked.is_listed or asked.is_part:
        return ""
    is_whole = not asked.names and asked.value.is_integer()
    stated = stated_number(asked.value, is_count=is_whole)
    numbers = [cell for cell in said.cells if not cell.is_size and cell.number.value not in asked.given]
    about = [cell for cell in numbers if _is_about(cell, asked, book, is_whole=is_whole)]
    others = [cell for cell in about if _is_far(cell, asked.value)]
    close = {cell.number.value for cell in others if (is_whole and _is_counted(cell, asked)) or _is_close(cell, asked)}
    agreeing = len(about) - len(others)
    agreeing += sum(
        agree(stated, cell.number) and not (is_whole and cell.number.half)
        for cell in numbers
        if cell not in about and (asked.names or same_word(words_of(cell.line), asked.own))
    )
    most = max((count for value, count in Counter(c.number.value for c in others).items() if value in close), default=0)
    return next(cell.line for cell in others if cell.number.value in close) if most > agreeing else ""


def _is_about(cell: Cell, asked: Asked, book: Book, *, is_whole: bool) -> bool:
    if is_whole and _is_counted(cell, asked):
        return True
    return (
        not asked.is_count
        and book.gives(cell, asked)
        and (bool(asked.names) or has_all(words_of(cell.line), asked.own))
    )


def _is_counted(cell: Cell, asked: Asked) -> bool:
    """Whether the words after a number are those of the counted things: "12 repeated rows"."""
    return not cell.number.half and has_all(cell.after, asked.own)


def _is_close(cell: Cell, asked: Asked) -> bool:
    """Whether a word of a finding's name stands shortly before a number."""
    before = cell.line.partition(cell.number.text)[0].split()[-MOST_BETWEEN:]
    return bool(asked.names) or same_word(words_of(" ".join(before)), asked.own)


def _is_far(cell: Cell, value: float) -> bool:
    return abs(cell.number.value - abs(value)) > max(CLOSE * abs(value), cell.number.half)


def _denied(asked: Asked, said: Printed) -> str:
    """A statement with a p-value that says the opposite of a yes or no."""
    tested = (cell for cell in said.cells if "p" in cell.near and same_word(cell.label, asked.own))
    return next((cell.line for cell in tested if (cell.number.value < CLEAR) != (asked.text == "true")), "")


def _unmentioned(names: Iterable[Asked], said: Printed, book: Book) -> list[tuple[str, str]]:
    """The names of findings of which a text speaks without mentioning any of them."""
    mentioned = frozenset[str]().union(*(book.mentioned(line.words) for line in said.lines))
    known = {asked.finding for asked in names if asked.names <= mentioned}
    found = []
    for asked in names:
        spoken = next((line.text for line in said.lines if same_word(line.words, asked.own)), "")
        if spoken and asked.finding not in known:
            found.append((asked.finding, spoken))
    return found
