"""Layout of tables in a given width: as rows; if these are too wide, as records. No word of a cell is ever cut.

Too wide a table first loses the columns with one value, which go to a caption; then headings and texts are wrapped
between words, and intervals go below their values. If that is not enough, repeated values become headings of sections;
at last, rows become records with labelled cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from textwrap import wrap
from typing import Final

from rich.cells import cell_len

from labmates.stats.tables import MISSING, sectioned

_GAP: Final = 2
_ITEM: Final = re.compile(r".* {2,}(?=\S)|- ")
_TEXT_WIDTHS: Final = range(60, 19, -4)
"""Widths of the columns with texts, tried in turn: shorter texts are never wrapped."""


@dataclass(frozen=True)
class Field:
    """A column: its heading, the cells below, whether these are numbers, and whether repeated ones are left out."""

    heading: str
    cells: tuple[str, ...]
    is_number: bool
    once: bool = False

    @property
    def label(self) -> str:
        """The heading on one line."""
        return self.heading.replace("\n", " ")

    @property
    def width(self) -> int:
        """The width of the longest line."""
        return max(map(_width, (self.heading, *self.cells)))


def laid_out(fields: Sequence[Field], room: int) -> tuple[list[str], list[str]]:
    """The lines of a table's head and body, at most `room` wide unless a single word is longer."""
    if _total(fields) <= room:
        return _table(fields)
    name = next((field for field in fields if not field.once), None)
    same = [each for each in fields if each is not name and len(each.cells) > 1 and len({*each.cells}) == 1]
    captions = [f"{field.label} {field.cells[0] or MISSING}" for field in same]
    caption = wrapped(f"In all rows: {'; '.join(captions)}", room) if captions else []
    fields = [field for field in fields if field not in same]
    if fitted := _fitted(fields, room):
        head, body = _table(fitted)
        return [*caption, *head], body
    repeated = [field for field in fields if field.once]
    others = [field for field in fields if not field.once]
    indent = _GAP if repeated else 0
    if repeated and (fitted := _fitted(others, room - indent)):
        [head, *rows] = _rows(fitted)
        caption += [f"{' ' * indent}{line}" for line in head]
    else:
        rows = [list(_record(others, place, room - indent)) for place in range(len(fields[0].cells))]
    return caption, list(_below(repeated, rows, room, indent))


def wrapped(text: str, room: int, indent: str | None = None) -> list[str]:
    """Lines of a text, broken between words only; by default, the rest of an item stands below its second column."""
    lines: list[str] = []
    for line in text.split("\n"):
        below = min(len(item[0]), room // 2) if (item := _ITEM.match(line)) else 0
        hanging = " " * below if indent is None else indent
        lines += wrap(line, room, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False) or [""]
    return lines


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _total(fields: Sequence[Field]) -> int:
    return sum(field.width for field in fields) + _GAP * (len(fields) - 1)


def _narrow(field: Field) -> Field:
    """A field with a word of its heading on each line, and intervals and errors below their values."""
    cells = (cell.replace(" [", "\n[").replace(" ±", "\n±") if field.is_number else cell for cell in field.cells)
    return replace(field, heading=field.heading.replace(" ", "\n"), cells=tuple(cells))


def _folded(field: Field, most: int) -> Field:
    return replace(field, cells=tuple("\n".join(wrapped(cell, most)) for cell in field.cells))


def _fitted(fields: Sequence[Field], room: int) -> Sequence[Field]:
    """The fields, narrowed as far as needed; nothing if they can't be as narrow as that."""
    if _total(fields) <= room:
        return fields
    narrow = list(map(_narrow, fields))
    for most in _TEXT_WIDTHS:
        folded = [field if field.is_number else _folded(field, most) for field in narrow]
        if _total(folded) <= room:
            return folded
    return ()


def _table(fields: Sequence[Field]) -> tuple[list[str], list[str]]:
    [head, *rows] = _rows(fields)
    return head, [line for row in rows for line in row]


def _rows(fields: Sequence[Field]) -> Iterator[list[str]]:
    """The lines of the head, then those of each row."""
    widths = [field.width for field in fields]
    heads = [field.heading.split("\n") for field in fields]
    depth = max(map(len, heads))
    yield _lines(["\n".join([""] * (depth - len(lines)) + lines) for lines in heads], widths, fields)
    for row in sectioned(zip(*(field.cells for field in fields), strict=True), [field.once for field in fields]):
        yield _lines(row, widths, fields)


def _lines(cells: Sequence[str], widths: Sequence[int], fields: Sequence[Field]) -> list[str]:
    """The lines of one row."""
    columns = [cell.split("\n") for cell in cells]
    deepest = max(map(len, columns))
    return [
        (" " * _GAP)
        .join(
            _padded(lines[depth] if depth < len(lines) else "", width, right=field.is_number)
            for lines, width, field in zip(columns, widths, fields, strict=True)
        )
        .rstrip()
        for depth in range(deepest)
    ]


def _padded(text: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def _below(repeated: Sequence[Field], rows: Sequence[Sequence[str]], room: int, indent: int) -> Iterator[str]:
    """Rows of lines, indented below the values that they repeat."""
    for values, places in groupby(
        range(len(rows)), lambda place: [(each.label, each.cells[place]) for each in repeated]
    ):
        if values:
            text = ", ".join(f"{label}: {value}" for label, value in values if value)
            yield from wrapped(text, room, " " * 2 * _GAP)
        yield from (f"{' ' * indent}{line}" for place in places for line in rows[place])


def _record(fields: Sequence[Field], place: int, room: int) -> Iterator[str]:
    """A row as labelled cells, aligned with those of other rows."""
    line = ""
    for field in fields:
        longest = max(map(_width, field.cells))
        value = _padded(field.cells[place], longest, right=field.is_number)
        cell, width = f"{field.label}: {value}", _width(field.label) + 2 + longest
        cell = cell if field.cells[place] else " " * width
        if line.strip() and cell_len(line) + width > room:
            yield line.rstrip()
            line = " " * _GAP
        if cell_len(line) + width > room:
            yield from wrapped(line + cell.rstrip(), room, " " * 2 * _GAP)
            line = " " * _GAP
        else:
            line += cell + " " * _GAP
    if line.strip():
        yield line.rstrip()
