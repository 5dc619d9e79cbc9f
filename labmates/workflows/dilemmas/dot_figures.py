"""Figures of dots with intervals, one for each game: actions, votes and adoption, ratings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from textwrap import fill
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from labmates.mechanisms.mediation import DELEGATE
from labmates.stats.figures import GREY, look, new_figure
from labmates.stats.ratings import ALL_GAMES

if TYPE_CHECKING:
    import pandas as pd
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
_SHARES: Final = (-0.04, 1.04)
"""Limits of an axis of shares."""


@dataclass(frozen=True)
class Dots:
    """Dots with intervals in one game."""

    title: str
    # The values of each row, by its name, from the top. ``NAME_low`` and ``NAME_high`` are the interval of the value
    # ``NAME``.
    rows: Mapping[str, Mapping[str, Any]]
    series: Mapping[str, str]  # the drawn values, with their labels in the legend
    xlabel: str  # what the axis shows, without a word of intervals
    xlim: tuple[float, float] | None = None

    def figure(self) -> Figure:
        """The figure, at most 9 inches high: many rows are set closer."""
        number = len(self.series)
        frame = 1.1 + 0.16 * number
        lows = [_number(row.get(f"{key}_low")) for row in self.rows.values() for key in self.series]
        has_intervals = not np.isnan(lows).all()
        xlabel = self.xlabel + (", with 95 % intervals over runs" if has_intervals else "")
        height = min(MOST_HEIGHT, frame + (0.1 + 0.04 * number) * len(self.rows))
        figure, [ax] = new_figure(_WIDTH, height)
        for place, (key, label) in enumerate(self.series.items()):
            values, low, high = (
                np.array([_number(row.get(f"{key}{end}")) for row in self.rows.values()])
                for end in ("", "_low", "_high")
            )
            reach = [np.maximum(np.nan_to_num(values - low), 0), np.maximum(np.nan_to_num(high - values), 0)]
            # Offset vertically, so that equal values do not overlap.
            at = np.arange(len(values)) + (place + 0.5) / number * 0.8 - 0.4
            colour, marker = look(place)
            ax.errorbar(values, at, xerr=reach, fmt=marker, color=colour, label=label, markersize=3.5, linewidth=1)
        for place in range(len(self.rows)):
            ax.axhline(place, color=GREY, linewidth=0.3, zorder=0)
        letters = min(7.0, 60 * (height - frame) / len(self.rows))
        ax.set_yticks(range(len(self.rows)), list(self.rows), fontsize=letters)
        ax.set_ylim(len(self.rows) - 0.5, -0.5)
        ax.tick_params(axis="x", labelsize=7)
        ax.set_title(self.title, loc="left", fontsize=9, fontweight="bold")
        if self.xlim:
            ax.set_xlim(*self.xlim)
        if number == 1:
            figure.supxlabel(fill(xlabel, int(_WIDTH / LETTER)), fontsize=7)  # wider than axes beside long names
            return figure
        beside = max(1, int(_WIDTH / (0.5 + LETTER * max(map(len, self.series.values())))))
        style: Any = {"fontsize": 7, "title_fontsize": 8, "frameon": False}
        figure.legend(title=xlabel, loc="outside lower center", ncols=beside, **style)
        return figure


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def actions_dots(frame: pd.DataFrame, names: ActionNames = NO_NAMES) -> list[Dots]:
    """Probability of each action with its interval in each game, a row for each mechanism (and model).

    Of a game's two actions, the second is the rest. Responses are drawn by game and mechanism, a row for each model and
    actions of co-players.

    Parameters
    ----------
    frame
        From `labmates.workflows.dilemmas.frames.actions_frame`, `pooled_frame` or `responses_frame`.
    names
        From `labmates.workflows.dilemmas.frames.action_names`.
    """
    dots = []
    for key, of_game in frame.groupby(["game", "mechanism"] if "before" in frame else ["game"], sort=False):
        rows: dict[str, dict[str, Any]] = {}
        title = [*map(str, key)]
        labels = names.get(title[0], {})
        for name, record in _named(of_game):
            if "before" in record:
                name += f", {_after(record['before'], labels)}"
            ends = {f"{record['action']}_{end}": record[f"share_{end}"] for end in ("low", "high")}
            rows.setdefault(name, {}).update({record["action"]: record["share"], **ends})
        actions = {action: labels.get(action, action) for action in map(str, dict.fromkeys(of_game["action"]))}
        own = [action for action in actions if action != DELEGATE]
        rest = f"; the rest is {actions.pop(own[1])}" if len(own) == 2 else ""
        which = actions[own[0]] if len(actions) == 1 else "the action"
        dots.append(Dots(", ".join(title), _sorted(rows), actions, f"mean probability of {which}{rest}", _SHARES))
    return dots


def _after(before: str, names: Mapping[str, str]) -> str:
    """The co-players' actions in the previous round, in a row's name; the first round comes first in order."""
    if before == "-":
        return "(first round)"
    return f"after {' + '.join(names.get(action, action) for action in before.split('+'))}"


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


def shares_dots(frame: pd.DataFrame, columns: Mapping[str, str], title: str) -> list[Dots]:
    """Shares in each game as dots, a row for each mechanism (and model).

    Parameters
    ----------
    frame
        A table of votes and adoption, or of designs; see `labmates.workflows.dilemmas.frames`.
    columns
        The shares to draw, with their labels.
    """
    drawn = {name: label for name, label in columns.items() if name in frame and frame[name].notna().any()}
    return [
        Dots(f"{title}: {game}", _sorted(dict(_named(rows))), drawn, "share", _SHARES)
        for game, rows in frame.groupby("game", sort=False)
    ]


def _named(frame: pd.DataFrame) -> Iterable[tuple[str, dict[str, Any]]]:
    """The rows of a table with the names of their mechanism and model."""
    who = [name for name in ("mechanism", "model") if name in frame]
    rows: Any = frame.to_dict("records")
    return ((", ".join(str(row[name]) for name in who), row) for row in rows)


def _sorted(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Rows as they come, `none` first."""
    return dict(sorted(rows.items(), key=lambda row: row[0].partition(", ")[0] != "none"))


