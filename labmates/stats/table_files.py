"""Files of tables: CSV, Parquet, JSON, LaTeX and plain text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from labmates.csv_rows import inert
from labmates.errors import MissingExtraError, UsageError
from labmates.safe_text import clean
from labmates.stats.latex import latex
from labmates.stats.tables import Column, Table

FORMATS: Final = (".csv", ".parquet", ".tex", ".json", ".txt")
_ONE_TABLE: Final = (".csv", ".parquet")


def check_table(path: Path) -> None:
    """Check that a table can be written to a file, before there is any.

    Raises
    ------
    UsageError
        If the file's ending is none of `FORMATS`, its folder can't be made, or pyarrow is not installed for Parquet.
    """
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise UsageError(f"a table's file ends in {', '.join(FORMATS)}, not '{path.name}'")
    if ending == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ModuleNotFoundError as error:
            raise MissingExtraError("a table as Parquet", "parquet") from error
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"can't write a table to '{path}': {error.strerror}") from error


def write_tables(tables: Sequence[Table], path: Path) -> list[Path]:
    """Write tables to a file in the format of its ending, and return the files that were written.

    An existing file is replaced. CSV and Parquet hold one table each: several get files of their own, with the
    names of the tables put before the ending (``out.csv``: ``out-actions.csv`` and so on).

    Raises
    ------
    UsageError
        As `check_table`, or if the file can't be written.
    """
    check_table(path)
    ending = path.suffix.lower()
    if ending in _ONE_TABLE and len(tables) != 1:
        return [file for one in tables for file in write_tables([one], path.with_stem(f"{path.stem}-{one.name}"))]
    try:
        if ending == ".parquet":
            tables[0].frame().to_parquet(path, index=False)
        else:
            path.write_text("\n".join(map(_TEXTS[ending], tables)) if ending != ".json" else _json(tables), "utf-8")
    except OSError as error:
        raise UsageError(f"can't write a table to '{path}': {error.strerror or error}") from error
    return [path]


def plain_text(table: Table) -> str:
    """A table as plain text, in columns."""
    rows = [[_over(column) for column in table.columns], *table.cells()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numbers = table.sides()

    def line(cells: Sequence[str]) -> str:
        placed = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(cells, widths, numbers, strict=True)
        )
        return "  ".join(placed).rstrip()

    shown = [line(rows[0]), "  ".join("-" * width for width in widths), *map(line, rows[1:])]
    return "\n".join([clean(table.title), "", *shown, *(["", *map(clean, table.notes)] if table.notes else [])]) + "\n"


def csv_text(table: Table) -> str:
    """All values of a table as CSV; what is missing is empty."""
    file = io.StringIO()
    writer = csv.DictWriter(file, table.keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: inert(cell) for name, cell in row.items()} for row in table.rows)
    return file.getvalue()


def _over(column: Column) -> str:
    return f"{column.group} {column.title}" if column.group else column.title


def _json(tables: Sequence[Table]) -> str:
    return json.dumps([table.as_json() for table in tables], indent=1, ensure_ascii=False, allow_nan=False) + "\n"


_TEXTS: Final[dict[str, Callable[[Table], str]]] = {".txt": plain_text, ".csv": csv_text, ".tex": latex}
