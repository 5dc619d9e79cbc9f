"""The numbers of a printed line, each with the words that name it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from labmates.judges.brackets import KEY, Around
from labmates.judges.ranks import NUMBER, rank_numbers
from labmates.judges.rows import NOTHING, Number, magnitude, words_of

_IDLE: Final = {"There", "there", "We", "we", "is", "are", "was", "were", "has", "have", "found", "of", "in", "all"}
"""Words before a number that name nothing: "there are 7 species"."""
_INNER = re.compile(r"[^\[\](){}]*")
_LEVEL = re.compile(r"\d\d(?:\.\d)?\s?%\s{0,3}(?:\[|(?:\w{1,20}\s)?(?:interval|ci\b|hdi\b|band))", re.IGNORECASE)
"""The level of an interval, which is no share."""
_QUOTED = re.compile(r"['\"]([^'\"]+)['\"]")


@dataclass(frozen=True)
class Cell:
    """A printed number, or the size of a printed list.

    Attributes
    ----------
    near
        Words directly before it, of the brackets around it, and of its column.
    label
        Words at the beginning of its line.
    caption
        Words of the line above, or above the header of its table, and of what the code puts into variables of this
        name.
    code
        Words of the lines of code that print it, as far as they can be told by its words.
    after
        The words up to the next number or mark.
    negative
        Whether it has a minus sign.
    is_size
        Whether it is the number of entries of a list, which the line itself doesn't print.
    around
        The words of each bracket around it, the innermost first, and those of the line.
    record
        The text of the brackets around it, if they hold keys.
    head
        The names of the columns of its table.
    output
        The number of the output that has it.
    rank
        How many others stand before it, from the nearer end, in the order of values that each of them has.
    """

    number: Number
    near: frozenset[str]
    label: frozenset[str]
    caption: frozenset[str]
    code: frozenset[str]
    line: str
    after: frozenset[str] = frozenset()
    negative: bool = False
    is_size: bool = False
    around: tuple[frozenset[str], ...] = ()
    record: str = ""
    head: str = ""
    output: int = 0
    rank: int = 0


class CellReader:
    """Reads the cells of one line, token by token.

    Attributes
    ----------
    order
        The keys of the last record, which name the numbers of lists of the same length.
    """

    def __init__(
        self,
        text: str,
        tokens: Sequence[re.Match[str]],
        header: Sequence[tuple[int, str]],
        caption: frozenset[str],
        order: tuple[str, ...],
    ) -> None:
        self.order = order
        self._text, self._tokens = text, tokens
        self._header, self._caption = header, caption
        self._above = caption | words_of(" ".join(name for _, name in header))
        self._ranks = rank_numbers(text, tokens)
        self._brackets = Around(text, tokens)
        self._stack: list[tuple[frozenset[str], int]] = []  # the words that name each open bracket, and its entries
        self._before: list[frozenset[str]] = []  # of these words, those before the bracket
        self._records: list[set[str] | None] = []  # the texts of each bracket, if it is a record in a list
        self._pending: list[str] = []
        self._led = NOTHING  # the words before brackets that just closed: error (blocks): 0.3
        self._listed = 0
        numbers = sum(match.lastgroup == "number" for match in tokens)
        self._place = len(header) - numbers  # of the next number in the header, if nearly all columns have one
        self._is_placed = self._place in (0, 1)

    def read(self) -> Iterator[Cell]:
        """The cells in order."""
        for at, match in enumerate(self._tokens):
            self._brackets.pass_by(match)
            if match.lastgroup == "word":
                self._pending.append(match[0])
            elif match.lastgroup == "open":
                self._open(match)
            elif match.lastgroup == "close":
                yield from self._close()
            elif match.lastgroup == "comma":
                self._part()
            else:
                yield self._number(match, self._tokens[at + 1 :])

    def _open(self, match: re.Match[str]) -> None:
        if self._text[: match.start()].rstrip().endswith("%") and match[0] == "[":
            self._pending = ["interval"]  # 95% [0.1, 0.2]
        inner = _INNER.match(self._text, match.end())
        plain = inner[0] if inner else ""
        keys, quoted = KEY.findall(plain), _QUOTED.findall(plain)
        if len(quoted) == 1 and not keys and not NUMBER.search(quoted[0]):
            self._pending += quoted  # (3.1, 'rain', 0.2)
        self._before.append(words_of(" ".join(self._pending)))
        self._stack.append((self._before[-1], 0))
        is_entry = self._text[max(match.start() - 3, 0) : match.start()].rstrip().endswith(("[", ","))
        self._records.append(set() if keys and is_entry else None)
        self._pending, self._led = [], NOTHING
        if len(keys) >= 3:
            self.order = tuple(keys)
        self._listed = 0 if keys or len(NUMBER.findall(plain)) != len(self.order) else len(self.order)

    def _close(self) -> Iterator[Cell]:
        if self._stack:
            _, size = self._stack.pop()
            self._led = self._before.pop()
            if self._records.pop() is None and (size > 1 or self._pending):
                around = self._led or NOTHING.union(*(words for words, _ in self._stack))
                cell = _cell(str(size + bool(self._pending)), around, self._above, self._text, is_size=True)
                yield replace(cell, around=(self._brackets.closed,))
        self._pending = []

    def _part(self) -> None:
        if self._stack:
            named, size = self._stack[-1]
            words = words_of(" ".join(self._pending))
            # ('rain', 0.2, 3.1)
            self._stack[-1] = (named | words if not size else named, size + bool(self._pending))
            if (record := self._records[-1]) is not None:
                record |= words
        self._pending, self._led = [], NOTHING

    def _number(self, match: re.Match[str], following: Sequence[re.Match[str]]) -> Cell:
        column = "" if self._stack else self._column(match.end())
        name = self.order[-self._listed] if self._listed else ""
        self._listed -= bool(self._listed)
        after = _following(self._text, match.end(), following)
        if self._pending[-1:] == ["of"] and {*after} - _IDLE:
            self._pending = []  # 156 surveys of 16 sites
        if _LEVEL.match(self._text, match.start()):
            self._pending.append("interval")
        beside = [] if {*self._pending} - _IDLE or column or self._stack or self._led else after
        near = words_of(" ".join([*self._pending, column, name, *beside])).union(
            self._led, *(words for words, _ in self._stack), (self._records and self._records[-1]) or ()
        )
        self._place += 1
        self._led, self._pending = NOTHING, []
        if self._stack:
            named, size = self._stack[-1]
            self._stack[-1] = (named, size + 1)
        return replace(
            _cell(match[0], near, self._caption if column else self._above, self._text),
            after=words_of(" ".join(after)),
            around=self._brackets.words(),
            record=self._brackets.record(),
            rank=self._ranks.get(match.start(), 0),
        )

    def _column(self, end: int) -> str:
        for stop, name in self._header:
            if abs(stop - end) <= 1:
                return name
        return self._header[self._place][1] if self._is_placed and self._place < len(self._header) else ""


def _following(text: str, end: int, tokens: Sequence[re.Match[str]]) -> list[str]:
    """The words up to the next number, mark or gap."""
    words = []
    for match in tokens:
        if match.lastgroup != "word" or text[end : match.start()] != " ":
            break
        words.append(match[0])
        end = match.end()
    return words


def _cell(text: str, near: frozenset[str], caption: frozenset[str], line: str, *, is_size: bool = False) -> Cell:
    return Cell(
        magnitude(text),
        near,
        frozenset(),
        caption,
        frozenset(),
        line.strip(),
        negative=text[0] in "-−",
        is_size=is_size,
    )