ALL: Final = "all games"
_RATINGS: Final = {"mean": "mean over all seatings", "fitness": "fitness after replicator dynamics"}


def ratings_dots(summaries: Sequence[Summary]) -> dict[str, Dots]:
    """Mean payoff and fitness of each model with intervals over runs, by game, with those over `ALL` games.

    Models are sorted under each mechanism, the best first: by their mean payoff over all games (normalised), if all
    games have a scale; else by their mean place in the games.
    """
    games: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for summary in summaries:
        if summary.rating in _RATINGS:
            game = games.setdefault(ALL if summary.game == ALL_GAMES else summary.game, {})
            for model, estimate in zip(summary.models, summary.each, strict=True):
                game.setdefault((summary.mechanism, model), {}).update(estimate.row(summary.rating))
    mechanisms = list(dict.fromkeys(mechanism for game in games.values() for mechanism, _ in game))
    places: dict[tuple[str, str], list[int]] = {}
    for game in [games[ALL]] if ALL in games else games.values():
        for place, row in enumerate(sorted(game, key=lambda row: -game[row]["mean"])):
            places.setdefault(row, []).append(place)

    def order(row: tuple[str, str]) -> tuple[int, float, str]:
        return mechanisms.index(row[0]), fmean(places.get(row, [len(places)])), row[1]

    dots = {}
    for title, game in games.items():
        rows = {", ".join(row) if len(mechanisms) > 1 else row[1]: game[row] for row in sorted(game, key=order)}
        xlabel = "payoff: 0 at full defection, 1 at full cooperation" if title == ALL else "payoff"
        dots[title] = Dots(f"Ratings of models: {title}", rows, _RATINGS, xlabel)
    return dots
