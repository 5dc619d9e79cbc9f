"""Statements of texts, row by row: names and numbers that share a line, a sentence or a JSON object.

Teams write prose, tables and JSON, and code prints anything. All of it becomes rows, so that one rule tells whether a
finding stands there.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from labmates.judges.prose import statements
from labmates.models.objects import find_objects
from labmates.tasks.fences import Block, Parts, split_blocks
from labmates.tasks.scoring import plain_name

MOST_CHARS: Final = 200_000
"""Maximum number of characters of a text that are read."""
COARSE: Final = 0.05
"""A number in a source is taken as rounded only if its last digit is finer than this share of the number."""
_HAIR: Final = 1e-9
"""Share of a number by which its float may be off."""
_NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,2})?(?!\w)(?:\s?%)?")


@dataclass(frozen=True)
class Number:
    """A number as it is written, without its sign.

    Attributes
    ----------
    half
        Half a unit of its last digit; 0 for a whole number, which is taken as exact.
    digits
        How many digits it is written with.
    """

    value: float
    half: float
    digits: int
    text: str


@dataclass(frozen=True)
class Row:
    """Names and numbers that stand together.

    Attributes
    ----------
    words
        The words in plain form between blanks, those of the JSON keys around it included.
    fields
        The values by key, where it is a JSON object.
    """

    words: str
    numbers: tuple[Number, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)

    def names(self, plain: str) -> bool:
        """Whether the row has a name, given in plain form."""
        return f" {plain} " in self.words

    def speaks_of(self, stems: Collection[str]) -> bool:
        """Whether the row has, for each of the `stems`, a word that begins with it."""
        return all(f" {stem}" in self.words for stem in stems)


def read_numbers(text: str) -> tuple[Number, ...]:
    """The numbers in `text`; those with a percent sign also as a share of one."""
    numbers = []
    for match in _NUMBER.finditer(text):
        written = match[0].rstrip("% ").replace(",", "")
        mantissa, _, exponent = written.lower().partition("e")
        decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
        percent = match[0].endswith("%")
        half = 0.5 * 10.0**-decimals if "." in mantissa or exponent or percent else 0.0
        digits = sum(char.isdigit() for char in mantissa)
        numbers.append(Number(float(written), half, digits, match[0]))
        if percent:
            numbers.append(Number(float(written) / 100, half / 100, digits, match[0]))
    return tuple(number for number in numbers if math.isfinite(number.value))


def agree(claim: Number, source: Number) -> bool:
    """Whether a claim may come from a source: they are equal when rounded to the digits of the coarser one.

    A source that is precise to less than `COARSE` has to be met as it stands.
    """
    rounded = source.half if source.half <= COARSE * claim.value else 0.0
    return abs(claim.value - source.value) <= max(claim.half, rounded) + _HAIR * claim.value


def reach(claim: Number) -> float:
    """The largest distance at which a source still agrees with a claim."""
    return max(claim.half, COARSE * claim.value) + _HAIR * claim.value


def agrees_with_any(claim: Number, sources: Sequence[Number]) -> bool:
    """Whether one of `sources`, which are sorted by value, agrees with a claim."""
    first = bisect_left(sources, claim.value - reach(claim), key=attrgetter("value"))
    last = bisect_right(sources, claim.value + reach(claim), key=attrgetter("value"))
    return any(agree(claim, source) for source in sources[first:last])


def rows_of(text: str, records: Collection[str] = (), *, prose: bool = True) -> Iterator[Row]:
    """Yield the rows of a text: its JSON values, then its sentences, list items and table rows.

    Parameters
    ----------
    records
        Keys that mark a JSON object as one record (two of them do); other objects are read entry by entry.
    prose
        Lines of a paragraph belong together. In what code printed, and in fenced blocks, each line is a row.
    """
    rest, values = _without_json(text[:MOST_CHARS])
    for value in values:
        with suppress(RecursionError):  # Such deep nesting is never meaningful.
            yield from list(_of_json(value, (), frozenset(records)))
    parts = split_blocks(rest) if prose else Parts("", (Block("", rest),))
    for statement in statements(parts.prose):
        yield _row([statement], statement)
    for block in parts.blocks:
        for line in filter(str.strip, block.body.split("\n")):
            yield _row([line], line)


def _without_json(text: str) -> tuple[str, list[Any]]:
    """A text without its JSON objects, and these."""
    objects = list(find_objects(text))
    begins = [0, *(one.end for one in objects)]
    ends = [*(one.begin for one in objects), len(text)]
    rest = "".join(text[begin:end] for begin, end in zip(begins, ends, strict=True))
    return rest, [one.value for one in objects]


def _of_json(value: Any, path: tuple[str, ...], records: frozenset[str]) -> Iterator[Row]:
    if isinstance(value, dict):
        if len(records & value.keys()) > 1:
            yield _row([*path, *_flat(value)], " ".join(_flat(value)), value)
            return
        for key, inner in value.items():
            yield from _of_json(inner, (*path, str(key)), records)
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        for inner in value:
            yield from _of_json(inner, path, records)
    else:
        texts = list(_flat(value))
        yield _row([*path, *texts], " ".join(texts))


def _flat(value: Any) -> Iterator[str]:
    """Yield keys and values of a JSON value as texts."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _flat(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _flat(inner)
    elif value is not None:
        yield str(value)


def _row(words: Sequence[str], numbers: str, fields: Mapping[str, Any] | None = None) -> Row:
    return Row(f" {' '.join(map(plain_name, words))} ", read_numbers(numbers), fields or {})
