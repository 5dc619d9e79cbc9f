"""What the code of a run printed: each number of its outputs, with the words that name it.

A number is named by the words directly before it and those of the brackets around it (``{'Cal': (0.25, 4.1)}``), by
the words at the beginning of its line (the label of a table's row), by the header of its column, and by the line above
(the caption). Headers are matched by position, as in printed tables of pandas, or by order. What displays the data as
they are (``describe``, rows of the data's own columns) is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

from labmates.judges.rows import MOST_CHARS, Number, read_numbers
from labmates.tasks.scoring import plain_name
from labmates.util.python_text import statements

MOST_NUMBERS: Final = 10_000
"""Most numbers of a run's outputs that are read."""
MOST_LINE: Final = 4_000
MOST_RECORD: Final = 200
SHORT: Final = 3
"""Most letters of a word that tells nothing of what a text of the code is about."""
MOST_DEEP: Final = 4
"""Most brackets around a number that are read."""
_SYMBOLS = (
    (re.compile(r"\bP\(([^()]*)>\s?0\)"), r"share of positive \1"),
    (re.compile(r"\b[A-Za-z][*:](?=[A-Za-z]{2})"), "interaction "),
)
"""What is written for words: the probability to be above zero, and the product of two terms of a model."""
_FRAME = re.compile(r'\s*File "[^"]+", line \d+')
_WHEN = re.compile(r"\b\d{4}-\d\d-\d\d\b|\b\d\d?:\d\d(?::\d\d)?\b")
_WRAPPED = re.compile(r"\b(?:np\.)?\w+\((['\"]?[-+.\w]*['\"]?)\)")
_TOKEN = re.compile(
    r"(?P<number>(?<![\w.])[-−+]?(?!0\d)(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][-+]?\d{1,3})?(?![\w])(?:\s?%)?)"
    r"|(?P<open>[\[({])|(?P<close>[\])}])|(?P<comma>[,;])|(?P<word>[^\W_](?:[^\W_]|(?<=\w)['’](?=\w))*)"
)
_IDLE: Final = {"There", "there", "We", "we", "is", "are", "was", "were", "has", "have", "found", "of", "in", "all"}
"""Words before a number that name nothing: "there are 7 species"."""
_DATA: Final = {"d", "df", "data", "frame", "np", "pd", "round"}
"""Names in code that say nothing of what is computed."""
NOTHING: Final = frozenset[str]()
_PER_SD = re.compile(r"\bper (?:1 )?(?:sd|std|standard deviation|sigma)\b")
_GAP = re.compile(r"\s\s")
_SENTENCE = re.compile(r"[:,;=]\s|['\"{]")
"""Marks of sentences and of lists of texts, which the head of a table lacks."""
_NAMES = re.compile(r"(?:^|:)\s*(\w+(?:,\s*\w+){2,})$")
_BREAK = re.compile(r"(?<=[\[{])\n[ \t]*(?=[\[{\"'\d-])|(?<=,)\n[ \t]+(?=[\[{\"'])|\n[ \t]*(?=[\]}])")
_INNER = re.compile(r"[^\[\](){}]*")
_KEY = re.compile(r"['\"]([^'\"]+)['\"]\s*:")
_PAIR = re.compile(r"['\"]([^'\"]+)['\"]\s*:\s*['\"]([^'\"]+)['\"]")
_TRIED = re.compile(r"(?:^|;)\s*(\w+)[ =]+(\d+)\b([^;\d]*?)([-+]?\d+(?:\.\d+)?)(?=\s|;|$)")
_FIT = re.compile(r"(.*?\b(?:bic|aic|ll|llf|loglik)\b\W{0,2}?)(-?\d+(?:\.\d+)?)", re.IGNORECASE)
_SIGNED = re.compile(r"-?\d+(?:\.\d+)?")
_TUPLE = re.compile(rf"\((?:{_SIGNED.pattern}, )+{_SIGNED.pattern}\)")
_TUPLES = re.compile(rf"{_TUPLE.pattern}(?:, {_TUPLE.pattern}){{2,}}")
_QUOTED = re.compile(r"['\"]([^'\"]+)['\"]")
_NUMBER = re.compile(r"(?<!\w)[-+]?\d[\d.eE+-]*")
_DESCRIBED: Final = {"count", "mean", "std", "min", "25", "50", "75", "max"}
_ASSIGNED = re.compile(r"(?:^|;)[ \t]*(?:(\w+)|\w+\[['\"](\w+)['\"]\])\s*=(?!=)\s*([^;\n]+)", re.MULTILINE)


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
    output: int = 0
    rank: int = 0


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


_Told = dict[float, list[frozenset[str]]]
"""The numbers in texts of code, with the longer words of each text."""


