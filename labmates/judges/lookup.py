"""Looking up claims in what was printed: who is named, which statistic, and whether the value is the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final, Literal

from labmates.judges.printed import NOTHING, Cell, Line, Printed, words_of
from labmates.judges.rows import Number, agree, read_numbers
from labmates.judges.stated import Asked

PREFIX: Final = 3
MOST_AVERAGED: Final = 6
"""Most values of one subject and statistic among which the mean of two counts."""
NEAR: Final = 0.1
"""Largest relative distance from their mean of two values that may be averaged."""
FAR: Final = 3.0
"""Largest factor between a claim and a contradicting value."""
Status = Literal["computed", "contradicted", "not found"]
_LABEL = re.compile(r"\W*(\w{1,12})\s*[\[({:=]")
_EFFECT = re.compile(r"->|→|\|")
_FITTED: Final = words_of("bic aic ll llf loglik")
_SPREAD: Final = words_of("sd std se sem min max count counts missing nan na dtype object float64 int64")
MOST_LISTED: Final = 0.7
"""A list without numbers that mentions a larger share of all names selects none."""
STATUSES: Final[tuple[Status, ...]] = ("computed", "contradicted", "not found")

_ALIKE: Final = (
    words_of("average mean typical"),
    words_of("warm warmer warmth temperature temp warming"),
    words_of("treatment active act arm drug ate"),
    words_of("share fraction proportion percent part"),
    words_of("decline declining decrease drop ratio change fall lower"),
    words_of("increase increasing rise ratio change grow higher"),
    words_of("shift shifts step steps break breaks change changepoint changepoints bp bps"),
    words_of("forecast predict prediction predicted expected abundance count counts"),
    words_of("subtype subtypes cluster clusters group groups class classes component components k"),
    words_of("event events anomaly anomalies anomalous abnormal flagged alarm episode episodes"),
    words_of("drift drifting trend slope"),
    words_of("wrong outlier outliers bad unit factor ratio resid residual expected beyond"),
    words_of("repeated repeat repeats duplicate duplicates duplicated dup dups"),
    words_of("worst lowest least min"),
    words_of("benefit helped positive"),
)
"""Words for one idea, in reports and in code."""
_ESTIMATE: Final = words_of(
    "est estimate estimates b beta coef coefficient params effect effects slope fit final mean size strength value "
    "median restricted full model"
)
_COUNTED: Final = words_of("n number count counts rows len size unique total distinct sum")
_TESTED: Final = words_of("p pval pvalue t z f coef se bse tvalues pvalues slope params ratio r corr beta test anova")
_OTHER: Final = words_of(
    "p pval pvalue pvalues t z tval tvalue zval se std sd err sem bse stderr error min max 25 50 75 q05 q95 lo hi ci "
    "lower upper pb ps pip bic aic ll llf loglik r2 rmse mse mae f h kurt skew count counts n id index"
)
"""Words of statistics that are not the estimate itself."""


@dataclass(frozen=True)
class Claim:
    """What a stated finding says, its status, and the printed line that decided."""

    finding: str
    text: str
    status: Status
    line: str = ""


class Book:
    """The printed cells and lines of a run, with the names that they mention."""

    def __init__(self, printed: Printed, known: Iterable[str]) -> None:
        self._printed = printed
        self._parts = {name: words_of(name) for name in {*known}}
        self._meant: dict[str, frozenset[str]] = {}
        self._known_labels: dict[frozenset[str], frozenset[str]] = {}
        self._entities: dict[frozenset[str], frozenset[str]] = {}

    def judge(self, asked: Asked) -> Claim:
        """Look up a claim."""
        if asked.value is None:
            line = self._telling(asked)
            return Claim(asked.finding, asked.text, "computed" if line else "not found", line or "")
        cells = [cell for cell in self._printed.cells if self._is_about(cell, asked)]
        claim = stated_number(asked.value, is_count=asked.is_count)
        for cell in cells:
            if _agrees(claim, cell, asked):
                return Claim(asked.finding, asked.text, "computed", cell.line)
        told = [cell for cell in cells if not cell.is_size and self._is_named(cell, asked)]
        if not asked.is_count and (
            pair := self._mean_of(claim, [cell for cell in told if _has_sign(cell, asked)], asked)
        ):
            return Claim(asked.finding, asked.text, "computed", pair)
        if others := [cell for cell in told if self._is_other(claim, cell, asked)]:
            return Claim(asked.finding, asked.text, "contradicted", others[0].line)
        return Claim(asked.finding, asked.text, "not found")

    def _mean_of(self, claim: Number, cells: Iterable[Cell], asked: Asked) -> str:
        """Two printed values whose mean a claim is, in words."""
        near = {
            cell.number.value
            for cell in cells
            if abs(cell.number.value - claim.value) <= NEAR * claim.value
            and (self.mentioned(cell.near) if asked.names else has_all(cell.near | words_of(cell.line), asked.own))
        }
        for one, two in combinations(sorted(near), 2) if len(near) <= MOST_AVERAGED else ():
            if agree(claim, Number((one + two) / 2, 0.0, 1, "")):
                return f"mean of {one:g} and {two:g}"
        return ""

    def _is_about(self, cell: Cell, asked: Asked) -> bool:
        """Whether a cell may hold the value of a claim: its subject and no other statistic than its own."""
        if cell.is_size:
            return asked.is_count and not asked.names and _alike(cell.near, asked.own | asked.kin)
        own, near = asked.words | words_of(asked.finding), cell.near & _OTHER
        other = near if same_word(cell.near, asked.own) else near | cell.label & _OTHER
        if any(not _alike(frozenset({w}), own) for w in other - (_COUNTED | _FITTED if asked.is_count else NOTHING)):
            return False
        if asked.is_part:
            return self._is_part(cell, asked)
        if not asked.names:
            return self._is_named(cell, asked)
        if not self._names_exactly(cell, asked.names):
            return False
        return len(asked.names) > 1 or self._is_named(cell, asked) or cell.number.half > 0

    def gives(self, cell: Cell, asked: Asked) -> bool:
        """Whether a cell gives the subject and statistic of a claim some value, under a word of the finding's own.

        A row of a table or an arrow names the effect of one on another; a sentence may give each of two names a number.
        """
        is_effect = len(asked.names) > 1 and _EFFECT.search(cell.line) is not None
        return (is_effect or same_word(cell.near | cell.label, asked.own)) and self._is_about(cell, asked)

    def _is_other(self, claim: Number, cell: Cell, asked: Asked) -> bool:
        """Whether a cell gives another value for exactly the subject and statistic of a claim."""
        here = cell.near | cell.label
        if asked.is_listed or asked.is_part or cell.number.value in asked.given:
            return False
        if asked.is_count and not asked.names and not here & _COUNTED:
            return False
        if not (same_word(here, asked.own) and has_all(words_of(cell.line), asked.own)):
            return False
        return is_like(cell, asked) and 1 / FAR <= _ratio(claim, cell) <= FAR

    def _is_part(self, cell: Cell, asked: Asked) -> bool:
        """Whether a cell is about a group without a name: under a label of its members, or in a list of this name."""
        if self._names_exactly(cell, asked.names):
            return self._is_named(cell, asked)
        labels, named = self._labels(asked.names), cell.near | cell.label
        if not self.mentioned(named) <= asked.names:
            return False
        if same_word(cell.near, asked.own) and not any(len(word) == 1 for word in cell.near - labels):
            return True
        return bool(named & labels) and _alike(named | cell.caption | cell.code, asked.own)

    def _labels(self, names: frozenset[str]) -> frozenset[str]:
        """The labels under which the members of a group were printed."""
        if names not in self._known_labels:
            lines = (line.text for line in self._printed.lines if self._holds(line, names))
            labels = (match[1].lower() for line in lines if (match := _LABEL.match(line)))
            self._known_labels[names] = frozenset(labels)
        return self._known_labels[names]

    def _holds(self, line: Line, names: frozenset[str]) -> bool:
        """Whether a line mentions the members of a group, and not many others."""
        mentioned = self.mentioned(line.words - line.told)
        return 4 * len(names & mentioned) >= 3 * len(names) and len(mentioned) <= 2 * len(names)

    def _names_exactly(self, cell: Cell, names: frozenset[str]) -> bool:
        near = self.mentioned(cell.near)
        if near == names:
            return True
        whole = near | self.mentioned(cell.label)
        if whole == names:
            return True
        return not whole and len(names) == 1 and names in map(self.mentioned, (words_of(cell.line), cell.caption))

    def _is_named(self, cell: Cell, asked: Asked) -> bool:
        """Whether the words beside a cell name the claim's statistic."""
        here = cell.near | cell.label
        if asked.names:
            return _alike(here | cell.caption | cell.code, asked.words | _ESTIMATE)
        if same_word(cell.near, asked.rivals) and not has_all(cell.near, asked.own):
            return False
        if _alike(here | cell.caption, asked.own):
            return True
        if not _alike(cell.code, asked.own) or same_word(here, asked.rivals):
            return False
        if asked.is_listed:
            return cell.number.digits > 1
        return bool(here & _COUNTED) if asked.is_count else _alike(here, asked.words)

    def _telling(self, asked: Asked) -> str | None:
        """A printed line that names a claim without a number together with its finding; None if there is none."""
        if not asked.names:
            cells = (c for c in self._printed.cells if c.number.half and same_word(c.near | c.label, asked.own))
            return next((c.line for c in cells if (c.near | c.label | c.caption | c.code) & _TESTED), None)
        if len(asked.names) > 1:
            return next((line.text for line in self._printed.lines if self._holds(line, asked.names)), None)
        places = list(self._places(asked.names))
        for wanted in (asked.own, asked.words):
            for text, beside, _ in places:
                if _alike(beside, wanted):
                    return text
        return next((text for text, _, code in places if _alike(code, asked.own)), None)

    def _places(self, names: frozenset[str]) -> Iterator[tuple[str, frozenset[str], frozenset[str]]]:
        """Lines that mention a name, with the words beside it and those of the code of computed numbers."""
        for cell in self._printed.cells:
            here = cell.near | cell.label
            if cell.number.half and not here & _SPREAD and self._names_exactly(cell, names):
                yield cell.line, here | cell.caption, cell.code
        for line in self._printed.lines:
            if names <= self.mentioned(line.words - line.told) and not line.words & _SPREAD:
                few = len(self.mentioned(line.words)) <= MOST_LISTED * len(self._parts)
                if line.decimals or few:
                    yield line.text, line.words | line.above, line.code if line.decimals else NOTHING

    def mentioned(self, words: frozenset[str]) -> frozenset[str]:
        """The names that words mention without ambiguity."""
        if words not in self._entities:
            meant = (self._meaning(word) for word in words if not word.isdigit())
            whole = (name for name, parts in self._parts.items() if parts <= words)
            self._entities[words] = frozenset[str](whole).union(*meant)
        return self._entities[words]

    def _meaning(self, word: str) -> frozenset[str]:
        if word not in self._meant:
            same = [name for name, parts in self._parts.items() if word in parts]
            if not same and len(word) >= PREFIX and word.isalpha():
                same = [n for n, parts in self._parts.items() if any(part.startswith(word) for part in parts)]
            self._meant[word] = frozenset(same if len(same) == 1 else ())
        return self._meant[word]


