"""Figures: the options for files, and drawing to them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import F
from labmates.cli.console import err

if TYPE_CHECKING:
    from labmates.stats.figures import Drawing

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
