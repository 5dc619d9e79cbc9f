"""SVG drawings: all texts are escaped, and colours come from the style sheet by class."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from markupsafe import Markup, escape

from labmates.pages.rendering import cut, plain
from labmates.stats.intervals import Estimate

COLOURS: Final = 7
"""Number of colours in the style sheet, as classes ``c0`` and so on."""
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})
_MOST_POINTS: Final = 200
"""Maximum points of a drawing with titles."""


def tag(name: str, *inside: object, **attributes: object) -> Markup:
    """An element; a trailing underscore of an attribute's name is dropped, others become hyphens."""
    written = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(plain(_short(value)))}"' for key, value in attributes.items()
    ]
    body = Markup("").join(escape(part if hasattr(part, "__html__") else plain(part)) for part in inside)
    return Markup(f"<{name}{''.join(written)}>") + body + Markup(f"</{name}>")  # noqa: S704 - escaped just now


Series = Mapping[str, Sequence[tuple[float, float]]]
"""The points of a drawing by name of their series."""


def drawing(
    width: float,
    height: float,
    title: str,
    *inside: object,
    class_: str = "",
    role: str = "img",
    series: Series = _NONE,
) -> Markup:
    """A drawing with the full width of its container.

    `title` is the alternative text, `role` is ``group`` for a drawing with links, and `series` are the numbers for the
    page's download as CSV.
    """
    rounded = {name: [[float(f"{value:.6g}") for value in point] for point in line] for name, line in series.items()}
    data = {"data_series": json.dumps(rounded, separators=(",", ":"))} if series else {}
    box = f"0 0 {_short(width)} {_short(height)}"
    return tag(
        "svg",
        tag("title", title),
        *inside,
        viewBox=box,
        role=role,
        aria_label=title,
        class_=f"drawing {class_}".strip(),
        **data,
    )


def ticks(low: float, high: float, about: int = 5, *, whole: bool = False) -> list[float]:
    """About `about` round numbers from `low` to `high`; with `whole`, only whole numbers."""
    span = high - low
    if span <= 0:
        return [low]
    raw = span / about
    power = 10.0 ** int(f"{raw:e}".partition("e")[2])
    step = next((factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw), 10 * power)
    step = max(1.0, float(int(step))) if whole else step
    first = int(low / step) * step
    places = [first + step * place for place in range(int(span / step) + 3)]
    return [round(place, 12) for place in places if low - 1e-9 * span <= place <= high + 1e-9 * span]


