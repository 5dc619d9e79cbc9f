"""Figures of tournaments, as figures 2 to 5 of the super-additive paper have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from labmates.games.iterated.questions import QUESTIONS
from labmates.stats.figures import COLOURS, GREY, name_cells, new_figure, write_numbers
from labmates.workflows.tournament.report import STRUCTURES, Group, Point, Rate, labels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOUR = dict(zip(STRUCTURES, COLOURS, strict=False))


def cooperation_figure(groups: Sequence[Group]) -> Figure:
    """Draw the rate of cooperation over the rounds that players have played (figure 2)."""
    return _curves(groups, lambda group: group.curve, "rounds played", "moves so far that cooperate")


def one_shot_figure(groups: Sequence[Group]) -> Figure:
    """Draw the rate of one-shot cooperation over the matches that players have played (figure 3)."""
    return _curves(groups, lambda group: group.one_shot_curve, "matches played", "first moves so far that cooperate")


def teams_figure(groups: Sequence[Group]) -> Figure | None:
    """Draw cooperation within and between teams (figure 4); None if no tournament has both kinds of matches."""
    both = [group for group in groups if group.within is not None and group.between is not None]
    if not both:
        return None
    figure, [axes] = new_figure(1.8 + 1.6 * len(both), 3.2)
    for place, group in enumerate(both):
        for offset, rate, colour in ((-0.2, group.within, COLOURS[0]), (0.2, group.between, COLOURS[1])):
            label = ("within teams" if offset < 0 else "between teams") if place == 0 else None
            _bar(axes, place + offset, rate, colour, 0.38, label)
    axes.set_xticks(range(len(both)), _titles(both))
    _share(axes, "moves that cooperate")
    figure.legend(loc="outside upper center", ncols=2, fontsize=8, frameon=False)
    return figure


def comprehension_figure(groups: Sequence[Group]) -> Figure | None:
    """Draw the share of right answers by question (figure 5); None if nothing was asked."""
    asked = [group for group in groups if group.questions]
    if not asked:
        return None
    rates = [[group.questions.get(question) for question in QUESTIONS] for group in asked]
    ends = [
        [(None, None) if rate is None else (rate.over_players.low, rate.over_players.high) for rate in row]
        for row in rates
    ]
    values = np.array([[np.nan if rate is None else rate.value for rate in row] for row in rates])
    bounds = np.array(ends, dtype=float)
    figure, [axes] = new_figure(3.0 + 0.6 * len(QUESTIONS), 1.4 + 0.32 * len(asked))
    image = axes.imshow(values, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    write_numbers(axes, values, [bounds[..., 0], bounds[..., 1]])
    titles = (title.replace("\n", ", ") for title in _titles(asked))
    name_cells(axes, titles, (name.replace("_", " ") for name in QUESTIONS))
    figure.colorbar(image, ax=axes, label="right answers")
    return figure


def _curves(groups: Sequence[Group], points: Callable[[Group], Sequence[Point]], x: str, y: str) -> Figure:
    from matplotlib.ticker import MaxNLocator

    cells = [(group.model, group.among, str(sorted(group.settings.items()))) for group in groups]
    rows = list(dict.fromkeys(cells))
    columns = [name for name in STRUCTURES if any(group.structure == name for group in groups)]
    figure, axes = new_figure(0.6 + 2.6 * len(columns), 0.5 + 2.1 * len(rows), rows=len(rows), columns=len(columns))
    for each in axes:
        each.set_visible(False)
    for group, cell, title in zip(groups, cells, _titles(groups), strict=True):
        each = axes[rows.index(cell) * len(columns) + columns.index(group.structure)]
        each.set_visible(True)
        curve = points(group)
        at, colour = [point.at for point in curve], _COLOUR[group.structure]
        low = [point.value if point.low is None else point.low for point in curve]
        high = [point.value if point.high is None else point.high for point in curve]
        each.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
        each.plot(at, [point.value for point in curve], color=colour, linewidth=1.5, marker="." if len(at) < 12 else "")
        each.set_title(title, loc="left", fontsize=8)
        each.set_xlabel(x)
        each.xaxis.set_major_locator(MaxNLocator(integer=True))
        _share(each, y if group.structure == columns[0] else "")
    return figure


def _bar(axes: Axes, at: float, rate: Rate | None, colour: str, width: float, label: str | None) -> None:
    if rate is None:
        return
    axes.bar(at, rate.value, width, color=colour, label=label)
    low, high = rate.over_players.low, rate.over_players.high
    if low is not None and high is not None:
        errors = [[rate.value - low], [high - rate.value]]
        axes.errorbar(at, rate.value, yerr=errors, color="black", capsize=2, linewidth=1)


def _share(axes: Axes, label: str) -> None:
    axes.set_ylim(0, 1.02)
    axes.axhline(0.5, color=GREY, linewidth=0.5, linestyle=":")
    axes.set_ylabel(label)


def _titles(groups: Sequence[Group]) -> list[str]:
    """A title for each group: model, what varies, structure."""
    labels = labels_of(groups)
    return [
        f"{', '.join(filter(None, (group.model, label)))}\n{group.structure.upper()}: {STRUCTURES[group.structure]}"
        for group, label in zip(groups, labels, strict=True)
    ]
