"""What the code of a run printed: each number of its outputs, with the words that name it.

A number is named by the words directly before it and those of the brackets around it (``{'Cal': (0.25, 4.1)}``), by
the words at the beginning of its line (the label of a table's row), by the header of its column, and by the line above
(the caption). Headers are matched by position, as in printed tables of pandas, or by order. What displays the data as
they are (``describe``, rows of the data's own columns) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from labmates.judges.brackets import read_parts
from labmates.judges.cells import Cell, CellReader
from labmates.judges.literals import SHORT, Told, is_telling, literals
from labmates.judges.pipes import align_tables
from labmates.judges.ranks import NUMBER, rank_lines
from labmates.judges.rows import MOST_CHARS, NOTHING, words_of
from labmates.tasks.scoring import plain_name

MOST_NUMBERS: Final = 10_000
"""Most numbers of a run's outputs that are read."""
LEAST_COLUMN: Final = 4
"""Least rows of which a place may hold computed numbers that the code states as well."""
MOST_LINE: Final = 4_000
_SYMBOLS = (
    (re.compile(r"\bP\(([^()]*)>\s?0\)"), r"share of positive \1"),
    (re.compile(r"\b[A-Za-z][*:](?=[A-Za-z]{2})"), "interaction "),
)
"""What is written for words: the probability to be above zero, and the product of two terms of a model."""
_FRAME = re.compile(r'\s*File "[^"]+", line \d+')
_MONTH: Final = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_WHEN = re.compile(
    rf"\b\d{{4}}-\d\d-\d\d\b|\b\d\d?:\d\d(?::\d\d)?\b|\b\d\d? {_MONTH}\b(?: \d{{4}}\b)?"
    rf"|\b{_MONTH} \d\d?\b(?:, \d{{4}}\b)?"
)
_WRAPPED = re.compile(r"\b(?:np\.)?\w+\((['\"]?[-+.\w]*['\"]?)\)")
_TOKEN = re.compile(
    r"(?P<number>(?<![\w.])[-−+]?(?!0\d)(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][-+]?\d{1,3})?(?![\w])(?:\s?%)?)"
    r"|(?P<open>[\[({])|(?P<close>[\])}])|(?P<comma>[,;])|(?P<word>[^\W_](?:[^\W_]|(?<=\w)['’](?=\w))*)"
)
_DATA: Final = {"d", "df", "data", "frame", "np", "pd", "round"}
"""Names in code that say nothing of what is computed."""
_GAP = re.compile(r"\s\s")
_SENTENCE = re.compile(r"[:,;=]\s|['\"{]")
"""Marks of sentences and of lists of texts, which the head of a table lacks."""
_NAMES = re.compile(r"(?:^|:)\s*(\w+(?:,\s*\w+){2,})$")
_BREAK = re.compile(r"(?<=[\[{])\n[ \t]*(?=[\[{\"'\d-])|(?<=,)\n[ \t]+(?=[\[{\"'])|\n[ \t]*(?=[\]}])")
_DESCRIBED: Final = {"count", "mean", "std", "min", "25", "50", "75", "max"}
_ASSIGNED = re.compile(r"(?:^|;)[ \t]*(?:(\w+)|\w+\[['\"](\w+)['\"]\])\s*=(?!=)\s*([^;\n]+)", re.MULTILINE)


@dataclass(frozen=True)
class Line:
    """A printed line with its words: its own, with those of its header and caption, and those of the code.

    `parts` are what its brackets hold, each with the words that name it, and the text outside them, up to semicolons.
    `decimals` counts the computed numbers with decimals; without any, `told` has the words of the code's texts.
    """

    words: frozenset[str]
    above: frozenset[str]
    code: frozenset[str]
    text: str
    decimals: int
    told: frozenset[str] = NOTHING
    parts: tuple[tuple[frozenset[str], frozenset[str]], ...] = ()


@dataclass(frozen=True)
class Printed:
    """The numbers and the lines of a run's outputs."""

    cells: tuple[Cell, ...]
    lines: tuple[Line, ...]


def read_outputs(outputs: Iterable[tuple[str, str]], columns: Sequence[str]) -> Printed:
    """The numbers that code printed, without those written into the code itself.

    Parameters
    ----------
    outputs
        Each output with its code, oldest first.
    columns
        The columns of the run's data.
    """
    cells, lines, literal, earlier = list[Cell](), list[Line](), set[float](), Told()
    raw, order = {plain_name(column) for column in columns}, tuple[str, ...]()
    distinct = dict.fromkeys((_joined(text[:MOST_CHARS]), code) for text, code in outputs)
    for number, (text, code) in enumerate(distinct):
        whole, in_texts, told = literals(code)
        literal |= whole
        for value, words in in_texts.items():
            if is_telling(value):
                earlier.setdefault(value, []).extend(words)
        in_texts |= earlier
        reader = _Reader(code, raw, order)
        read = [*reader.read(text)]
        computed = _computed_columns([found for _, found in read], literal)
        for line, found in read:
            kept = [
                cell
                for place, cell in _placed(found)
                if cell.is_size
                or not ((cell.number.value in literal and place not in computed) or _is_told(cell, line, in_texts))
            ]
            cells += [replace(cell, output=number) for cell in kept[: MOST_NUMBERS - len(cells)]]
            decimals = sum(cell.number.half > 0 for cell in kept) if found else line.decimals
            lines.append(replace(line, decimals=decimals, told=NOTHING if decimals else told))
        order = reader.order
    return Printed(tuple(_ranked(cells)), tuple(lines))


