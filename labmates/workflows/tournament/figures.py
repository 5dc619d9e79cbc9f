"""Figures of tournaments, as in the super-additive paper's figures 2 to 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from labmates.games.iterated.match import Action
from labmates.games.iterated.questions import QUESTIONS
from labmates.stats.figures import COLOURS, GREY, add_scale, error_bars, name_cells, new_figure, write_numbers
from labmates.stats.intervals import LEVEL
from labmates.workflows.tournament.report import STRUCTURES, Group, labels_of
from labmates.workflows.tournament.results import Tournament

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOUR = dict(zip(STRUCTURES, COLOURS, strict=False))
_LINE = 0.15
"""Height of a line of a title in inches."""
_KINDS = ("within teams", "between teams")


def cooperation_figure(groups: Sequence[Group]) -> Figure:
    """The rate of cooperation over the rounds played (figure 2)."""
    return _curves(groups, Tournament.moves, "rounds played", "moves so far that cooperate")


def one_shot_figure(groups: Sequence[Group]) -> Figure:
    """The rate of one-shot cooperation over the matches played (figure 3)."""
    return _curves(groups, Tournament.first_moves, "matches played", "first moves so far that cooperate")


def teams_figure(groups: Sequence[Group]) -> Figure | None:
    """Cooperation within and between teams (figure 4); None if no tournament has both kinds of matches."""
    both = [group for group in groups if group.rates.keys() >= {*_KINDS}]
    if not both:
        return None
    titles = _titles(both, 22)
    figure, [axes] = new_figure(1.8 + 1.6 * len(both), 2.9 + _LINE * _lines(titles))
    for kind, offset, colour in zip(_KINDS, (-0.2, 0.2), COLOURS, strict=False):
        estimates = [group.rates[kind].over_players for group in both]
        at, values = [place + offset for place in range(len(both))], [each.value for each in estimates]
        axes.bar(at, values, 0.38, color=colour, label=kind)
        axes.errorbar(at, values, error_bars(estimates), fmt="none", color="black", capsize=2, linewidth=1)
    axes.set_xticks(range(len(both)), titles)
    _share(axes, "moves that cooperate")
    _name_intervals(figure)
    figure.legend(loc="outside upper center", ncols=2, fontsize=8, frameon=False)
    return figure


def comprehension_figure(groups: Sequence[Group]) -> Figure | None:
    """The share of right answers by question (figure 5); None without questions."""
    questions = [name.replace("_", " ") for name in QUESTIONS]
    asked = [group for group in groups if not group.rates.keys().isdisjoint(questions)]
    if not asked:
        return None
    rates = [[group.rates.get(question) for question in questions] for group in asked]
    cells = [[rate and rate.over_players for rate in row] for row in rates]
    values, *ends = (
        np.array([[getattr(cell, part, None) for cell in row] for row in cells], dtype=float)
        for part in ("value", "low", "high")
    )
    titles = _titles(asked, 40)
    figure, [axes] = new_figure(3.0 + 0.6 * len(questions), 1.4 + (0.1 + _LINE * _lines(titles)) * len(asked))
    image = axes.imshow(values, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    write_numbers(axes, values, ends)
    name_cells(axes, titles, questions)
    add_scale(figure, image, [axes], "share of right answers")
    return figure


def _curves(groups: Sequence[Group], moves: Callable[[Tournament, str], Sequence[Action]], x: str, y: str) -> Figure:
    from matplotlib.ticker import MaxNLocator

    cells = [(group.model, group.among, str(sorted(group.settings.items()))) for group in groups]
    rows = list(dict.fromkeys(cells))
    columns = [name for name in STRUCTURES if any(group.structure == name for group in groups)]
    titles = _titles(groups, 40)
    # A panel keeps its size below a title of many lines.
    height = 0.5 + (1.8 + _LINE * _lines(titles)) * len(rows)
    figure, axes = new_figure(0.6 + 2.6 * len(columns), height, rows=len(rows), columns=len(columns))
    for axis in axes:
        axis.set_visible(False)
    for group, cell, title in zip(groups, cells, titles, strict=True):
        axis = axes[rows.index(cell) * len(columns) + columns.index(group.structure)]
        axis.set_visible(True)
        curve, colour = group.curve(moves), _COLOUR[group.structure]
        at, low, high = range(1, len(curve) + 1), *zip(*(each.ends() for each in curve), strict=True)
        axis.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
        axis.plot(at, [each.value for each in curve], color=colour, linewidth=1.5, marker="." if len(at) < 12 else "")
        axis.set_title(title, loc="left", fontsize=8)
        axis.set_xlabel(x)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        _share(axis, y if group.structure == columns[0] else "")
    _name_intervals(figure)
    return figure


def _name_intervals(figure: Figure) -> None:
    figure.supxlabel(f"with {LEVEL:.0%} intervals", fontsize=8)


def _share(axes: Axes, label: str) -> None:
    axes.set_ylim(0, 1.02)
    axes.axhline(0.5, color=GREY, linewidth=0.5, linestyle=":")
    axes.set_ylabel(label)


def _titles(groups: Sequence[Group], width: int = 200) -> list[str]:
    """A title for each group: model, varying settings, structure; in lines of at most `width` letters."""
    labels = labels_of(groups)
    return [
        "\n".join(
            line
            for part in (
                ", ".join(filter(None, (group.model, label))),
                f"{group.structure.upper()}: {STRUCTURES[group.structure]}",
            )
            for line in wrap(part, width)
        )
        for group, label in zip(groups, labels, strict=True)
    ]


def _lines(titles: Sequence[str]) -> int:
    return max(title.count("\n") + 1 for title in titles)