@lru_cache(maxsize=10_000)  # each claim is compared with the words of the same lines and findings
def words_of(text: str) -> frozenset[str]:
    """The words of a text, in plain form; what is given per standard deviation is no standard deviation."""
    return frozenset(_PER_SD.sub("", plain_name(text)).split())


def read_outputs(outputs: Iterable[tuple[str, str]], columns: Sequence[str]) -> Printed:
    """The numbers that code printed, without those written into the code itself.

    Parameters
    ----------
    outputs
        Each output with its code, oldest first.
    columns
        The columns of the run's data.
    """
    cells, lines, literal = list[Cell](), list[Line](), set[float]()
    raw, order = {plain_name(column) for column in columns}, tuple[str, ...]()
    distinct = dict.fromkeys((_joined(text[:MOST_CHARS]), code) for text, code in outputs)
    for number, (text, code) in enumerate(distinct):
        whole, in_texts, told = _literals(code)
        literal |= whole
        reader = _Reader(code, raw, order)
        for line, found in reader.read(text):
            kept = [c for c in found if c.is_size or not _is_stated(c, line, literal, in_texts)]
            cells += [replace(cell, output=number) for cell in kept[: MOST_NUMBERS - len(cells)]]
            decimals = sum(cell.number.half > 0 for cell in kept) if found else line.decimals
            lines.append(replace(line, decimals=decimals, told=NOTHING if decimals else told))
        order = reader.order
    return Printed(tuple(_ranked(cells)), tuple(lines))


def _ranked(cells: Sequence[Cell]) -> Iterator[Cell]:
    """Cells, with the rank of their line among those that differ in numbers alone and give the fit of each."""
    sweeps: dict[str, dict[str, float]] = {}
    for line in dict.fromkeys(cell.line for cell in cells):
        if match := _FIT.match(line):
            sweeps.setdefault(_NUMBER.sub("", match[1]), {})[line] = float(match[2])
    ranks = {
        line: rank for fits in sweeps.values() for line, rank in zip(fits, _from_an_end([*fits.values()]), strict=True)
    }
    for cell in cells:
        yield cell if cell.number.half else replace(cell, rank=max(cell.rank, ranks.get(cell.line, 0)))


def _joined(text: str) -> str:
    """A text with each indented JSON value in one line, also of several lines that are lists of records."""
    return _BREAK.sub(" ", text)


def _is_stated(cell: Cell, line: Line, literal: set[float], in_texts: _Told) -> bool:
    """Whether the code states a number, in a text only if that has a word of the line, or none but short ones."""
    texts = in_texts.get(cell.number.value, ())
    return cell.number.value in literal or any(not text or text & (line.words | line.above) for text in texts)


def _literals(code: str) -> tuple[set[float], _Told, frozenset[str]]:
    """Numbers that code states: those with decimals or three digits; all in its texts, with the words of each; words.

    A number that is printed as it stands, also under a name, or is an entry of a dict, counts as one of a text.
    """
    if (read := statements(code)) is None:
        return set(), {number.value: [NOTHING] for number in read_numbers(code)}, words_of(code)
    nodes = [node for statement in read for node in ast.walk(statement)]
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    plain = [value for value in constants if isinstance(value, int | float) and not isinstance(value, bool)]
    texts = [value for value in constants if isinstance(value, str)]
    shown = [value for node in nodes for value in _as_it_stands(node)]
    named = {value.id for value in shown if isinstance(value, ast.Name)}
    shown += [node.value for node in nodes if isinstance(node, ast.Assign) and named & _plain_names(node.targets)]
    direct = [value for value in shown if isinstance(value, ast.Constant)]
    told: _Told = {}
    for text in [*texts, *(str(value.value) for value in direct)]:
        words = frozenset(word for word in words_of(text) if len(word) > SHORT and not word.isdigit())
        for number in read_numbers(text):
            told.setdefault(number.value, []).append(words)
    return {float(n) for n in plain if n != int(n) or abs(n) >= 100}, told, words_of(" ".join(texts))


