"""Answers from tables in a sentence: which rows have the highest value of a column, as far as its intervals tell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from labmates.stats.intervals import EQUAL
from labmates.stats.tables import MISSING, Column, Row, Table
from labmates.util.display_names import in_words
from labmates.util.grouping import grouped

_MOST_NAMED: Final = 3
"""Parts of a table named in a sentence; of more, the number is told."""


def highest(
    table: Table,
    key: str,
    names: Sequence[str],
    within: Sequence[str] = (),
    what: str = "",
    rows: Sequence[Row] | None = None,
) -> list[str]:
    """A sentence on the rows with the highest value of a column; none without values.

    A row is above another if their intervals don't overlap, which is stricter than a test of their difference.

    Parameters
    ----------
    names
        The columns that name a row.
    within
        The columns that divide the table into parts, each with its own answer.
    what
        The value in words; by default the column's heading.
    rows
        The rows that count; by default all.

    Examples
    --------
    >>> rows = [{"model": "a", "skill": 0.9, "skill_low": 0.8, "skill_high": 1.0}]
    >>> rows += [{"model": "b", "skill": 0.5, "skill_low": 0.4, "skill_high": 0.6}]
    >>> table = Table("t", "T", [Column("model"), Column("skill", form=".1f", shows="both")], rows)
    >>> highest(table, "skill", ["model"])
    ['Highest skill: a, 0.9 [0.8, 1.0]; lowest: b, 0.5 [0.4, 0.6].']
    """
    columns = {column.key: column for column in reversed(table.columns)}  # a value stands before its interval
    value, what = columns[key], what or columns[key].title
    rows = [row for row in (table.rows if rows is None else rows) if row.get(key) is not None]
    labels, places = ([_label(row, [columns[name] for name in some], rows) for row in rows] for some in (names, within))
    named = grouped(zip(places, zip(labels, rows, strict=True), strict=True))
    parts = {place: _Part.of(value, members) for place, members in named.items()}
    if len(parts) < 2:
        return [part.sentence(what) for part in parts.values()]
    if len(parts) <= _MOST_NAMED:
        return [f"In {place}: {part.sentence(what)}" for place, part in parts.items()]
    choices = {place: part for place, part in parts.items() if part.rest or len(part.top) > 1}  # of rows
    alike = grouped((part.leaders, place) for place, part in choices.items())
    if not choices:
        return []
    if len(alike) < 2 and len(choices) == len(parts):
        return [f"Highest {what}: {who}, in each {' and '.join(within)}." for who in alike]
    told = sorted(alike.items(), key=lambda item: -len(item[1]))
    answers = [f"{who} in {_where(where, len(choices))}" for who, where in told[:_MOST_NAMED]]
    answers += ["others elsewhere"] if len(told) > _MOST_NAMED else []
    return [f"Highest {what}: {'; '.join(answers)}."]


def _label(row: Row, columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """The cells of a row in columns that differ between the rows; of all columns if none differs."""
    apart = [column for column in columns if len({column.cell(each) for each in rows}) > 1]
    cells = {column: column.cell(row) for column in apart or columns}
    told = [(column.title, cell) for column, cell in cells.items() if cell not in ("", MISSING)]
    said = ", ".join(f"{title} {cell}" if cell[:1].isdigit() else cell for title, cell in told)
    return said or f"no {' or '.join(column.title for column in cells)}"


def _where(places: Sequence[str], of: int) -> str:
    return in_words(places) if len(places) <= _MOST_NAMED and ", " not in places[0] else f"{len(places)} of {of}"


@dataclass(frozen=True)
class _Part:
    """The named rows of one part of a table, the highest value first: `top` have it, as shown, and `rest` have not."""

    column: Column
    top: Sequence[tuple[str, Row]]
    rest: Sequence[tuple[str, Row]]

    @classmethod
    def of(cls, column: Column, named: Iterable[tuple[str, Row]]) -> _Part:
        """A part from its rows in any order."""
        key = column.key
        ordered = sorted(named, key=lambda each: -each[1][key])
        shown = [column.cell({key: row[key]}) for _, row in ordered]
        ties = shown.count(shown[0])
        return cls(column, ordered[:ties], ordered[ties:])

    @cached_property
    def near(self) -> Sequence[tuple[str, Row]]:
        """Those of the rest that may be as high as the top; none if no row has an interval."""
        lows, highs = [self._end(row, "low") for _, row in self.top], [self._end(row, "high") for _, row in self.rest]
        if {*lows, *highs} == {None}:
            return []
        least = -math.inf if None in lows else min(low for low in lows if low is not None)
        return [each for each, high in zip(self.rest, highs, strict=True) if high is None or high >= least]

    @property
    def leaders(self) -> str:
        """Who is highest."""
        if not self.rest and len(self.top) > 1:
            return "all equal"
        return f"can't tell {_names(self.top)} from {_names(self.near)}" if self.near else _names(self.top)

    def sentence(self, what: str) -> str:
        """The answer with its values."""
        best = self.column.cell(self.top[0][1])
        if not self.rest:
            return f"{_names(self.top)}: {what} {best}{' each' if len(self.top) > 1 else ''}."
        if self.near:
            values = ", ".join(self.column.cell(row) for _, row in (*self.top[:1], *self.near)[:_MOST_NAMED])
            return f"Can't tell {_names(self.top)} from {_names(self.near)} in {what}: {values}."
        last, row = self.rest[-1]
        return f"Highest {what}: {_names(self.top)}, {best}; lowest: {last}, {self.column.cell(row)}."

    def _end(self, row: Row, which: str) -> float | None:
        """An end of a row's interval, which is its value if all values were equal."""
        key = self.column.key
        end: float | None = row[key] if row.get(f"{key}_reason") == EQUAL else row.get(f"{key}_{which}")
        return end


def _names(named: Sequence[tuple[str, Row]]) -> str:
    return in_words([label for label, _ in named], _MOST_NAMED)
