"""Rules on the words of a report, for `labmates.tasks.base.Check` objects.

They read sentence by sentence, ignore case, and take linear time for any text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
MOST_CLAIMS = 5
"""More different numbers of the same noun count as guessing."""
MOST_NUMBERS = 8
"""Of the numbers in a sentence, those nearest to its subject count."""

_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_GAPS = ",\N{NO-BREAK SPACE}\N{THIN SPACE}\N{NARROW NO-BREAK SPACE}"
_GAP = re.compile(f"[{_GAPS}]")
_GROUPED = rf"\d{{1,3}}(?:[{_GAPS}]\d{{3}}){{1,2}}"
_NUMBER = re.compile(rf"(?<![\w.])([-\u2212])?((?:({_GROUPED})|\d{{1,9}})(\.\d{{1,9}})?)(?![\w]|\.\d)")


@lru_cache(maxsize=8)  # all rules of a report read the same text
def sentences(text: str) -> tuple[str, ...]:
    """The non-blank sentences and lines of `text`."""
    return tuple(part.strip() for part in _BREAK.split(text) if part.strip())


def says_all(*patterns: str) -> Callable[[str], bool]:
    """A rule: the text matches every pattern."""
    compiled = [re.compile(pattern, re.IGNORECASE) for pattern in patterns]
    return lambda text: all(pattern.search(text) for pattern in compiled)


def says_together(*patterns: str) -> Callable[[str], bool]:
    """A rule: a single sentence matches every pattern."""
    holds = says_all(*patterns)
    return lambda text: any(map(holds, sentences(text)))


def says_name(names: Sequence[str]) -> Callable[[str], bool]:
    """A rule: the text contains at least one of the names."""
    pattern = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in names) or r"(?!)", re.IGNORECASE)
    return lambda text: pattern.search(text) is not None


def says_count(number: int, noun: str) -> Callable[[str], bool]:
    """A rule: the text counts `number` of the noun (a pattern), in digits or words.

    The number stands up to three words before the noun, or after it and a colon or bar ("species in the data: 5").
    Digits may be grouped ("2,700"). A text with more than `MOST_CLAIMS` different numbers
    does not pass.
    """
    count, word = rf"({_GROUPED}|\d{{1,4}}|{'|'.join(WORDS)})", r"[\w-]{1,30}"
    pattern = re.compile(
        rf"\b(?<!\d[.{_GAPS}]){count}\s{{1,3}}(?:{word}\s{{1,3}}){{0,3}}?(?:{noun})\b"
        rf"|\b(?:{noun})(?:\s{{1,3}}{word}){{0,3}}\s{{0,3}}[:|]\s{{0,3}}{count}\b(?!\.\d)",
        re.IGNORECASE,
    )

    def holds(text: str) -> bool:
        claims = {(match[1] or match[2]).lower() for match in pattern.finditer(text)}
        numbers = {WORDS.index(claim) if claim in WORDS else int(re.sub(r"\D", "", claim)) for claim in claims}
        return number in numbers and len(numbers) <= MOST_CLAIMS

    return holds


def says_number(
    pattern: str, values: Sequence[float], tolerance: float, *, whole: bool = True
) -> Callable[[str], bool]:
    """A rule: a sentence with the pattern has a number within `tolerance` of one of the `values`.

    A negative value may be told by its size ("falls by 2.5"), a positive one not with a minus.

    Parameters
    ----------
    whole
        Whether only whole numbers count, as for numbered things, which have no sign.
    """
    compiled = re.compile(pattern, re.IGNORECASE)

    def holds(text: str) -> bool:
        for sentence in sentences(text):
            subjects = [match.start() for match in compiled.finditer(sentence)]
            matches = [match for match in _NUMBER.finditer(sentence) if not (whole and match[4])] if subjects else []
            nearest = sorted(matches, key=partial(_distance, subjects))[:MOST_NUMBERS]
            numbers = [number for match in nearest for number in _readings(match, signed=not whole)]
            if any(
                abs(number - value) <= tolerance or (value < 0 and abs(number + value) <= tolerance)
                for number in numbers
                for value in values
            ):
                return True
        return False

    return holds


def _distance(subjects: Sequence[int], number: re.Match[str]) -> int:
    """The characters between a number and the nearest of the places of a subject, which are in order."""
    after = bisect_left(subjects, number.start())
    return min(abs(number.start() - place) for place in subjects[max(after - 1, 0) : after + 1])


def _readings(match: re.Match[str], *, signed: bool) -> Iterator[float]:
    """The possible readings of a written number: "45,102" may be one number or two."""
    sign = -1 if signed and match[1] else 1
    yield sign * float(_GAP.sub("", match[2]))
    if match[3]:
        yield from map(float, _GAP.split(match[2]))