def _plain_names(targets: Sequence[ast.expr]) -> set[str]:
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _as_it_stands(node: ast.AST) -> list[ast.expr]:
    """What a call of print, a dict or a formatted text holds."""
    match node:
        case ast.FormattedValue(value=value):
            return [value]
        case ast.Call(func=ast.Name("print"), args=args):
            return args
        case ast.Dict(values=values):
            return values
    return []


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
                below = (len(_NUMBER.findall(row)) > 1 for row in lines[at + 1 : at + 3])
                is_head = names is self._header and self._is_spaced and any(below)
                yield replace(read, parts=()) if is_head else read, cells  # the head of a table selects no names
            if told := _NAMES.search(shown):
                self.order = tuple(re.split(r",\s*", told[1]))
            words = words_of(shown)
            # A dump of the data's columns names no statistic.
            self._last = words - self._columns if len(words & self._columns) > 2 else words

    def _is_header(self, line: str, tokens: Sequence[re.Match[str]]) -> bool:
        numbers = sum(match.lastgroup == "number" for match in tokens)
        named = sum(match.lastgroup == "word" for match in tokens)
        if _SENTENCE.search(line) or not named:
            return False
        return not numbers or (line.startswith("  ") and named > numbers and bool(_GAP.search(line.strip())))

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
        cells = [
            replace(
                cell,
                label=label,
                caption=cell.caption | self._put_into(cell.near | label),
                code=(self._window(cell.near) or code) | self._meant(cell.near | label),
            )
            for cell in self._cells(text, tokens)
        ]
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
        parts = tuple(row or _parts(text, tokens))
        return Line(own, self._caption if row else above, meant, text.strip()[:200], decimals, parts=parts), cells

    def _row(self, text: str) -> list[tuple[frozenset[str], frozenset[str]]]:
        """The fields of a row of a table, each with the words that name its column, and first the row's label."""
        fields, header = text.split(), [words_of(name) for _, name in self._header]
        label = len(fields) - len(header)
        if not self._is_spaced or len(header) < 2 or not 0 <= label <= SHORT:
            return []
        named = zip([" ".join(fields[:label]), *fields[label:]], [NOTHING.union(*header), *header], strict=True)
        return [(words_of(field), names) for field, names in named]

    def _cells(self, text: str, tokens: Sequence[re.Match[str]]) -> Iterator[Cell]:
        header = words_of(" ".join(name for _, name in self._header))
        stack: list[tuple[frozenset[str], int]] = []
        records: list[set[str] | None] = []  # the texts of each bracket, if it is a record in a list
        pending: list[str] = []
        numbers = [match for match in tokens if match.lastgroup == "number"]
        caption = self._caption
        ranks = _ranks(text, tokens)
        brackets = _Around(text, tokens)
        order = len(self._header) - len(numbers)
        place = listed = 0
        led = NOTHING  # the words before brackets that just closed: error (blocks): 0.3
        for at, match in enumerate(tokens):
            kind = match.lastgroup
            brackets.pass_by(match)
            if kind == "word":
                pending.append(match[0])
            elif kind == "open":
                inner = _INNER.match(text, match.end())
                plain = inner[0] if inner else ""
                keys, quoted = _KEY.findall(plain), _QUOTED.findall(plain)
                if len(quoted) == 1 and not keys and not _NUMBER.search(quoted[0]):
                    pending += quoted  # (3.1, 'rain', 0.2)
                stack.append((words_of(" ".join(pending)), 0))
                is_entry = text[max(match.start() - 3, 0) : match.start()].rstrip().endswith(("[", ","))
                records.append(set() if keys and is_entry else None)
                pending, led = [], NOTHING
                if len(keys) >= 3:
                    self.order = tuple(keys)
                listed = 0 if keys or len(_NUMBER.findall(plain)) != len(self.order) else len(self.order)
            elif kind == "close":
                if stack:
                    led, size = stack.pop()
                    if records.pop() is None and (size > 1 or pending):
                        around = led or frozenset().union(*(words for words, _ in stack))
                        cell = _cell(str(size + bool(pending)), around, caption | header, text, is_size=True)
                        yield replace(cell, around=(brackets.closed,))
                pending = []
            elif kind == "comma":
                if stack:
                    named, size = stack[-1]
                    names_rest = pending and not size  # ('rain', 0.2, 3.1)
                    stack[-1] = (named | words_of(" ".join(pending)) if names_rest else named, size + bool(pending))
                    if records[-1] is not None:
                        records[-1] |= words_of(" ".join(pending))
                pending, led = [], NOTHING
            else:
                column = "" if stack else self._column(match.end(), place + order if order in (0, 1) else -1)
                name = self.order[-listed] if listed else ""
                listed -= bool(listed)
                after = _following(text, match.end(), tokens[at + 1 :])
                if pending[-1:] == ["of"] and {*after} - _IDLE:
                    pending = []  # 156 surveys of 16 sites
                beside = [] if {*pending} - _IDLE or column or stack or led else after
                near = words_of(" ".join([*pending, column, name, *beside])).union(
                    led, *(words for words, _ in stack), records[-1] or () if records else ()
                )
                led = frozenset()
                place += 1
                cell = _cell(match[0], near, caption if column else caption | header, text)
                rank = ranks.get(match.start(), 0)
                yield replace(
                    cell, after=words_of(" ".join(after)), around=brackets.words(), record=brackets.record(), rank=rank
                )
                if stack:
                    stack[-1] = (stack[-1][0], stack[-1][1] + 1)
                pending = []

    def _column(self, end: int, order: int) -> str:
        for stop, name in self._header:
            if abs(stop - end) <= 1:
                return name
        return self._header[order][1] if self._header and 0 <= order < len(self._header) else ""

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


