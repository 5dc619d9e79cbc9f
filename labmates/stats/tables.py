"""Tables: rows for programs, and columns that define their display.

A table is shown on a screen and written to files (`labmates.stats.table_files`). Programs get every value of every row,
unrounded; readers get the columns, rounded, with intervals beside values.

>>> table = Table(
...     "accuracy",
...     "Accuracy by model",
...     [Column("model"), Column("accuracy", form=".2f", shows="both")],
...     [{"model": "openai:a_b", "accuracy": 0.5, "accuracy_low": 0.4, "accuracy_high": 0.6}],
... )
>>> list(table.cells())
[['openai:a_b', '0.50 [0.40, 0.60]']]
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from labmates.stats.intervals import EQUAL
from labmates.util.safe_text import clean

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]

MISSING: Final = "–"
"""The text of a missing value."""
_LARGE: Final = 1000
_WIDE: Final = 8
"""Columns above which pages leave out those with one value, and show a single row as a record."""
P: Final = "p"
_LEAST_P: Final = 1e-4
_ZERO: Final = re.compile(r"-0?\.?0*%?")
CREDIBLE, ADJUSTED = "†", "‡"
"""Marks after a value: the default, and the one for values significant after adjustment for several tests."""


@dataclass(frozen=True)
class Column:
    """A column of a table for readers.

    Attributes
    ----------
    key
        Its name in the rows. Its interval has the names ``key_low`` and ``key_high``; without one, ``key_reason`` may
        say why.
    heading
        By default the key, with spaces.
    form
        Format of numbers, as in ``format(value, form)``; by default integers with thousands separators, and other
        numbers with three decimals. Numbers of a thousand and more with decimals are rounded to integers. `P` is the
        format of p values.
    shows
        The value, its interval in brackets, or both.
    group
        A heading over this column and its neighbours of the same group.
    once
        Whether to blank repeated values; a new value starts a section of the table.
    marked
        The name of a boolean in the rows that adds a dagger after the number, or of a text with the mark itself.
    meaning
        What pages say of a heading that is no word of the glossary, such as the name of a model.
    """

    key: str
    heading: str = ""
    form: str | None = None
    shows: Literal["value", "interval", "both"] = "value"
    group: str = ""
    once: bool = False
    marked: str = ""
    meaning: str = ""

    @property
    def title(self) -> str:
        """The heading."""
        return self.heading or ("95 % CI" if self.shows == "interval" else self.key.replace("_", " "))

    def cell(self, row: Row, *, reasons: bool = True) -> str:
        """The text of this column's cell in a row; without `reasons`, a missing interval is not explained."""
        low, high = row.get(f"{self.key}_low"), row.get(f"{self.key}_high")
        why = row.get(f"{self.key}_reason") if reasons else None
        interval = f"[{'=' if why == EQUAL else why}]" if why else ""
        if low is not None and high is not None:
            interval = f"[{self._shown(low)}, {self._shown(high)}]"
        if self.shows == "interval":
            return interval or MISSING
        mark = row.get(self.marked) if self.marked else ""
        value = self._shown(row.get(self.key)) + (mark if isinstance(mark, str) else CREDIBLE if mark else "")
        return f"{value} {interval}" if interval and self.shows == "both" else value

    def _shown(self, value: Any) -> str:
        if value is None:
            return MISSING
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int | float):
            if self.form == P:
                return f"{value:.4f}" if value >= _LEAST_P else f"< {_LEAST_P:.4f}"
            form = self.form if self.form is not None else "," if isinstance(value, int) else ".3f"
            if abs(value) >= _LARGE and form.endswith("f"):
                form = "+,.0f" if form.startswith("+") else ",.0f"
            text = format(value, form)
            # A rounded zero has no sign.
            return text.replace("-", "+" if form.startswith("+") else "") if _ZERO.fullmatch(text) else text
        return clean(str(value))


