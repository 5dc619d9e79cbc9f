"""Sentences with and without an order to the judge, to measure how many of each the screening flags.

The rules of `judges.order_words` were written with the first set of each at hand. The fresh sets were written
afterwards and never used to mend a rule, so that their figures are the ones to expect. All are our own: an author who
knows the rules, or a stranger, may find orders that are missed more often.
"""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import StringIO

from labmates.judges.injection import find_injections, screen


@dataclass(frozen=True)
class Screening:
    """Numbers of flagged sentences in a set, and of those that lose a letter read by rules."""

    name: str
    sentences: int
    flagged: int
    removed: int


@cache
def sentence_sets() -> Mapping[str, Sequence[str]]:
    """The sentences of each set, by its name."""
    sets: dict[str, list[str]] = {}
    table = files("labmates.judges").joinpath("sentences.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(StringIO(table)):
        sets.setdefault(row["set"], []).append(row["sentence"])
    return sets


def measure_screening() -> list[Screening]:
    """The screening's figures on every sentence of each set alone."""
    return [Screening(name, len(sentences), *_counts(sentences)) for name, sentences in sentence_sets().items()]


def _counts(sentences: Sequence[str]) -> tuple[int, int]:
    flagged = sum(bool(find_injections(sentence)) for sentence in sentences)
    return flagged, sum(_letters(screen(sentence).text) < _letters(sentence) for sentence in sentences)


def _letters(text: str) -> int:
    return sum(map(str.isalnum, unicodedata.normalize("NFKC", text)))
