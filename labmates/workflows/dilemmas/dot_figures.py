"""Figures of dots with intervals in small multiples that fit on a page: actions, votes and adoption, ratings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from labmates.stats.figures import GREY, look, new_figure
from labmates.stats.ratings import ALL_GAMES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from labmates.stats.ratings import Summary

ActionNames = Mapping[str, Mapping[str, str]]
"""Displayed names of actions, by game and action."""
NO_NAMES: ActionNames = MappingProxyType({})
MOST_HEIGHT: Final = 9.0
"""Maximum height of a figure in inches."""
MOST_WIDTH: Final = 6.5
"""Width in inches of the text of a letter page, beyond which a figure continues on further pages."""
_LEAST_ROWS: Final = (0.115, 0.075)
"""Minimum heights of a row in inches: for texts of 7 points, and of 5 points if the others don't fit."""
LETTER: Final = 0.062
"""Width of a letter of 7 points, in inches."""
_LEGEND_ROW: Final = 0.14
_WIDTHS: Final = {1: 4.4, 2: 2.6, 3: 2.0}
"""Width of a panel in inches by number of columns."""
_NARROW, _NARROWEST, _MANY = 1.5, 0.9, 8
"""The same for more columns, and for very many."""
_SHARES: Final = (-0.04, 1.04)
"""Limits of an axis of shares."""


@dataclass(frozen=True)
class Panel:
    """One panel of a figure.

    Attributes
    ----------
    rows
        The values of each row, by its name. ``NAME_low`` and ``NAME_high`` are the interval of the value ``NAME``.
    series
        The drawn values, with their labels in the legend.
    """

    title: str
    rows: Mapping[str, Mapping[str, Any]]
    series: Mapping[str, str]


@dataclass(frozen=True)
class _Layout:
    """The grid of panels. Rows that don't fit below each other continue in further banks of columns."""

    columns: int
    banks: int
    row: float  # height in inches

    @classmethod
    def of(cls, panels: int, rows: int, row: float, others: float) -> _Layout:
        """The layout with the fewest columns whose rows have a legible height.

        `row` is the preferred height of a row, `others` that of the texts of a panel, both in inches.
        """
        for least in _LEAST_ROWS:
            for columns in range(1, panels + 1):
                room = (MOST_HEIGHT - 0.7) / ceil(panels / columns) - others
                if room >= rows * min(row, least):
                    return cls(columns, 1, min(row, room / rows))
        banks = ceil(rows / max(1, int(room / least)))
        return cls(panels, banks, min(row, room / ceil(rows / banks)))


@dataclass(frozen=True)
class _Shape:
    """The measures of a figure, in inches, and how its rows and its legend are laid out."""

    layout: _Layout
    per_bank: int
    series: int
    is_shared: bool
    size: float
    beside: int
    width: float
    height: float

    @classmethod
    def of(cls, panels: Sequence[Panel], names: Sequence[str], title: str) -> _Shape:
        """The shape of a figure with these panels and rows."""
        series = max(len(panel.series) for panel in panels)
        is_shared = len({tuple(panel.series.items()) for panel in panels}) == 1
        legend = 0.0 if is_shared else _LEGEND_ROW * series
        layout = _Layout.of(len(panels), len(names), 0.1 + 0.07 * series, 0.62 + legend)
        per_bank = ceil(len(names) / layout.banks)
        banks = ceil(len(names) / per_bank)
        across = layout.columns * banks
        size = min(7.0, 62 * layout.row)
        named = LETTER * size / 7 * max(map(len, names))
        side = _WIDTHS.get(across, _NARROW if across <= _MANY else _NARROWEST)
        side = min(side, max(_NARROW, (MOST_WIDTH - 0.3 - banks * named) / across - 0.15))
        longest = max(len(label) for panel in panels for label in panel.series.values())
        side = max(side, LETTER * max(len(panel.title) for panel in panels))
        side = side if is_shared else max(side, LETTER * longest + 0.35)
        width = max(banks * named + across * (side + 0.15) + 0.3, LETTER * 1.35 * len(title))
        beside = max(1, min(series, int(width / (LETTER * longest + 0.5))))
        below = (_LEGEND_ROW + 0.05) * ceil(series / beside) if is_shared and series > 1 else 0.0
        down = ceil(len(panels) / layout.columns)
        height = down * (per_bank * layout.row + 0.62 + legend) + below + (0.3 if title else 0.0) + 0.25
        return cls(layout, per_bank, series, is_shared, size, beside, width, min(height, MOST_HEIGHT))


def pages_of(panels: Sequence[Panel], title: str = "") -> list[list[str]]:
    """The titles of the panels of each page: as many as fit on it, at least one."""
    for most in range(len(panels), 0, -1):
        pages = [panels[first : first + most] for first in range(0, len(panels), most)]
        if all(_Shape.of(page, _in_order(page), title).width <= MOST_WIDTH for page in pages):
            break
    return [[panel.title for panel in page] for page in pages]


