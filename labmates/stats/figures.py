"""Figures with one style: legible in print and with colour blindness; saved as PNG, SVG or PDF."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from math import isfinite
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from labmates.errors import MissingExtraError, UsageError, telling

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from labmates.stats.intervals import Estimate
    from labmates.stats.metagame import Array

FORMATS = (".png", ".svg", ".pdf")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Distinct with colour blindness too (Okabe and Ito, 2008)."""
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
"""Markers, so that colour is never the only distinction."""
LEGEND_ROW = 0.18
"""Height of a legend's row in inches; a figure must be at least as high as its legend."""
GREY = "#8a8a8a"
_DPI = 160
_BOLD_CHARS = 10
"""Characters of a figure's title per inch."""
_STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "svg.hashsalt": "labmates",
}


@dataclass(frozen=True)
class Picture:
    """A drawn figure.

    Attributes
    ----------
    title
        Its caption.
    alt
        A description of its content.
    svg
        Its SVG text.
    """

    title: str
    alt: str
    svg: str

    @property
    def address(self) -> str:
        """The picture as a data URL."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()


@dataclass(frozen=True)
class Drawing:
    """A figure that is drawn on demand.

    Attributes
    ----------
    name
        A short name, part of file names.
    title, alt
        The caption, and a description of the content.
    draw
        Returns the figure; None if there is nothing to draw.
    """

    name: str
    title: str
    alt: str
    draw: Callable[[], Figure | None]

    def picture(self) -> Picture | None:
        """The figure as a picture; None if there is nothing to draw."""
        figure = self.draw()
        return None if figure is None else Picture(self.title, self.alt, svg_text(figure))


def paged(name: str, title: str, alt: str, draws: Sequence[Callable[[], Figure | None]]) -> list[Drawing]:
    """A figure that may have several pages: ``NAME``, ``NAME-2``, …"""
    if len(draws) == 1:
        return [Drawing(name, title, alt, draws[0])]
    return [
        Drawing(name if page == 1 else f"{name}-{page}", f"{title}, page {page} of {len(draws)}", alt, draw)
        for page, draw in enumerate(draws, start=1)
    ]


def look(place: int) -> tuple[str, str]:
    """The colour and marker of the n-th element of a figure; the first 49 differ."""
    return COLOURS[place % len(COLOURS)], MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]


def error_bars(estimates: Sequence[Estimate]) -> tuple[list[float], list[float]]:
    """Distances from values down and up to the ends of their intervals, for matplotlib."""
    bounds = [(estimate.value, *estimate.ends()) for estimate in estimates]
    return [value - low for value, low, _ in bounds], [high - value for value, _, high in bounds]


def check_figure(path: Path) -> None:
    """Check, before drawing, that a figure can be drawn and written.

    Raises
    ------
    UsageError
        If the ending is not in `FORMATS`, the folder can't be made, or matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"a figure's file ends in {', '.join(FORMATS)}, not '{path.name}'")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("a figure", "plots") from error
    with telling(f"can't write a figure to '{path}'"):
        path.parent.mkdir(parents=True, exist_ok=True)


def new_figure(
    width: float, height: float, *, rows: int = 1, columns: int = 1, height_ratios: Sequence[float] | None = None
) -> tuple[Figure, list[Axes]]:
    """An empty figure and its axes, row by row.

    Parameters
    ----------
    width, height
        In inches.
    height_ratios
        Relative heights of rows; by default equal.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, height_ratios=height_ratios)
    return figure, list(axes.ravel())


def add_legend_beside(ax: Axes) -> None:
    """Put the legend to the right of the axes, outside the data."""
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)


def title_figure(figure: Figure, title: str) -> None:
    """Put a title over a whole figure, at its left edge, on as many lines as its width needs."""
    text = fill(title, int(_BOLD_CHARS * figure.get_figwidth()))
    figure.suptitle(text, x=0.01, ha="left", fontsize=10, fontweight="bold")


def add_scale(figure: Figure, image: AxesImage, axes: Sequence[Axes], label: str) -> None:
    """Show what the colours of a heat map mean, to the right of `axes`."""
    bar = figure.colorbar(image, ax=axes)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=8)


_LIGHT = 0.5
"""Brightness (ITU-R BT.601) above which a cell is light."""


def write_numbers(ax: Axes, panel: Array, ends: Sequence[Array] = (), others: Array | None = None) -> None:
    """Write the values into the cells of a heat map, with intervals and further values below them.

    The heat map is the last image of `ax`; numbers are white on dark cells and black on light ones.
    """
    image = ax.images[-1]
    for row, column in product(range(panel.shape[0]), range(panel.shape[1])):
        if isfinite(panel[row, column]):
            red, green, blue, _ = image.to_rgba(panel[row, column])
            colour = "black" if 0.299 * red + 0.587 * green + 0.114 * blue > _LIGHT else "white"
            style: dict[str, Any] = {"ha": "center", "va": "center", "color": colour, "textcoords": "offset points"}
            interval = [f"{end[row, column]:.2f}" for end in ends if isfinite(end[row, column])]
            more = [] if others is None else [f"{value:.2f}" for value in others[row, column]]
            small = [line for line in (" to ".join(interval), ", ".join(more)) if line]
            ax.annotate(f"{panel[row, column]:.2f}", (column, row), (0, 4 * len(small)), fontsize=7, **style)
            for place, line in enumerate(small):
                ax.annotate(line, (column, row), (0, 4 * len(small) - 9 - 7 * place), fontsize=5, **style)


def name_cells(ax: Axes, rows: Iterable[str], columns: Iterable[str], *, fontsize: float = 7) -> None:
    """Name the rows and columns of a heat map; `fontsize` is that of rows."""
    down, across = list(rows), list(columns)
    ax.set_yticks(range(len(down)), down, fontsize=fontsize)
    ax.set_xticks(range(len(across)), across, fontsize=7, rotation=45, ha="right")


def has_figures() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def svg_text(figure: Figure) -> str:
    """A figure as SVG; deterministic."""
    return figure_file(figure, ".svg").decode()


def figure_file(figure: Figure, ending: str) -> bytes:
    """A figure as a file with an ending of `FORMATS`; deterministic."""
    import matplotlib

    _disable_formulas(figure)
    undated: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending, {})
    file = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        figure.savefig(file, format=ending[1:], dpi=_DPI, metadata=undated)
    return file.getvalue()


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure to a file (deterministic); a `UsageError` if that fails."""
    check_figure(path)
    with telling(f"can't write a figure to '{path}'"):
        path.write_bytes(figure_file(figure, path.suffix.lower()))


def _disable_formulas(figure: Figure) -> None:
    """Show dollar signs in texts literally: two dollars in users' names would delimit a formula."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if isinstance(text, Text) and "$" in text.get_text():
            text.set_parse_math(False)
