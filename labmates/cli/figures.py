"""Figures: the option that names a file, and where it was drawn to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import F
from labmates.cli.console import err

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_option(what: str = "it") -> Callable[[F], F]:
    """Return what adds ``--plot``, as `plot`: a file that a figure can be drawn to, or None."""

    def check(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
        if path is not None:
            from labmates.stats.figures import check_figure

            check_figure(path)
        return path

    return click.option(
        "--plot",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=check,
        help=f"Draw {what} to a file: png, svg or pdf.",
    )


def draw(figure: Figure, path: Path) -> None:
    """Draw a figure to a file, and say so."""
    from labmates.stats.figures import save_figure

    save_figure(figure, path)
    err().print(f"Drawn to {path}", markup=False)