def dots_figure(
    panels: Sequence[Panel],
    names: Sequence[str],
    *,
    xlabel: str,
    title: str = "",
    xlim: tuple[float, float] | None = None,
) -> Figure:
    """Dots with intervals in panels with these rows; at most 9 inches high."""
    shape = _Shape.of(panels, names, title)
    layout, size = shape.layout, shape.size
    banks = [names[first : first + shape.per_bank] for first in range(0, len(names), shape.per_bank)]
    down = ceil(len(panels) / layout.columns)
    figure, axes = new_figure(shape.width, shape.height, rows=down, columns=layout.columns * len(banks))
    grid = np.array(axes, dtype=object).reshape(down, len(banks), layout.columns)
    for ax in axes:
        ax.set_axis_off()
    for bank, members in enumerate(banks):
        for place, panel in enumerate(panels):
            ax = grid[place // layout.columns, bank, place % layout.columns]
            ax.set_axis_on()
            _draw(ax, panel, members, has_names=place % layout.columns == 0, xlim=xlim, size=size)
            if not shape.is_shared:
                _legend_above(ax)
            own = 0.0 if shape.is_shared else _LEGEND_ROW * len(panel.series)
            ax.set_title(panel.title, loc="left", fontsize=8, pad=5 + 72 * own)
    if shape.is_shared and shape.series > 1:
        shown = axes[0].get_legend_handles_labels()
        style: Any = {"fontsize": 7, "title_fontsize": 8, "frameon": False}
        figure.legend(*shown, title=xlabel, loc="outside lower center", ncols=shape.beside, **style)
    else:
        figure.supxlabel(xlabel, fontsize=8)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    return figure


def _draw(
    ax: Axes,
    panel: Panel,
    names: Sequence[str],
    *,
    has_names: bool,
    xlim: tuple[float, float] | None,
    size: float,
) -> None:
    drawn = [(place, panel.rows[name]) for place, name in enumerate(names) if name in panel.rows]
    for number, (key, label) in enumerate(panel.series.items()):
        values = np.array([_number(row.get(key)) for _, row in drawn])
        low, high = (np.array([_number(row.get(f"{key}_{end}")) for _, row in drawn]) for end in ("low", "high"))
        reach = [np.maximum(np.nan_to_num(values - low), 0), np.maximum(np.nan_to_num(high - values), 0)]
        # Offset vertically, so that equal values do not overlap.
        offset = (number + 0.5) / len(panel.series) * 0.8 - 0.4
        colour, marker = look(number)
        at = np.array([place for place, _ in drawn]) + offset
        ax.errorbar(values, at, xerr=reach, fmt=marker, color=colour, label=label, markersize=size / 2, linewidth=1)
    for place in range(len(names)):
        ax.axhline(place, color=GREY, linewidth=0.3, zorder=0)
    ax.set_yticks(range(len(names)), names if has_names else [""] * len(names), fontsize=size)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="x", labelsize=7)
    ax.locator_params(axis="x", nbins=4)
    if xlim:
        ax.set_xlim(*xlim)


def _legend_above(ax: Axes) -> None:
    """Put the legend between the title and the axes, where it covers no data."""
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        fontsize=7,
        frameon=False,
        borderpad=0.1,
        borderaxespad=0.1,
        labelspacing=0.15,
        handletextpad=0.3,
    )


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def actions_figure(frame: pd.DataFrame, names: ActionNames = NO_NAMES) -> Figure:
    """Probability of each action with its interval, a row for each mechanism (and model), a panel for each game.

    Parameters
    ----------
    frame
        From `labmates.workflows.dilemmas.frames.actions_frame` or `pooled_frame`.
    names
        From `labmates.workflows.dilemmas.frames.action_names`.
    """
    panels = actions_panels(frame, names)
    xlabel = "mean probability of the action, 95 % interval"
    return dots_figure(panels, _in_order(panels), xlabel=xlabel, xlim=_SHARES)


def actions_panels(frame: pd.DataFrame, names: ActionNames = NO_NAMES) -> list[Panel]:
    """The panels of `actions_figure`."""
    panels = []
    for game, of_game in frame.groupby("game", sort=False):
        rows: dict[str, dict[str, Any]] = {}
        for name, record in _named(of_game):
            ends = {f"{record['action']}_{end}": record[f"share_{end}"] for end in ("low", "high")}
            rows.setdefault(name, {}).update({record["action"]: record["share"], **ends})
        labels = names.get(str(game), {})
        actions = {action: labels.get(action, action) for action in map(str, dict.fromkeys(of_game["action"]))}
        panels.append(Panel(str(game), rows, actions))
    return panels