def _ranks(text: str, tokens: Sequence[re.Match[str]]) -> dict[int, int]:
    """The ranks of numbers that stand for something with a value (``{2: 41.0, 3: 39.5}``, ``k 2 bic 41; k 3 bic 39``).

    Three or more of them are ranked, from the smallest and from the largest value, and so are tuples in the order of
    their last numbers and not of their first.
    """
    pairs = [
        (one.start(), _size(two[0]).value)
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
        if _is_ordered([one[-1] for one in tuples]) and not _is_ordered([one[0] for one in tuples]):
            for rank, one in enumerate(tuples):
                ranks |= {number.start(): min(rank, len(tuples) - 1 - rank) for number in one[:-1]}
    return ranks


def _from_an_end(values: Sequence[float]) -> list[int]:
    """How many of three or more values stand before each, from the nearer end of their order; 0 for fewer."""
    up = sorted(values)
    return [min(up.index(value), up[::-1].index(value)) if len(up) > 2 else 0 for value in values]


def _is_ordered(numbers: Sequence[re.Match[str]]) -> bool:
    values = [float(number[0]) for number in numbers]
    return values in (sorted(values), sorted(values, reverse=True))


class _Around:
    """The words of the brackets around the tokens of a line."""

    def __init__(self, text: str, tokens: Sequence[re.Match[str]]) -> None:
        self._whole = words_of(text)
        self.closed = NOTHING
        self._ends: dict[int, int] = {}
        self._text = text
        self._open: list[int] = []
        self._words: dict[int, frozenset[str]] = {}
        stack: list[int] = []
        for match in tokens:
            if match.lastgroup == "open":
                stack.append(match.start())
            elif match.lastgroup == "close" and stack:
                self._ends[stack.pop()] = match.end()

    def pass_by(self, match: re.Match[str]) -> None:
        """Enter or leave a bracket."""
        if match.lastgroup == "open":
            self._open.append(match.start())
        elif match.lastgroup == "close" and self._open:
            begin = self._open.pop()
            self.closed = words_of(self._text[begin : match.end()])

    def words(self) -> tuple[frozenset[str], ...]:
        """The words of the brackets that are open, the innermost first, and of the line."""
        for begin in (inner := self._open[-MOST_DEEP:]):
            if begin not in self._words:
                self._words[begin] = words_of(self._text[begin : self._ends.get(begin)])
        return (*(self._words[begin] for begin in reversed(inner)), self._whole)

    def record(self) -> str:
        """The text of the innermost open bracket if it has keys, else an empty text."""
        inside = self._text[self._open[-1] : self._ends.get(self._open[-1])] if self._open else ""
        return inside if len(inside) < MOST_RECORD and _KEY.search(inside) else ""


def _parts(text: str, tokens: Sequence[re.Match[str]]) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """The words in each bracket with those that name it, and the words outside of brackets up to each semicolon.

    A text under its own key is named by that key as well, but not by the other keys of its bracket.
    """
    stack: list[tuple[list[str], list[str]]] = [([], [])]
    pending: list[str] = []
    pairs, end = _PAIR.finditer(text), 0
    pair = next(pairs, None)
    for match in tokens:
        while pair and pair.end() <= match.start():
            pair = next(pairs, None)
        if pair and pair.start() <= match.start():
            if pair.end() > end:
                end = pair.end()
                yield words_of(pair[2]), words_of(" ".join([pair[1], *stack[-1][1]]))
            pending = []
        elif match.lastgroup == "word":
            pending.append(match[0])
            stack[-1][0].append(match[0])
        elif match.lastgroup == "open":
            stack.append(([], pending or stack[-1][1] or [*stack[-1][0]]))
            pending = []
        else:
            if match.lastgroup == "close" and len(stack) > 1:
                inside, names = stack.pop()
                yield words_of(" ".join(inside)), words_of(" ".join(names))
            elif match[0] == ";" and len(stack) == 1:
                yield words_of(" ".join(stack[0][0])), NOTHING
                stack[0] = ([], [])
            pending = []
    for inside, names in stack:
        yield words_of(" ".join(inside)), words_of(" ".join(names))


def _label(tokens: Sequence[re.Match[str]]) -> frozenset[str]:
    """The words before the first number or bracket of a line."""
    words = []
    for match in tokens:
        if match.lastgroup != "word":
            break
        words.append(match[0])
    return words_of(" ".join(words))


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
        _size(text),
        near,
        frozenset(),
        caption,
        frozenset(),
        line.strip()[:200],
        negative=text[0] in "-−",
        is_size=is_size,
    )


def _size(text: str) -> Number:
    """A written number without its sign."""
    return [Number(float("nan"), 0.0, 1, text), *read_numbers(text.lstrip("-−+"))][-1]
