"""CSV files: users' rows by column, with clear errors, and cells that spreadsheets don't evaluate."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from labmates.errors import UsageError, telling

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def read_rows(path: Path, needed: Sequence[str] = ()) -> list[dict[str, str]]:
    """The rows of a file as mappings by column; missing cells are empty.

    `needed` are required columns. Raises `UsageError` if the file can't be read, has no rows, lacks or repeats a
    column, or a row is too long.
    """
    unread = f"can't read '{path}'"
    with telling(unread, UnicodeError, csv.Error), path.open(encoding="utf-8-sig", newline="") as file:
        table = csv.DictReader(file)
        columns = [name.strip() for name in table.fieldnames or ()]
        given = [dict(row) for row in table]
    if not given:
        raise UsageError(f"'{path}' has no rows")
    if twice := next((name for place, name in enumerate(columns) if name and name in columns[:place]), ""):
        raise UsageError(f"'{path}' has the column {twice} twice")
    for number, row in enumerate(given, start=1):
        if None in row:
            raise UsageError(f"'{path}': row {number} has more cells than there are columns ({len(columns)})")
    rows = [{name.strip(): _as_written((text or "").strip()) for name, text in row.items() if name} for row in given]
    if missing := [name for name in needed if name not in rows[0]]:
        raise UsageError(f"'{path}' has no column {', '.join(missing)}; it has {', '.join(rows[0])}")
    return rows


def inert(cell: object) -> object:
    """A cell that a spreadsheet shows instead of evaluating: a ``'`` is put before text that begins a formula.

    Numbers stay unchanged, whatever their sign.
    """
    if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) and finite(cell) is None:
        return f"'{cell}"
    return cell


def _as_written(cell: str) -> str:
    """Undo `inert`."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA_STARTS) else cell


def finite(text: str) -> float | None:
    """The number in a cell; None unless it is finite."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
