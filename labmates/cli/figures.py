"""Figures: the options that name their files, and where they were drawn to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True)
class Plots:
    """Where figures are drawn to, and in which format."""

    folder: Path
    form: str

    def draw(self, name: str, figure: Figure) -> None:
        """Draw a figure to a file of this name, and say so."""
        draw(figure, self.folder / f"{name}.{self.form}")


def plots_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add ``--plots`` and ``--format``, which the verb gets as `plots`, `Plots` or None."""

    @wraps(function)
    def gathered(plots: Path | None, form: str, **values: Any) -> int:
        if plots is not None:
            from labmates.stats.figures import check_figure

            check_figure(plots / f"figure.{form}")
        return function(plots=None if plots is None else Plots(plots, form), **values)

    into = click.Path(file_okay=False, path_type=Path)
    for part in (
        click.option(
            "--format",
            "form",
            type=click.Choice(["png", "svg", "pdf"]),
            default="png",
            show_default=True,
            help="Of figures.",
        ),
        click.option("--plots", type=into, help="Draw figures into this folder."),
    ):
        gathered = part(gathered)
    return gathered