class Table:
    """Rows, and their display.

    Parameters
    ----------
    name
        A short name: part of file names, label in LaTeX.
    title
        A short description of its content.
    columns
        The displayed columns; by default every key of the first row.
    rows
        One mapping per row, or a data frame. NaN and infinities become None, NumPy's scalars Python's.
    notes
        Sentences under the table.
    shown
        Number of rows shown on a screen; by default all.
    """

    def __init__(
        self,
        name: str,
        title: str,
        columns: Sequence[Column] | None,
        rows: Iterable[Row] | pd.DataFrame,
        notes: Sequence[str] = (),
        *,
        shown: int | None = None,
    ) -> None:
        records: Any = rows if not hasattr(rows, "to_dict") else rows.to_dict("records")
        self.name = name
        self.title = title
        self.rows: tuple[dict[str, Any], ...] = tuple(
            {str(key): _plain(value) for key, value in row.items()} for row in records
        )
        self.columns: tuple[Column, ...] = () if columns is None else tuple(columns)
        if columns is None:
            self.columns = tuple(map(Column, self.keys()))
        ends = [column.key for column in self.columns if column.shows != "value"]
        whys = {row.get(f"{key}_reason") for key in ends for row in self.rows if row.get(key) is not None}
        why = whys.pop() if len(whys) == 1 else None
        self._has_reasons = not why  # one reason for all is told once
        told = any(note.startswith(f"No interval: {why} (") for note in notes)
        self.notes = (*notes, f"No intervals: {why}.") if why and not told else tuple(notes)
        self.shown = shown

    def keys(self) -> list[str]:
        """Names of all values in the rows, in order of first appearance; without rows, of the columns."""
        named = dict.fromkeys(key for row in self.rows for key in row)
        return list(named or dict.fromkeys(column.key for column in self.columns))

    def frame(self) -> pd.DataFrame:
        """The rows with all values as a data frame."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=self.keys())

    def cells(self, *, repeated: bool = False) -> Iterator[Sequence[str]]:
        """The texts of each row's cells; by default, without those that repeat the row above in `Column.once`."""
        rows = ([column.cell(row, reasons=self._has_reasons) for column in self.columns] for row in self.rows)
        return rows if repeated else sectioned(rows, [column.once for column in self.columns])

    def is_number(self, column: Column) -> bool:
        """Whether a column is numeric, and so right-aligned."""
        values = [row.get(column.key) for row in self.rows]
        kinds = {type(value) for value in values if value is not None}
        return bool(kinds) and kinds <= {int, float}

    def sides(self) -> list[bool]:
        """For each column, whether it is numeric."""
        return [self.is_number(column) for column in self.columns]

    @property
    def is_record(self) -> bool:
        """Whether pages show its only row as headings beside values, as it would be too wide."""
        return len(self.columns) > _WIDE and len(self.rows) == 1

    def shared(self) -> list[str]:
        """For each column of a wide table, its heading and value if all of several rows have one; else nothing."""
        if len(self.columns) <= _WIDE or len(self.rows) < 2:
            return [""] * len(self.columns)
        names = [f"{column.group} {column.title}".strip() for column in self.columns]
        columns = zip(names, zip(*self.cells(repeated=True), strict=True), strict=True)
        return [f"{name} {cells[0]}" if len({*cells}) == 1 else "" for name, cells in columns]

    def meanings(self, words: Mapping[str, str]) -> dict[str, str]:
        """The meaning of each heading that has one: the column's own, else that of the word."""
        told = {column.title: column.meaning or words.get(column.title, "") for column in self.columns}
        return {title: meaning for title, meaning in told.items() if meaning}

    def as_json(self) -> dict[str, Any]:
        """All values as JSON data."""
        return {"name": self.name, "title": self.title, "rows": list(self.rows), "notes": list(self.notes)}


def sectioned(rows: Iterable[Sequence[str]], once: Sequence[bool]) -> Iterator[list[str]]:
    """Rows with blanks in the columns of `once` where a cell and all before it equal those of the row above."""
    last: Sequence[str] = ()
    for cells in rows:
        same = [[*cells[: place + 1]] == [*last[: place + 1]] for place in range(len(cells))]
        last = cells
        yield ["" if alike and is_once else cell for cell, alike, is_once in zip(cells, same, once, strict=True)]


def _plain(value: Any) -> Any:
    """A value as a type of JSON; non-finite numbers become None."""
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return None if value != value else str(value)
