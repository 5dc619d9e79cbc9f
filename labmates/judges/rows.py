"""Rows of texts: names and numbers that share a line, a sentence or a JSON object.

Teams write prose, tables and JSON, and code prints anything. All texts become rows, so that one rule finds findings in
them.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from labmates.judges.prose import statements
from labmates.models.objects import find_objects
from labmates.tasks.fences import Block, Parts, split_blocks
from labmates.tasks.scoring import plain_name

MOST_CHARS: Final = 200_000
"""Most characters of a text that are read."""
COARSE: Final = 0.05
"""A number in a source counts as rounded only if its last digit is finer than this share of the number."""
NOTHING: Final = frozenset[str]()
_HAIR: Final = 1e-9
"""Relative tolerance for floating-point errors."""
_NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,2})?(?!\w)(?:\s?%)?")
_PER_SD = re.compile(r"\bper (?:1 )?(?:sd|std|standard deviation|sigma)\b")


@dataclass(frozen=True)
class Number:
    """A written number without its sign.

    Attributes
    ----------
    half
        Half a unit of its last digit; 0 for a whole number, which counts as exact.
    digits
        Number of written digits.
    """

    value: float
    half: float
    digits: int
    text: str


@dataclass(frozen=True)
class Row:
    """Names and numbers of one line, sentence or JSON object.

    Attributes
    ----------
    words
        The words in plain form, between blanks, including enclosing JSON keys.
    fields
        The values of a JSON object, by key.
    """

    words: str
    numbers: tuple[Number, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)

    def names(self, plain: str) -> bool:
        """Whether the row contains a name in plain form."""
        return f" {plain} " in self.words

    def speaks_of(self, stems: Collection[str]) -> bool:
        """Whether the row has a word with each of the `stems`."""
        return all(f" {stem}" in self.words for stem in stems)


@lru_cache(maxsize=10_000)  # each claim is compared with the words of the same lines and findings
def words_of(text: str) -> frozenset[str]:
    """The words of a text, in plain form; what is given per standard deviation is no standard deviation."""
    return frozenset(_PER_SD.sub("", plain_name(text)).split())


def magnitude(text: str) -> Number:
    """A written number without its sign."""
    return [Number(float("nan"), 0.0, 1, text), *read_numbers(text.lstrip("-−+"))][-1]


def read_numbers(text: str) -> tuple[Number, ...]:
    """The numbers in `text`; percentages also as shares."""
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
    """Whether a claim and a source are equal when rounded to the digits of the coarser one.

    A source coarser than `COARSE` counts as exact.
    """
    rounded = source.half if source.half <= COARSE * claim.value else 0.0
    return abs(claim.value - source.value) <= max(claim.half, rounded) + _HAIR * claim.value


def reach(claim: Number) -> float:
    """The largest distance of an agreeing source."""
    return max(claim.half, COARSE * claim.value) + _HAIR * claim.value


def agrees_with_any(claim: Number, sources: Sequence[Number]) -> bool:
    """Whether any of `sources`, sorted by value, agrees with a claim."""
    first = bisect_left(sources, claim.value - reach(claim), key=attrgetter("value"))
    last = bisect_right(sources, claim.value + reach(claim), key=attrgetter("value"))
    return any(agree(claim, source) for source in sources[first:last])


def rows_of(text: str, records: Collection[str] = (), *, prose: bool = True) -> Iterator[Row]:
    """The rows of a text: its JSON values, then its sentences, list items and table rows.

    Parameters
    ----------
    records
        Keys of record objects: a JSON object with two of them is one row; other objects are read entry by entry.
    prose
        Whether lines of a paragraph are joined. In the output of code, and in fenced blocks, each line is a row.
    """
    rest, values = without_objects(text[:MOST_CHARS])
    for value in values:
        with suppress(RecursionError):  # Deep nesting is never meaningful.
            yield from list(_of_json(value, (), frozenset(records)))
    parts = split_blocks(rest) if prose else Parts("", (Block("", rest),))
    for statement in statements(parts.prose):
        yield _row([statement], statement)
    for block in parts.blocks:
        for line in filter(str.strip, block.body.split("\n")):
            yield _row([line], line)


def without_objects(text: str) -> tuple[str, list[Any]]:
    """A text without its JSON objects, and the objects."""
    objects = list(find_objects(text))
    begins = [0, *(item.end for item in objects)]
    ends = [*(item.begin for item in objects), len(text)]
    rest = "".join(text[begin:end] for begin, end in zip(begins, ends, strict=True))
    return rest, [item.value for item in objects]


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
    """The keys and values of a JSON value as texts."""
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
