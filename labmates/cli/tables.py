"""Tables on the screen, and the option that writes them to files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from labmates.cli.common import F
from labmates.cli.console import err, out

if TYPE_CHECKING:
    from labmates.analysis.tables import Table


def out_option(function: F) -> F:
    """Add ``--out``, as `files`: paths whose ending is that of a table and whose folders are there."""

    def check(_ctx: click.Context, _param: click.Parameter, values: tuple[Path, ...]) -> tuple[Path, ...]:
        if values:
            from labmates.analysis.table_files import check_table

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
        help="Write it as a table too: .csv, .parquet, .tex, .json or .txt; repeatable.",
    )(function)


def print_tables(tables: Sequence[Table]) -> None:
    """Print tables, each under its title and over its notes."""
    from rich.table import Table as Shown
    from rich.text import Text

    for table in tables:
        out().print(Text(f"\n{table.title}", style="bold"))
        shown = Shown(box=None, pad_edge=False)
        rows = list(table.cells())
        widths = (max(map(len, [column.title, *cells])) for column, *cells in zip(table.columns, *rows, strict=True))
        narrow = sum(widths) + 2 * len(table.columns) > out().width
        for column in table.columns:
            heading = f"{column.group}\n{column.title}" if column.group else column.title
            side: Literal["left", "right"] = "right" if table.is_number(column) else "left"
            # Names are broken rather than cut, and intervals stand below their values where there is little room.
            if narrow and side == "right":
                heading = heading.replace(" ", "\n")
            shown.add_column(Text(heading), justify=side, overflow="fold", no_wrap=side == "right")
        for cells in rows:
            shown.add_row(
                *(
                    Text(cell.replace(" [", "\n[") if narrow and column.shows == "both" else cell)
                    for column, cell in zip(table.columns, cells, strict=True)
                )
            )
        out().print(shown)
        for note in table.notes:
            out().print(Text(note, style="dim"))


def write_files(tables: Sequence[Table], files: Sequence[Path]) -> None:
    """Write tables to each of the files that `out_option` took."""
    from labmates.analysis.table_files import write_tables

    for path in files:
        for written in write_tables(tables, path):
            err().print(f"Written to {written}", markup=False)