_Place = tuple[int, int, frozenset[str]]


def _placed(cells: Sequence[Cell]) -> Iterator[tuple[_Place, Cell]]:
    """Cells with their place among so many of a line, and the words that are theirs alone: alike in rows of a table."""
    return (((at, len(cells), cell.near - cell.label), cell) for at, cell in enumerate(cells))


def _computed_columns(rows: Iterable[Sequence[Cell]], literal: set[float]) -> set[_Place]:
    """The places in rows of which the code states less than half of the numbers: the others agree by chance."""
    typed: dict[_Place, list[bool]] = {}
    for place, cell in (placed for row in rows for placed in _placed(row)):
        typed.setdefault(place, []).append(cell.number.value in literal)
    return {place for place, stated in typed.items() if len(stated) >= LEAST_COLUMN and 2 * sum(stated) < len(stated)}


def _ranked(cells: Sequence[Cell]) -> Iterator[Cell]:
    ranks = rank_lines(cell.line for cell in cells)
    for cell in cells:
        yield cell if cell.number.half else replace(cell, rank=max(cell.rank, ranks.get(cell.line, 0)))


def _joined(text: str) -> str:
    """A text with each indented JSON value, also of several that are lists of records, in one line, aligned tables."""
    return align_tables(_BREAK.sub(" ", text))


def _is_told(cell: Cell, line: Line, in_texts: Told) -> bool:
    """Whether a text of the code states a number, and has a word of the line, or none but short ones."""
    return any(not text or text & (line.words | line.above) for text in in_texts.get(cell.number.value, ()))


