"""The seven sections of a report, and whether they have substance (paper: section 4.1.2 and appendix L, completeness).

Our reading of "substantive": at least `LEAST_WORDS` words, in statements (sentences, list items, table rows) of four
words or more. Headings, fenced blocks, placeholders and statements repeated from
an earlier section do not count. A heading that names two sections ("Data and methods") needs twice as much.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from labmates.judges.prose import is_placeholder, statements, words

SECTIONS: Final = (
    "abstract",
    "introduction",
    "dataset description",
    "methods",
    "results",
    "evaluation",
    "conclusion",
)
LEAST_STATEMENT_WORDS: Final = 4
LEAST_WORDS: Final = 20
MOST_HEADING_WORDS: Final = 9
MOST_SHARED: Final = 2

# Tried in order on each part of a heading, so that "Introduction to the data" is an introduction and "Evaluation
# results" an evaluation.
_NAMES: Final[Mapping[str, str]] = {
    "abstract": r"abstract|executive summary",
    "introduction": r"introduction|background|motivation",
    "conclusion": r"conclusions?|concluding|closing remarks|final remarks",
    "evaluation": r"evaluation|validation|assessment",
    "results": r"results?|findings",
    "methods": r"methods?|methodology|approach|modell?ing|experimental (?:setup|design)|materials",
    "dataset description": r"(?:(?:dataset|data set|data)(?: description| overview)?)|datasets",
}
_MATCH: Final = {section: re.compile(rf"\b(?:{names})\b") for section, names in _NAMES.items()}
_ATX = re.compile(r"\s{0,3}(#{1,6})\s(.*)$")
_UNDERLINE = re.compile(r"\s{0,3}(=+|-+)\s*$")
_BOLD = re.compile(r"\s{0,3}(\*\*|__)(?=\S)(.{1,100}?)\1\s*([:.–—-]?)\s*(.*)$")
_NUMBERING = re.compile(r"^\W*(?:section\s+)?(?:(?:\d{1,2}|[ivx]{1,4}|[a-h])(?:\.\d{1,2}){0,3}\W+)?")
_PARTS = re.compile(r"\band\b|[&,/+:]|\s[-–—]\s")
_BARE_LEVEL: Final = 7


@dataclass(frozen=True)
class Section:
    """One of the seven sections of a report: its text without headings, and the number of words that count.

    A missing section is empty.
    """

    name: str
    text: str
    words: int
    has_substance: bool


@lru_cache(maxsize=256)  # reports share their headings
def named_sections(heading: str, *, exact: bool = False) -> tuple[str, ...]:
    """The sections named in a heading: none, one, or two; more are a table of contents.

    With `exact`, a part of the heading must be the name itself: "Evaluation", not "Evaluation protocol".
    """
    plain = _NUMBERING.sub("", re.sub(r"[*_`#]", "", heading).strip().lower()).rstrip(" .:")
    if len(plain.split()) > MOST_HEADING_WORDS:
        return ()
    if plain == "summary":
        return ("abstract",)
    sections: dict[str, None] = {}
    for part in map(str.strip, _PARTS.split(plain)):
        tests = ((n, pattern.fullmatch(part) if exact else pattern.search(part)) for n, pattern in _MATCH.items())
        sections.update(dict.fromkeys([name for name, match in tests if match][:1]))
    return tuple(sections) if len(sections) <= MOST_SHARED else ()


def find_sections(prose: str) -> dict[str, Section]:
    """The seven sections of a report's prose by name, in order; missing ones are empty.

    Text under a deeper heading belongs to the enclosing section, unless the heading is exactly the name of another one.
    Text under a heading of the same level without a section's name belongs to none. Repeated sections are joined.
    """
    texts: dict[str, list[str]] = {name: [] for name in SECTIONS}
    lengths = dict.fromkeys(SECTIONS, 0)
    seen: set[str] = set()
    for names, text in _chunks(prose):
        fresh = _count_fresh(text, seen) if names else 0
        for name in names:
            texts[name].append(text)
            lengths[name] += fresh // len(names)
    return {
        name: Section(
            name,
            "\n".join(texts[name]).strip(),
            lengths[name],
            lengths[name] >= LEAST_WORDS,
        )
        for name in SECTIONS
    }


def _count_fresh(text: str, seen: set[str]) -> int:
    """The number of words in the new statements that count; adds them to `seen`."""
    count = 0
    for statement in statements(text):
        spoken = words(statement)
        key = " ".join(spoken)
        if len(spoken) >= LEAST_STATEMENT_WORDS and key not in seen and not is_placeholder(statement):
            seen.add(key)
            count += len(spoken)
    return count


def _chunks(prose: str) -> list[tuple[tuple[str, ...], str]]:
    """The prose split at its headings; each part with its sections."""
    lines = prose.split("\n")
    headings = {n: heading for n, line in enumerate(lines) if (heading := _marked_heading(line, lines[n + 1 : n + 2]))}
    if not any(named_sections(heading.title) for heading in headings.values()):
        # Only bold or bare lines can be this report's headings.
        headings |= {
            n: heading for n, line in enumerate(lines) if n not in headings and (heading := _bare_heading(line))
        }
    title = _title(headings)
    chunks: list[tuple[tuple[str, ...], list[str]]] = [((), [])]
    around: list[tuple[int, tuple[str, ...]]] = []
    for number, line in enumerate(lines):
        titles = headings.get(number)
        if titles is None:
            chunks[-1][1].append(line)
            continue
        while around and around[-1][0] >= titles.level:
            around.pop()
        outer = around[-1][1] if around else ()
        names = () if number == title else named_sections(titles.title, exact=bool(outer)) or outer
        around.append((titles.level, names))
        chunks.append((names, [titles.rest]))
    return [(names, "\n".join(text)) for names, text in chunks]


def _title(headings: Mapping[int, _Heading]) -> int | None:
    """The line of the report's title: a first heading above all others, unless it is a section's name."""
    if len(headings) < 2:
        return None
    first = min(headings)
    above = all(heading.level > headings[first].level for line, heading in headings.items() if line != first)
    return first if above and not named_sections(headings[first].title, exact=True) else None


@dataclass(frozen=True)
class _Heading:
    level: int
    title: str
    rest: str = ""


def _is_short(line: str) -> bool:
    return 0 < len(line.split()) <= MOST_HEADING_WORDS


def _marked_heading(line: str, following: list[str]) -> _Heading | None:
    """A heading with number signs, or underlined on the next line."""
    if atx := _ATX.match(line):
        return _Heading(len(atx[1]), atx[2].strip(" \t#"))
    under = _UNDERLINE.match(following[0]) if following else None
    if under and _is_short(line) and "|" not in line:
        return _Heading(1 if under[1][0] == "=" else 2, line)
    return None


def _bare_heading(line: str) -> _Heading | None:
    """A bold heading, alone or followed by its text, or a line with only a section's name."""
    if bold := _BOLD.match(line):
        ends = bold[2][-1] in ".:" or bold[3] in (".", ":", "-", "–", "—")
        if named_sections(bold[2]) and (ends or not bold[4]):
            return _Heading(_BARE_LEVEL, bold[2], bold[4])
    plain = line.strip().rstrip(":")
    if _is_short(line) and named_sections(plain, exact=True) and plain[-1:] not in (".", ",", ";"):
        return _Heading(_BARE_LEVEL, plain)
    return None