@lru_cache(maxsize=200_000)
def _alike(words: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether one of the printed words stands for one of the wanted ones."""
    return any(_stands(word, wanted) or any(word in group and group & wanted for group in _ALIKE) for word in words)


@lru_cache(maxsize=50_000)
def same_word(words: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether one of the printed words is one of the wanted ones, or begins alike."""
    return any(_stands(word, wanted) for word in words)


def has_all(words: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether each of the wanted words is one of the printed ones, or begins alike."""
    return all(same_word(words, frozenset({word})) for word in wanted)


@lru_cache(maxsize=200_000)
def _stands(word: str, wanted: frozenset[str]) -> bool:
    return word in wanted or (
        len(word) >= PREFIX
        and any(other.startswith(word) or (len(other) >= PREFIX and word.startswith(other)) for other in wanted)
    )


def stated_number(value: float, *, is_count: bool) -> Number:
    """A stated value as a number: whole ones of measures may be rounded, to tens where they end in a zero."""
    [*_, number] = read_numbers(f"{abs(value):g}" if abs(value) < 1e6 else str(abs(value)))
    if is_count or number.half:
        return number
    half = 5.0 if value and value % 10 == 0 and abs(value) >= 100 else 0.5
    return Number(number.value, half, number.digits, number.text)


def is_like(cell: Cell, asked: Asked) -> bool:
    """Whether a cell may count what a claim counts: decimals count nothing."""
    return not asked.is_count or not cell.number.half


def _ratio(claim: Number, cell: Cell) -> float:
    return claim.value / cell.number.value if cell.number.value else 0.0


def _agrees(claim: Number, cell: Cell, asked: Asked) -> bool:
    return _has_sign(cell, asked) and agree(claim, cell.number)


def _has_sign(cell: Cell, asked: Asked) -> bool:
    """Whether a claim allows the sign of a printed value: sizes and effects of named things are printed with either."""
    if asked.sign or asked.names or asked.value is None:
        return not (asked.sign == "+" and cell.negative)
    return (asked.value < 0) == cell.negative
