"""Tables on the screen, and the option to write them to files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import F
from labmates.cli.console import clean, err, out, say

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
    for table in tables:
        say(f"\n{table.title}", style="bold")
        headings = [f"{column.group}\n{column.title}" if column.group else column.title for column in table.columns]
        cells = list(table.cells(repeated=True))
        print_grid(headings, cells[: table.shown], table.sides(), once=[column.once for column in table.columns])
        notes = list(table.notes)
        if table.shown is not None and len(cells) > table.shown:
            notes.append(f"The first {table.shown} of {len(cells)} rows; --out and --json have all.")
        for note in notes:
            say(note, style="dim")


def print_grid(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[bool],
    *,
    once: Sequence[bool] = (),
    title: str = "",
) -> None:
    """Print cells below headings as wide as the screen (`labmates.cli.grid`), without their control characters.

    `numbers` flags numeric columns, which are right-aligned; `once` those where repeated cells are left out.
    """
    from labmates.cli.grid import Field, laid_out

    columns = [tuple(map(clean, cells)) for cells in zip(*rows, strict=True)] or [()] * len(headings)
    fields = map(Field, map(clean, headings), columns, numbers, once or [False] * len(headings))
    head, body = laid_out(list(fields), out().width)
    if title:
        say(title, style="italic")
    for lines, style in ((head, "bold"), (body, None)):
        if lines:
            out().print("\n".join(lines), style=style, soft_wrap=True)


def write_files(tables: Sequence[Table], files: Sequence[Path]) -> None:
    """Write tables to each of the files of `out_option`."""
    from labmates.stats.table_files import write_tables

    for path in files:
        for written in write_tables(tables, path):
            err().print(f"Written to {written}")