class _Reader:
    """Reads the lines of one output."""

    def __init__(self, code: str, columns: set[str], order: tuple[str, ...]) -> None:
        self._columns = columns
        self.order = order
        self._code = [line for line in code.split("\n") if line.strip()]
        self._words = [words_of(line) for line in self._code]
        self._named = frozenset(word for words in self._words for word in words)
        self._windows: dict[frozenset[str], frozenset[str]] = {}
        self._aliases: dict[str, set[str]] = {}
        for name, key, value in _ASSIGNED.findall(code):
            if name not in _DATA:
                self._aliases.setdefault((name or key).lower(), set()).update(words_of(value) - _DATA)
        self._header: list[tuple[int, str]] = []
        self._caption = self._last = frozenset[str]()
        self._is_raw = self._is_partly_raw = self._is_spaced = False
        self._rows = 0
        self._width = 0  # of a table of a few rows of the data as columns

    def read(self, text: str) -> Iterator[tuple[Line, list[Cell]]]:
        lines = text.split("\n")
        for at, line in enumerate(lines):
            if at and _FRAME.match(lines[at - 1]):
                continue  # a line of the code, in an error
            shown = _WRAPPED.sub(r"\1", _WHEN.sub(lambda when: "-" * len(when[0]), line[:MOST_LINE]))
            for symbol, meaning in _SYMBOLS:
                shown = symbol.sub(meaning, shown)
            if _FRAME.match(shown):
                continue
            if not shown.strip():
                self._header, self._caption, self._last, self._width = [], frozenset(), frozenset(), 0
                continue
            tokens = list(_TOKEN.finditer(shown))
            names = [(match.end(), match[0]) for match in re.finditer(r"\S+", shown)]
            if names[-1][0] == self._width and plain_name(names[0][1]) in self._columns:
                continue
            if self._is_raw and self._header and len(names) == len(self._header) + 1:
                continue
            is_sentence = len(names) > 1 and not _GAP.search(shown.strip())
            is_series = len(names) == 2 <= len(self._header) and names[0][1] in dict(self._header).values()
            if self._is_spaced and (is_sentence or is_series):
                self._header = []  # what follows a table, as the means of its columns
            if self._is_header(shown, tokens) and not (len(names) == 1 and len(self._header) > 1):
                self._caption, self._header, self._rows = self._last, names, 0
                self._is_spaced = bool(_GAP.search(shown.strip()))
                self._is_raw = self._displays_data(lines[at + 1 : at + 6])
            elif not shown[0].strip() and self._are_columns(lines[at : at + 6]):
                self._width = names[-1][0]
                continue
            if not (self._is_raw and self._header):
                read, cells = self._line(shown, tokens, _label(tokens))
                below = (len(NUMBER.findall(row)) > 1 for row in lines[at + 1 : at + 3])
                is_head = names is self._header and self._is_spaced and any(below)
                yield replace(read, parts=()) if is_head else read, cells  # the head of a table selects no names
            if told := _NAMES.search(shown):
                self.order = tuple(re.split(r",\s*", told[1]))
            words = words_of(shown)
            # A dump of the data's columns names no statistic.
            self._last = words - self._columns if len(words & self._columns) > 2 else words

    def _is_header(self, line: str, tokens: Sequence[re.Match[str]]) -> bool:
        numbers = [match for match in tokens if match.lastgroup == "number"]
        named = sum(match.lastgroup == "word" for match in tokens)
        if _SENTENCE.search(line) or not named:
            return False
        if not numbers:
            return True
        is_row = all(self._column(match.end()) not in ("", match[0]) for match in numbers)
        return not is_row and line.startswith("  ") and named > len(numbers) and bool(_GAP.search(line.strip()))

    def _column(self, end: int) -> str:
        """The name of the column that ends where a number does, or an empty text."""
        return next((name for stop, name in self._header if abs(stop - end) <= 1), "")

    def _displays_data(self, following: Sequence[str]) -> bool:
        """Whether a table shows columns of the data row by row, or describes them."""
        names = [plain_name(name) for _, name in self._header]
        self._is_partly_raw = False
        firsts = [line.split()[0].rstrip("%") for line in following if len(line.split()) >= len(names)]
        if len(_DESCRIBED & set(firsts)) >= 3:
            return True
        if len(_DESCRIBED & set(names)) >= 3 and firsts and {*map(plain_name, firsts)} <= self._columns:
            return True  # transposed
        of_data = sum(name in self._columns for name in names)
        self._is_partly_raw = of_data >= 3 and bool(firsts) and firsts[0].isdigit()
        return self._is_partly_raw and of_data == len(names)

    def _are_columns(self, lines: Sequence[str]) -> bool:
        """Whether a head of row numbers stands above lines that begin with columns of the data."""
        [head, *rows] = ([plain_name(field) for field in line.split()] for line in lines)
        named = [row[0] in self._columns for row in rows if len(row) > len(head)]
        return len(head) > 1 and all(map(str.isdigit, head)) and len(named) > 1 and all(named)

    def _line(self, text: str, tokens: Sequence[re.Match[str]], label: frozenset[str]) -> tuple[Line, list[Cell]]:
        own = words_of(text)
        header = words_of(" ".join(name for _, name in self._header))
        above = header | self._caption if self._header else frozenset[str]()
        code = self._window(own)
        reader = CellReader(text, tokens, self._header, self._caption, self.order)
        cells = [
            replace(
                cell,
                label=label,
                caption=cell.caption | self._put_into(cell.near | label),
                head=" ".join(name for _, name in self._header),
                code=(self._window(cell.near) or code) | self._meant(cell.near | label),
            )
            for cell in reader.read()
        ]
        self.order = reader.order
        if self._is_spaced and len(tokens) > 1 and tokens[0][0] == str(self._rows):
            cells = cells[1:]  # the number of a row
        self._rows += bool(cells)
        decimals = sum(cell.number.half > 0 for cell in cells)
        if not code and decimals:
            cells = [replace(cell, code=self._named) for cell in cells]
        if self._is_partly_raw and self._header:
            cells = []  # each row is a record of the data
        meant = code | self._meant(own | above)
        row = self._row(text)
        parts = tuple(row or read_parts(text, tokens))
        return Line(own, self._caption if row else above, meant, text.strip(), decimals, parts=parts), cells

    def _row(self, text: str) -> list[tuple[frozenset[str], frozenset[str]]]:
        """The fields of a row of a table, each with the words that name its column, and first the row's label."""
        fields, header = text.split(), [words_of(name) for _, name in self._header]
        label = len(fields) - len(header)
        if not self._is_spaced or len(header) < 2 or not 0 <= label <= SHORT:
            return []
        named = zip([" ".join(fields[:label]), *fields[label:]], [NOTHING.union(*header), *header], strict=True)
        return [(words_of(field), names) for field, names in named]

    def _put_into(self, variables: frozenset[str]) -> frozenset[str]:
        """The words of what the code puts into variables of these names."""
        return frozenset(word for name in variables & self._aliases.keys() for word in self._aliases[name])

    def _meant(self, words: frozenset[str]) -> frozenset[str]:
        """The same, with what it puts into the variables of which these are made."""
        first = self._put_into(words)
        return first | self._put_into(first)

    def _window(self, words: frozenset[str]) -> frozenset[str]:
        """The words of the lines of code that name a word of a printed line, and of a comment above them."""
        if words in self._windows:
            return self._windows[words]
        rare = {word for word in words & self._named if len(word) > 1 and not word.isdigit()}
        found = set[str]()
        for at, of_line in enumerate(self._words):
            if rare & of_line:
                found |= of_line
                if at and self._code[at - 1].lstrip().startswith("#"):
                    found |= self._words[at - 1]
        self._windows[words] = frozenset(found) | self._meant(frozenset(found))
        return self._windows[words]


def _label(tokens: Sequence[re.Match[str]]) -> frozenset[str]:
    """The words before the first number or bracket of a line."""
    words = []
    for match in tokens:
        if match.lastgroup != "word":
            break
        words.append(match[0])
    return words_of(" ".join(words))
