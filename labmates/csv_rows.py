"""Reading CSV files of users: rows by name of column, and what is wrong with a file in plain words."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from labmates.errors import UsageError


def read_rows(path: Path, needed: Sequence[str] = ()) -> list[dict[str, str]]:
    """Return the rows of a file by its first line; a cell that is not there is empty.

    Parameters
    ----------
    needed
        Columns that the file must have.

    Raises
    ------
    UsageError
        If the file can't be read, has no rows, or lacks a column.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [
                {name.strip(): (text or "").strip() for name, text in row.items() if name}
                for row in csv.DictReader(file)
            ]
    except (OSError, UnicodeError, csv.Error) as error:
        raise UsageError(f"can't read '{path}': {getattr(error, 'strerror', None) or error}") from error
    if not rows:
        raise UsageError(f"'{path}' has no rows")
    if missing := [name for name in needed if name not in rows[0]]:
        raise UsageError(f"'{path}' has no column {', '.join(missing)}; it has {', '.join(rows[0])}")
    return rows
