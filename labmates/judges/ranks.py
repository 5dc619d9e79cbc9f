"""The ranks of candidates that code tried: the best is a finding, any other only one of many."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from labmates.judges.rows import magnitude

NUMBER = re.compile(r"(?<!\w)[-+]?\d[\d.eE+-]*")
_TRIED = re.compile(r"(?:^|;)\s*(\w+)[ =]+(\d+)\b([^;\d]*?)([-+]?\d+(?:\.\d+)?)(?=\s|;|$)")
_FIT = re.compile(r"(.*?\b(?:bic|aic|ll|llf|loglik)\b\W{0,2}?)(-?\d+(?:\.\d+)?)", re.IGNORECASE)
_SIGNED = re.compile(r"-?\d+(?:\.\d+)?")
_TUPLE = re.compile(rf"\((?:{_SIGNED.pattern}, )+{_SIGNED.pattern}\)")
_TUPLES = re.compile(rf"{_TUPLE.pattern}(?:, {_TUPLE.pattern}){{2,}}")


def rank_lines(lines: Iterable[str]) -> dict[str, int]:
    """The rank of each line among those that differ in numbers alone and give the fit of each."""
    sweeps: dict[str, dict[str, float]] = {}
    for line in dict.fromkeys(lines):
        if match := _FIT.match(line):
            sweeps.setdefault(NUMBER.sub("", match[1]), {})[line] = float(match[2])
    return {
        line: rank for fits in sweeps.values() for line, rank in zip(fits, _from_an_end([*fits.values()]), strict=True)
    }


def rank_numbers(text: str, tokens: Sequence[re.Match[str]]) -> dict[int, int]:
    """The ranks of numbers that stand for something with a value (``{2: 41.0, 3: 39.5}``, ``k 2 bic 41; k 3 bic 39``).

    Three or more of them are ranked, from the smallest and from the largest value, and so are tuples in the order of
    their last numbers and not of their first. In tuples in the order of first numbers with decimals, whole ones are.
    """
    pairs = [
        (one.start(), magnitude(two[0]).value)
        for one, two in pairwise(tokens)
        if one.lastgroup == two.lastgroup == "number" and text[one.end() : two.start()].strip() == ":"
    ]
    sweeps: dict[tuple[str, str], list[tuple[int, float]]] = {("", ""): pairs}
    for match in _TRIED.finditer(text):
        sweeps.setdefault((match[1], match[3]), []).append((match.start(2), float(match[4])))
    ranks = dict[int, int]()
    for sweep in sweeps.values():
        ranks |= zip((place for place, _ in sweep), _from_an_end([value for _, value in sweep]), strict=True)
    for ranked in _TUPLES.finditer(text):
        tuples = [list(_SIGNED.finditer(text, *inner.span())) for inner in _TUPLE.finditer(text, *ranked.span())]
        by_last, by_first = (_is_ordered([one[at] for one in tuples]) for at in (-1, 0))
        is_scored = by_first and all("." in one[0][0] for one in tuples)
        for rank, one in enumerate(tuples):
            if is_scored:  # such a list has the best first
                ranks |= {number.start(): rank for number in one[1:] if "." not in number[0]}
            elif by_last and not by_first:
                ranks |= {number.start(): min(rank, len(tuples) - 1 - rank) for number in one[:-1]}
    return ranks


def _from_an_end(values: Sequence[float]) -> list[int]:
    """How many of three or more values stand before each, from the nearer end of their order; 0 for fewer."""
    up = sorted(values)
    return [min(up.index(value), up[::-1].index(value)) if len(up) > 2 else 0 for value in values]


def _is_ordered(numbers: Sequence[re.Match[str]]) -> bool:
    values = [float(number[0]) for number in numbers]
    return values in (sorted(values), sorted(values, reverse=True))
