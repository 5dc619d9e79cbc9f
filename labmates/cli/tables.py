"""Tables on the screen, and the options to write tables and figures to files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import F
from labmates.cli.console import clean, err, out, say

if TYPE_CHECKING:
    from labmates.stats.figures import Drawing
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


def print_tables(tables: Sequence[Table], *, apart: bool = True) -> None:
    """Print tables with titles and notes; `apart` prints a blank line before the first."""
    for place, table in enumerate(tables):
        say("\n" * (apart or place > 0) + table.title, style="bold")
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


_FORMATS = ("png", "svg", "pdf")


def figure_options(function: F) -> F:
    """Add ``--plot``, ``--plots`` and ``--format``; files are checked before any work."""

    def check(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
        if path is not None:
            from labmates.stats.figures import check_figure

            check_figure(path)
        return path

    def check_folder(ctx: click.Context, param: click.Parameter, folder: Path | None) -> Path | None:
        if folder is not None:
            check(ctx, param, folder / "figure.png")
        return folder

    file = click.Path(dir_okay=False, path_type=Path)
    folder = click.Path(file_okay=False, path_type=Path)
    for option in (
        click.option("--format", type=click.Choice(_FORMATS), default="png", show_default=True, help="Figure format."),
        click.option(
            "--plots", type=folder, callback=check_folder, metavar="DIR", help="Write all figures to this folder."
        ),
        click.option(
            "--plot",
            type=file,
            callback=check,
            metavar="FILE",
            help="Write the first figure to a file: png, svg or pdf.",
        ),
    ):
        function = option(function)
    return function


def draw(drawing: Drawing, values: Mapping[str, Any], *, first: bool) -> None:
    """Draw a figure to the files of `figure_options`, and report them."""
    from labmates.stats.figures import save_figure

    plot, folder = values.get("plot"), values.get("plots")
    paths = [plot] if plot is not None and first else []
    paths += [] if folder is None else [folder / f"{drawing.name}.{values['format']}"]
    if paths and (figure := drawing.draw()) is not None:
        for path in paths:
            save_figure(figure, path)
            err().print(f"Drawn to {path}")
