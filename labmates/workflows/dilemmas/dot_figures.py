"""Figures of dots with intervals in small multiples on pages of a letter: actions, votes and adoption, ratings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
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
LETTER: Final = 0.062
"""Width of a letter of 7 points, in inches."""
_WIDTH: Final = 6.5
"""Width in inches of the text of a letter page."""
_LEAST_SIDE: Final = 1.5
"""Minimum width of a panel in inches."""
_LEGEND_ROW: Final = 0.14
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
class Dots:
    """Dots with intervals in panels side by side, on as many pages as their number and that of their rows need.

    Attributes
    ----------
    names
        Of the rows, from the top; all panels have the same rows.
    """

    panels: Sequence[Panel]
    names: Sequence[str]
    xlabel: str
    title: str = ""
    xlim: tuple[float, float] | None = None

    @property
    def _is_shared(self) -> bool:
        """Whether one legend serves all panels."""
        return len({tuple(panel.series.items()) for panel in self.panels}) == 1

    @property
    def _series(self) -> int:
        return max(len(panel.series) for panel in self.panels)

    @property
    def _row(self) -> float:
        """The height of a row in inches."""
        return 0.1 + 0.04 * self._series

    @property
    def _longest(self) -> float:
        """The width of the longest label of a legend, with its marker."""
        return 0.5 + LETTER * max(len(label) for panel in self.panels for label in panel.series.values())

    @property
    def parts(self) -> list[tuple[Sequence[Panel], Sequence[str]]]:
        """The panels and the names of the rows on each page."""
        titles = [LETTER * 1.1 * len(panel.title) for panel in self.panels]
        side = max(_LEAST_SIDE, *titles, 0.0 if self._is_shared else self._longest)
        across = max(1, int((_WIDTH - 0.3 - LETTER * max(map(len, self.names))) / (side + 0.15)))
        down = int((MOST_HEIGHT - 1.4 - _LEGEND_ROW * self._series) / self._row)
        return list(product(_split(self.panels, across), _split(self.names, down)))

    def figure(self, page: int = 0) -> Figure:
        """One page, at most 9 inches high."""
        panels, names = self.parts[page]
        legend = _LEGEND_ROW * self._series
        beside = max(1, int(_WIDTH / self._longest))
        height = min(MOST_HEIGHT, 1.4 + legend + self._row * len(names))
        figure, axes = new_figure(_WIDTH, height, columns=len(panels))
        for place, (ax, panel) in enumerate(zip(axes, panels, strict=True)):
            _draw(ax, panel, names, has_names=place == 0, xlim=self.xlim)
            if not self._is_shared:
                _legend_above(ax)
            ax.set_title(panel.title, loc="left", fontsize=8, pad=5 + (0.0 if self._is_shared else 72 * legend))
        if self._is_shared and self._series > 1:
            shown = axes[0].get_legend_handles_labels()
            style: Any = {"fontsize": 7, "title_fontsize": 8, "frameon": False}
            figure.legend(*shown, title=self.xlabel, loc="outside lower center", ncols=beside, **style)
        else:
            figure.supxlabel(self.xlabel, fontsize=8)
        if self.title:
            figure.suptitle(self.title, x=0.01, ha="left", fontsize=10, fontweight="bold")
        return figure


def _split(values: Sequence[Any], most: int) -> list[Sequence[Any]]:
    """Values in parts of about equal size, with at most so many each."""
    each = ceil(len(values) / ceil(len(values) / most))
    return [values[first : first + each] for first in range(0, len(values), each)]


def _draw(ax: Axes, panel: Panel, names: Sequence[str], *, has_names: bool, xlim: tuple[float, float] | None) -> None:
    drawn = [(place, panel.rows[name]) for place, name in enumerate(names) if name in panel.rows]
    for number, (key, label) in enumerate(panel.series.items()):
        values = np.array([_number(row.get(key)) for _, row in drawn])
        low, high = (np.array([_number(row.get(f"{key}_{end}")) for _, row in drawn]) for end in ("low", "high"))
        reach = [np.maximum(np.nan_to_num(values - low), 0), np.maximum(np.nan_to_num(high - values), 0)]
        # Offset vertically, so that equal values do not overlap.
        offset = (number + 0.5) / len(panel.series) * 0.8 - 0.4
        colour, marker = look(number)
        at = np.array([place for place, _ in drawn]) + offset
        ax.errorbar(values, at, xerr=reach, fmt=marker, color=colour, label=label, markersize=3.5, linewidth=1)
    for place in range(len(names)):
        ax.axhline(place, color=GREY, linewidth=0.3, zorder=0)
    ax.set_yticks(range(len(names)), names if has_names else [""] * len(names), fontsize=7)
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


def actions_dots(frame: pd.DataFrame, names: ActionNames = NO_NAMES) -> Dots:
    """Probability of each action with its interval, a row for each mechanism (and model), a panel for each game.

    Parameters
    ----------
    frame
        From `labmates.workflows.dilemmas.frames.actions_frame` or `pooled_frame`.
    names
        From `labmates.workflows.dilemmas.frames.action_names`.
    """
    panels = []
    for game, of_game in frame.groupby("game", sort=False):
        rows: dict[str, dict[str, Any]] = {}
        for name, record in _named(of_game):
            ends = {f"{record['action']}_{end}": record[f"share_{end}"] for end in ("low", "high")}
            rows.setdefault(name, {}).update({record["action"]: record["share"], **ends})
        labels = names.get(str(game), {})
        actions = {action: labels.get(action, action) for action in map(str, dict.fromkeys(of_game["action"]))}
        panels.append(Panel(str(game), rows, actions))
    return Dots(panels, _in_order(panels), "mean probability of the action, 95 % interval", xlim=_SHARES)


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


def shares_dots(frame: pd.DataFrame, columns: Mapping[str, str], title: str) -> Dots:
    """Shares as dots, a row for each mechanism (and model), a panel for each game.

    Parameters
    ----------
    frame
        A table of votes and adoption, or of designs; see `labmates.workflows.dilemmas.frames`.
    columns
        The shares to draw, with their labels.
    """
    drawn = {name: label for name, label in columns.items() if name in frame and frame[name].notna().any()}
    panels = [Panel(str(game), dict(_named(rows)), drawn) for game, rows in frame.groupby("game", sort=False)]
    return Dots(panels, _in_order(panels), "share, 95 % interval", title, _SHARES)


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


def ratings_pages(rated: Iterable[tuple[str, str, Sequence[str]]]) -> int:
    """The maximum number of pages of `ratings_dots` for these games, mechanisms and models."""
    rows = [(game, mechanism, model) for game, mechanism, models in rated for model in models]
    games = dict.fromkeys([_ALL, *(game for game, _, _ in rows if game != ALL_GAMES)])
    panels = [Panel(game, {}, _RATINGS) for game in games]
    return len(Dots(panels, _names_of_ratings([row[1:] for row in rows]), "").parts) if rows else 1


def ratings_dots(summaries: Sequence[Summary]) -> Dots:
    """Mean payoff and fitness of each model with intervals over runs, a panel for each game.

    Models are sorted under each mechanism, the best first: by their mean payoff over all games (normalised), if all
    games have a scale; else by their mean place in the games.
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
    names = dict(zip(order, _names_of_ratings(order), strict=True))
    panels = [
        Panel(title, {names[row]: values for row, values in games[title].items()}, _RATINGS)
        for title in sorted(games, key=lambda title: title != _ALL)
    ]
    xlabel = "payoff, 95 % interval over runs"
    if _ALL in games:
        xlabel += "; all games: 0 at full defection, 1 at full cooperation"
    return Dots(panels, list(names.values()), xlabel, "Ratings of models")


def _names_of_ratings(rows: Sequence[tuple[str, str]]) -> list[str]:
    """The distinct names of the rows of mechanisms and models."""
    is_varied = len({mechanism for mechanism, _ in rows}) > 1
    return list(dict.fromkeys(", ".join(row) if is_varied else row[1] for row in rows))


_ALL: Final = "all games"
_RATINGS: Final = {"mean": "mean over all seatings", "fitness": "fitness after replicator dynamics"}