ADOPTION = {
    "approves": "approves proposals",
    "approved": "its proposals are approved",
    "wins": "its proposal is played",
    "signs": "signs the winner",
    "delegates": "delegates",
}
OUTCOMES = {
    "unanimous": "a proposal is approved by all",
    "tied": "the vote is tied",
    "adopted": "a design takes effect",
}
EVOLUTION = {"uniform": "all models alike", "evolved": "after replicator dynamics"}
DESIGNS = {"nash": "cooperation is an equilibrium", "dominant": "cooperation is weakly dominant"}


def shares_figure(frame: pd.DataFrame, columns: Mapping[str, str], title: str) -> Figure:
    """Shares as dots, a row for each mechanism (and model), a panel for each game.

    Parameters
    ----------
    frame
        A table of votes and adoption, or of designs; see `labmates.workflows.dilemmas.frames`.
    columns
        The shares to draw, with their labels.
    """
    panels = shares_panels(frame, columns)
    return dots_figure(panels, _in_order(panels), xlabel="share, 95 % interval", title=title, xlim=_SHARES)


def shares_panels(frame: pd.DataFrame, columns: Mapping[str, str]) -> list[Panel]:
    """The panels of `shares_figure`."""
    drawn = {name: label for name, label in columns.items() if name in frame and frame[name].notna().any()}
    return [Panel(str(game), dict(_named(of_game)), drawn) for game, of_game in frame.groupby("game", sort=False)]


def _named(frame: pd.DataFrame) -> Iterable[tuple[str, dict[str, Any]]]:
    """The rows of a table with the names of their mechanism and model."""
    who = [name for name in ("mechanism", "model") if name in frame]
    rows: Any = frame.to_dict("records")
    return ((", ".join(str(row[name]) for name in who), row) for row in rows)


def _in_order(panels: Iterable[Panel]) -> list[str]:
    """The names of all rows by mechanism, `none` first."""
    return sorted({name for panel in panels for name in panel.rows}, key=_place)


def _place(name: str) -> tuple[bool, str]:
    return name.partition(", ")[0] != "none", name


def ratings_pages(rated: Iterable[tuple[str, str, Sequence[str]]]) -> list[list[str]]:
    """The panels of each page of `ratings_figure` for these games, mechanisms and models."""
    rows = [(game, mechanism, model) for game, mechanism, models in rated for model in models]
    is_varied = len({mechanism for _, mechanism, _ in rows}) > 1
    names = {", ".join(row[1:]) if is_varied else row[2]: dict[str, Any]() for row in rows}
    games = dict.fromkeys(game for game, _, _ in rows if game != ALL_GAMES)
    panels = [Panel(game, names, _RATINGS) for game in (_ALL, *games)]
    first, *others = pages_of(panels, _TITLE) if rows else [[_ALL]]
    # Not all games have a scale, so the panel over all games may be missing and needs company.
    return [[*first, *others[0]], *others[1:]] if first == [_ALL] and others else [first, *others]


def ratings_figure(summaries: Sequence[Summary], shown: Collection[str] | None = None) -> Figure:
    """Mean payoff and fitness of each model with intervals over runs, a panel for each game.

    `shown` are the panels of one page, from `ratings_pages`; by default all. Models are sorted under each mechanism,
    the best first: by their mean payoff over all games (normalised), if all games have a scale; else by their mean
    place in the games.
    """
    games: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for summary in summaries:
        if summary.rating in _RATINGS:
            game = games.setdefault(_ALL if summary.game == ALL_GAMES else summary.game, {})
            for model, estimate in zip(summary.models, summary.each, strict=True):
                game.setdefault((summary.mechanism, model), {}).update(estimate.row(summary.rating))
    mechanisms = list(dict.fromkeys(mechanism for game in games.values() for mechanism, _ in game))
    places: dict[tuple[str, str], list[int]] = {}
    for game in [games[_ALL]] if _ALL in games else games.values():
        for place, row in enumerate(sorted(game, key=lambda row: -game[row]["mean"])):
            places.setdefault(row, []).append(place)
    order = sorted(
        {row for game in games.values() for row in game},
        key=lambda row: (mechanisms.index(row[0]), fmean(places.get(row, [len(places)])), row[1]),
    )
    names = {row: ", ".join(row) if len(mechanisms) > 1 else row[1] for row in order}
    panels = [
        Panel(title, {names[row]: values for row, values in games[title].items()}, _RATINGS)
        for title in sorted(games, key=lambda title: title != _ALL)
        if shown is None or title in shown
    ]
    xlabel = "payoff, 95 % interval over runs"
    if _ALL in games:
        xlabel += "; all games: 0 at full defection, 1 at full cooperation"
    return dots_figure(panels, list(names.values()), xlabel=xlabel, title=_TITLE)


_ALL: Final = "all games"
_TITLE: Final = "Ratings of models"
_RATINGS: Final = {"mean": "mean over all seatings", "fitness": "fitness after replicator dynamics"}
