"""Figures of self-play, evolution, fixation, and the behaviour of strategies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labmates.stats.figures import GREY, LEGEND_ROW, add_legend_beside, look, new_figure, title_figure
from labmates_populations.diversity import Map, ellipse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from labmates_populations.outcomes import Points

_MOST_DRAWN = 6
_REST = "all others"
_PANEL_CHARS = 42
"""Most characters of a line over a panel, which is as wide."""
_KEYED: Any = {"fontsize": 8, "title_fontsize": 8, "alignment": "left", "frameon": False}
"""The style of a legend with a key of its marks as a title."""


def diversity_figure(
    components: Map, sets: Mapping[str, Sequence[int]], references: Mapping[str, NDArray[np.float64]], title: str
) -> Figure:
    """A map of strategies by their first two principal components.

    Parameters
    ----------
    sets
        The rows of each set of strategies, drawn with its centre and the ellipse of one standard deviation.
    references
        Vectors of the reference strategies.
    """
    figure, [axes] = new_figure(7.0, max(5.0, 0.6 + LEGEND_ROW * len(sets)))
    for place, (name, rows) in enumerate(sets.items()):
        _draw_set(axes, components.points[list(rows)], name, place)
    # Strategies with the same behaviour share a point and a label.
    at: dict[tuple[float, float], list[str]] = {}
    for name, vector in references.items():
        x, y = components.project(vector[None])[0]
        at.setdefault((round(float(x), 2), round(float(y), 2)), []).append(name)
    for (x, y), names in at.items():
        axes.plot(x, y, marker="x", color=GREY, linestyle="")
        axes.annotate(", ".join(names), (x, y), xytext=(4, 4), textcoords="offset points", fontsize=7, color="#444444")
    axes.margins(x=0.15)
    axes.set_xlabel(f"first component ({100 * components.explained[0]:.0f} % of the variance)")
    axes.set_ylabel(f"second component ({100 * components.explained[1]:.0f} %)")
    axes.set_title(title, loc="left", fontsize=10)
    axes.plot([], [], marker="x", color=GREY, linestyle="", label="reference strategy")
    key = "small: strategies\nlarge: their mean\nellipse: 1 SD"
    axes.legend(title=key, loc="center left", bbox_to_anchor=(1.01, 0.5), **_KEYED)
    return figure


def _draw_set(axes: Axes, points: NDArray[np.float64], name: str, place: int) -> None:
    colour, marker = look(place)
    axes.scatter(points[:, 0], points[:, 1], s=14, alpha=0.5, color=colour, marker=marker, linewidths=0)
    centre = points.mean(axis=0)
    axes.plot(*centre, marker=marker, color=colour, markeredgecolor="white", markersize=9, linestyle="", label=name)
    if (outline := ellipse(points)) is not None:
        axes.plot(outline[1][:, 0], outline[1][:, 1], color=colour, linewidth=1)


def variants_figure(components: Map, panels: Mapping[str, Mapping[str, Sequence[int]]], title: str) -> Figure:
    """Sets by their way of writing, side by side on the map of all strategies.

    Parameters
    ----------
    panels
        For each model and attitude, the rows of each variant; a variant has the same colour in all panels.
    """
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure, every = new_figure(3.2 * columns, 0.6 + 2.8 * rows, rows=rows, columns=columns)
    names = sorted({name for sets in panels.values() for name in sets})
    for axes, (panel, sets) in zip(every, panels.items(), strict=False):
        axes.scatter(components.points[:, 0], components.points[:, 1], s=4, color="#dddddd", linewidths=0)
        for name, members in sets.items():
            _draw_set(axes, components.points[list(members)], name, names.index(name))
        axes.set_title(fill(panel, _PANEL_CHARS), loc="left", fontsize=9)
        axes.legend(fontsize=7, framealpha=0.7, edgecolor="none")
        if axes is not every[0]:
            axes.sharex(every[0])
            axes.sharey(every[0])
    for axes in every[len(panels) :]:
        axes.set_axis_off()
    title_figure(figure, title)
    figure.supxlabel(f"first component ({100 * components.explained[0]:.0f} % of the variance)", fontsize=9)
    figure.supylabel(f"second component ({100 * components.explained[1]:.0f} %)", fontsize=9)
    return figure


def selfplay_figure(curves: Mapping[str, Points], bounds: Sequence[tuple[float, float]], title: str) -> Figure:
    """The welfare of groups by their share of selfish players.

    Parameters
    ----------
    bounds
        The bounds of each curve's welfare. Where they differ, they have the colour of the first curve with them.
    """
    figure, [axes] = new_figure(6.0, max(4.0, 0.6 + LEGEND_ROW * len(curves)))
    several = len(set(bounds)) > 1
    for ends in dict.fromkeys(bounds):
        colour = look(bounds.index(ends))[0] if several else GREY
        for bound in ends:
            axes.axhline(bound, color=colour, linewidth=0.8, linestyle=":")
    axes.plot([], [], color=GREY, linewidth=0.8, linestyle=":", label="minimum and maximum possible")
    axes.fill_between([], [], color=GREY, alpha=0.4, linewidth=0, label="95 % interval")
    for place, (name, points) in enumerate(curves.items()):
        share, welfare, low, high = np.array([(share, mean.value, *mean.ends()) for share, mean in points]).T
        colour, marker = look(place)
        axes.fill_between(share, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(share, welfare, color=colour, marker=marker, markersize=3, linewidth=1.2, label=name)
    axes.set_xlabel("share of selfish players")
    axes.set_ylabel("mean payoff per round")
    axes.set_title(title, loc="left", fontsize=10)
    add_legend_beside(axes)
    return figure


def evolution_figure(panels: Mapping[str, Sequence[Sequence[Mapping[str, float]]]], title: str) -> Figure:
    """The shares of genes by generation: each run as a thin line, the mean of the runs as a thick one.

    A run that has ended keeps its last shares in the mean, so that each point is a mean of all runs.

    Parameters
    ----------
    panels
        By the name of each condition, its runs; each run has a mapping from genes to shares for each generation.
    """
    totals: Counter[str] = Counter()
    for shares in (shares for runs in panels.values() for run in runs for shares in run):
        totals.update(shares)
    drawn = [gene for gene, _ in totals.most_common(_MOST_DRAWN)]
    rest = len(totals) > len(drawn)
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure, every = new_figure(3.5 + 3.5 * columns, 0.8 + 3.2 * rows, rows=rows, columns=columns)
    for axes, (name, runs) in zip(every, panels.items(), strict=False):
        length = max(map(len, runs))
        lasting = [[*run, *[run[-1]] * (length - len(run))] for run in runs]
        values = np.array([[[shares.get(gene, 0.0) for gene in drawn] for shares in run] for run in lasting])
        if rest:
            values = np.concatenate([values, 1 - values.sum(axis=2, keepdims=True)], axis=2)
        for place, gene in enumerate([*drawn, _REST][: values.shape[2]]):
            colour, marker = (GREY, "") if gene == _REST else look(place)
            for run, shares in zip(runs, values, strict=True):
                line: dict[str, Any] = {"marker": ".", "markersize": 4, "markevery": [-1], "linewidth": 0.5}
                axes.plot(shares[: len(run), place], color=colour, alpha=0.5, **line)
            style: dict[str, Any] = {"marker": marker, "markevery": (place, 1 + length // 6), "label": gene}
            axes.plot(values[:, :, place].mean(axis=0), color=colour, linewidth=1.8, **style)
        axes.set(ylim=(0, 1), xlabel="generation", ylabel="share of the population")
        axes.locator_params(axis="x", integer=True)
        axes.set_title(fill(name, _PANEL_CHARS), loc="left", fontsize=8)
    for axes in every[len(panels) :]:
        axes.set_axis_off()
    title_figure(figure, title)
    handles, labels = every[0].get_legend_handles_labels()
    key = "thin: each run, to its end\nthick: mean, ended runs\nwith their last shares"
    figure.legend(handles, labels, title=key, loc="outside right center", **_KEYED)
    return figure


def response_figure(
    names: Sequence[str], shares: NDArray[np.float64], times_neutral: NDArray[np.float64], title: str
) -> Figure:
    """Types as discs on a circle, with an arrow to each mutant that takes over more often than a neutral one.

    Parameters
    ----------
    shares
        Of the time, by type; the discs' areas.
    times_neutral
        Fixation probabilities relative to a neutral mutant's; residents in rows.
    """
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / len(names)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    figure, [axes] = new_figure(7.0, 1.0 + 7.0 / 4.8 * float(np.ptp(points[:, 1]) + 1.0))
    most = max(2.0, float(times_neutral.max()))
    for resident, mutant in np.argwhere(times_neutral > 1 + 1e-9):
        if resident == mutant:
            continue
        width = 0.5 + 2 * np.log(times_neutral[resident, mutant]) / np.log(most)
        style = {"arrowstyle": "-|>", "color": GREY, "linewidth": width, "shrinkA": 16, "shrinkB": 16}
        style["connectionstyle"] = "arc3,rad=0.08"
        axes.annotate("", points[mutant], points[resident], arrowprops=style)
    for place, (point, name) in enumerate(zip(points, names, strict=True)):
        axes.scatter(
            point[0], point[1], s=60 + 1400 * shares[place], color=look(place)[0], zorder=3, edgecolors="white"
        )
        # Labels stand outside the circle, so that no arrow crosses them.
        label = name.replace("/", "/\n") + f"\n{100 * shares[place]:.0f} %"
        x, y = np.sign(point.round(2))
        ha, va = {-1: "right", 0: "center", 1: "left"}[x], "center" if x else {-1: "top", 1: "bottom"}[y]
        axes.annotate(label, point, 20 * point, textcoords="offset points", ha=ha, va=va, fontsize=8)
    title_figure(figure, title)
    lowest, highest = points[:, 1].min() - 0.5, points[:, 1].max() + 0.5
    axes.set(xlim=(-2.4, 2.4), ylim=(lowest, highest), aspect="equal")
    axes.set_axis_off()
    arrows = "arrow: to a mutant that takes over more often than a neutral one; thicker: more often"
    figure.supxlabel(f"disc and %: share of time\n{arrows}", fontsize=8)
    return figure