class Plot:
    """The frame of a plot: positions of values in the ranges `x` and `y`, and axes."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        width: float = 720,
        height: float = 240,
        left: float = 56,
        bottom: float = 34,
        right: float = 26,
        top: float = 10,
    ) -> None:
        self.width, self.height = width, height
        self._x, self._y = (ends if ends[1] > ends[0] else (ends[0], ends[0] + 1) for ends in (x, y))
        self._left, self._right, self._top, self._bottom = left, width - right, top, height - bottom

    def x(self, value: float) -> float:
        """The horizontal position of a value."""
        low, high = self._x
        return self._left + (value - low) / (high - low) * (self._right - self._left)

    def y(self, value: float) -> float:
        """The vertical position of a value."""
        low, high = self._y
        return self._bottom - (value - low) / (high - low) * (self._bottom - self._top)

    def axes(
        self,
        x_label: str,
        y_label: str,
        *,
        x_format: str = "{:g}",
        y_format: str = "{:g}",
        counts: bool = False,
        up: bool = True,
    ) -> Markup:
        """Axes with grid lines and labels; with `counts`, the horizontal axis has whole numbers.

        Without `up`, there is no vertical axis, and grid lines are vertical.
        """
        left, right = _short(self._left), _short(self._right)
        upright = [(value, self.y(value)) for value in ticks(*self._y, about=4)] if up else []
        across = [(value, self.x(value)) for value in ticks(*self._x, about=6, whole=counts)]
        low = self._bottom + 15
        parts = [
            *(tag("path", d=f"M{left} {_short(at)}H{right}", class_="grid") for _, at in upright),
            *(
                tag("text", y_format.format(value), x=self._left - 6, y=at + 4, class_="tick end")
                for value, at in upright
            ),
            *(
                tag("path", d=f"M{_short(at)} {_short(self._top)}V{_short(self._bottom)}", class_="grid")
                for _, at in across
                if not up
            ),
            *(tag("text", x_format.format(value), x=at, y=low, class_="tick middle") for value, at in across),
            tag("text", x_label, x=self._right, y=self.height - 3, class_="tick end"),
        ]
        if y_label:
            parts.append(tag("text", y_label, x=2, y=self._top + 1, class_="tick"))
        return Markup("").join(parts)

    def line(self, points: Sequence[tuple[float, float]], place: int, name: str = "") -> Markup:
        """A line in the colour and dashes of a legend entry."""
        d = "".join(f"{'L' if at else 'M'}{_short(self.x(x))} {_short(self.y(y))}" for at, (x, y) in enumerate(points))
        title = [tag("title", name)] if name else []
        return tag("path", *title, d=d or "M0 0", class_=f"line c{place % COLOURS} d{place // COLOURS % 3}")

    def points(self, points: Sequence[tuple[float, float]], name: str) -> Markup:
        """Invisible points of a line, with their values as titles."""
        return Markup("").join(
            tag("circle", tag("title", f"{name}: {y:g} at {x:g}"), cx=self.x(x), cy=self.y(y), r=5, class_="hover")
            for x, y in points
        )

    def area(
        self, lower: Sequence[tuple[float, float]], upper: Sequence[tuple[float, float]], place: int, name: str = ""
    ) -> Markup:
        """The band between two lines, with a name as title."""
        there = [f"{_short(self.x(x))} {_short(self.y(y))}" for x, y in upper]
        back = [f"{_short(self.x(x))} {_short(self.y(y))}" for x, y in reversed(lower)]
        title = [tag("title", name)] if name else []
        return tag("path", *title, d="M" + "L".join([*there, *back]) + "Z", class_=f"area c{place % COLOURS}")

    def dot(self, estimate: Estimate, y: float, place: int, title: str) -> Markup:
        """A mean with its interval at a height of the drawing, in the colour of a legend entry; the axis cuts it."""
        low, high = (min(max(self.x(end), self._left), self._right) for end in estimate.ends())
        bar = tag("path", d=f"M{_short(low)} {_short(y)}H{_short(high)}", class_=f"line c{place % COLOURS}")
        point = tag("circle", cx=self.x(estimate.value), cy=y, r=4, class_=f"area c{place % COLOURS}")
        return tag("g", tag("title", title), bar, point)

    def drawn(self, title: str, *inside: object, series: Series = _NONE) -> Markup:
        """The whole drawing."""
        return drawing(self.width, self.height, title, *inside, series=series)


def line_plot(series: Series, title: str, *, x_label: str) -> Markup:
    """Lines over a common axis of counts, such as rounds."""
    points = [point for line in series.values() for point in line] or [(0.0, 0.0)]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    plot = Plot((min(xs), max(xs)), (min(ys), max(ys)))
    lines = [plot.line(line, place, name) for place, (name, line) in enumerate(series.items())]
    if len(points) <= _MOST_POINTS:
        lines += [plot.points(line, name) for name, line in series.items()]
    return plot.drawn(title, plot.axes(x_label, "", counts=True), *lines, series=series)


def dot_plot(
    rows: Mapping[str, Sequence[Estimate | None]],
    columns: Sequence[str],
    title: str,
    x_range: tuple[float, float],
    *,
    width: float = 340,
) -> Markup:
    """Means with intervals, a line per column below its row's name, with the figures as titles."""
    band = 22 + 9 * len(columns)
    plot = Plot(x_range, (0, 1), width=width, height=30 + band * len(rows), left=14, right=14, bottom=26, top=4)
    parts = [plot.axes("", "", up=False)]
    for at, (row, estimates) in enumerate(rows.items()):
        parts.append(tag("text", tag("title", row), cut(row, int(width / 6.5)), x=2, y=band * at + 14))
        for place, (column, estimate) in enumerate(zip(columns, estimates, strict=True)):
            if estimate is not None:
                label = f"{row}{f', {column}' if column else ''}: {_shown(estimate)}, n {estimate.n}"
                parts.append(plot.dot(estimate, band * at + 24 + 9 * place, place, label))
    return plot.drawn(title, *parts)


def stacked_plot(shares: Mapping[str, Sequence[float]], steps: Sequence[float], title: str, *, x_label: str) -> Markup:
    """Stacked shares that add up to one, over `steps`."""
    plot = Plot((min(steps), max(steps)), (0, 1))
    base = [0.0] * len(steps)
    areas = []
    for place, (name, values) in enumerate(shares.items()):
        top = [below + value for below, value in zip(base, values, strict=True)]
        areas.append(plot.area(list(zip(steps, base, strict=True)), list(zip(steps, top, strict=True)), place, name))
        base = top
    series = {name: list(zip(steps, values, strict=True)) for name, values in shares.items()}
    return plot.drawn(title, *areas, plot.axes(x_label, "", y_format="{:.0%}", counts=True), series=series)


def thinned(values: Sequence[object], most: int = 240) -> list[int]:
    """The indices of at most `most` values, evenly spread from first to last."""
    if len(values) <= most:
        return list(range(len(values)))
    return sorted({round(at * (len(values) - 1) / (most - 1)) for at in range(most)})


def _shown(estimate: Estimate) -> str:
    interval = "" if estimate.low is None else f" [{estimate.low:.3g}, {estimate.high:.3g}]"
    return f"{estimate.value:.3g}{interval}"


def _short(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
