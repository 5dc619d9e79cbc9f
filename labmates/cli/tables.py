"""Tables on the screen, and the option to write them to files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from labmates.cli.common import F
from labmates.cli.console import clean, err, out, wide

if TYPE_CHECKING:
    from labmates.stats.tables import Table


def out_option(function: F) -> F:
    """Add ``--out``, as `files`: paths with the ending of a table, in existing folders."""

    def check(_ctx: click.Context, _param: click.Parameter, values: tuple[Path, ...]) -> tuple[Path, ...]:
        if values:
            from labmates.stats.table_files import check_table

            for path in values:
                check_table(path)
        return values

    return click.option(
        "--out",
        "files",
        multiple=True,
        type=click.Path(dir_okay=False, path_type=Path),
        callback=check,
        metavar="FILE",
        help="Also write the table to a file: .csv, .parquet, .tex or .json; repeatable.",
    )(function)


def print_tables(tables: Sequence[Table]) -> None:
    """Print tables with titles and notes."""
    from rich.text import Text

    for table in tables:
        out().print(Text(f"\n{table.title}", style="bold"))
        headings = [f"{column.group}\n{column.title}" if column.group else column.title for column in table.columns]
        cells = list(table.cells())
        print_grid(headings, cells[: table.shown], table.sides())
        notes = list(table.notes)
        if table.shown is not None and len(cells) > table.shown:
            notes.append(f"The first {table.shown} of {len(cells)} rows; --out and --json have all.")
        for note in notes:
            out().print(Text(note, style="dim"))


def print_grid(
    headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool], *, title: str | None = None
) -> None:
    """Print cells below headings, without their control characters.

    On a narrow screen, intervals and errors go below their values, and names are wrapped. Numbers are never cut: if
    necessary, lines exceed the screen. `numbers` flags numeric columns, which are right-aligned and not wrapped.
    """
    from rich.table import Table as Shown
    from rich.text import Text

    whole = columns = [list(map(clean, cells)) for cells in zip(headings, *rows, strict=True)]
    room, console = out().width, out()
    if _width(whole) > room:
        broken = [_broken(cells) if number else cells for cells, number in zip(whole, numbers, strict=True)]
        for most, piece in _LINES:
            columns = [
                cells if number else _wrapped(cells, most, piece) for cells, number in zip(broken, numbers, strict=True)
            ]
            if _width(columns) <= room:
                break
        else:
            columns, console = whole, wide(_width(whole))
    shown = Shown(box=None, pad_edge=False, title=None if title is None else Text(title), title_justify="left")
    for (heading, *_), number in zip(columns, numbers, strict=True):
        side: Literal["left", "right"] = "right" if number else "left"
        shown.add_column(Text(heading), justify=side, overflow="fold", no_wrap=number)
    for cells in zip(*(cells[1:] for cells in columns), strict=True):
        shown.add_row(*map(Text, cells))
    console.print(shown)


_LINES = [*((most, 16) for most in range(60, 8, -1)), (8, 12), (8, 8)]
"""Lengths of lines of wrapped names, widest first: the most characters, and up to how many a part stays whole."""
_PART = re.compile(r"[^\s:/_-]*[\s:/_-]*")


def _wrapped(cells: Sequence[str], most: int, longest_part: int) -> list[str]:
    """Texts in lines of at most `most` characters, broken after spaces and the marks inside names where possible."""
    parts = [_PART.findall(cell) for cell in cells]
    most = max(most, min(longest_part, max(len(part.rstrip()) for cell in parts for part in cell)))
    texts = []
    for cell in parts:
        lines = [""]
        for part in cell:
            if lines[-1] and len(lines[-1] + part.rstrip()) > most:
                lines.append("")
            lines[-1] += part
            while len(lines[-1].rstrip()) > most:
                lines[-1:] = [lines[-1][:most], lines[-1][most:]]
        texts.append("\n".join(map(str.rstrip, lines)))
    return texts


def _width(columns: Sequence[Sequence[str]]) -> int:
    from rich.cells import cell_len

    longest = (max(cell_len(line) for cell in cells for line in cell.split("\n")) for cells in columns)
    return sum(longest) + 2 * (len(columns) - 1)


def _broken(cells: Sequence[str]) -> list[str]:
    heading, *rest = cells
    return [heading.replace(" ", "\n"), *(cell.replace(" [", "\n[").replace(" ±", "\n±") for cell in rest)]


def write_files(tables: Sequence[Table], files: Sequence[Path]) -> None:
    """Write tables to each of the files of `out_option`."""
    from labmates.stats.table_files import write_tables

    for path in files:
        for written in write_tables(tables, path):
            err().print(f"Written to {written}")
