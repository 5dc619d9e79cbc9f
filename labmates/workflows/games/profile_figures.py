"""Figures of cooperative profiles and of their convergence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from labmates.games.references import References
from labmates.stats.figures import COLOURS, GREY, LEGEND_ROW, MARKERS, look, new_figure
from labmates.workflows.games.convergence import Convergence
from labmates.workflows.games.profiles import Profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST = 2.0
"""What lies beyond is drawn here, with its number."""


def profile_figure(
    profiles: Sequence[Profile], baselines: Sequence[Profile], plays: Mapping[str, References | None]
) -> Figure:
    """Draw profiles beside those of baselines, a row for each game.

    Each primary metric is drawn where it stands between the equilibrium (0) and the play that is best for all (1), with
    95 % intervals; beyond 1 more is done than is best. Profiles without any metric are left out.

    Parameters
    ----------
    plays
        The reference plays of each game; games where both are the same are left out.
    """
    games = [game for game, found in plays.items() if found and found.nash.level != found.optimum.level]
    entries = len(profiles) + len(baselines)
    each = max(0.55, 0.06 * len(profiles))
    figure, [axes] = new_figure(7.2, max(1.4 + each * len(games), 0.6 + LEGEND_ROW * entries))
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.axvline(1, color=GREY, linewidth=0.8)
    many = len(profiles)
    for place, profile in enumerate(baselines):
        _dots(axes, profile, games, plays, lambda y: y, GREY, "|x+1_"[place % 5], label=profile.model)
    for place, profile in enumerate(profiles):
        # Beside each other, so that intervals do not cover each other.
        offset = 0.0 if many == 1 else (0.5 if many < 10 else 0.8) * (place / (many - 1) - 0.5)
        colour, marker = look(place)
        excluded = ", ".join(profile.excluded_games)
        label = f"{profile.model} (excluded: {excluded})" if excluded else profile.model
        _dots(axes, profile, games, plays, lambda y, by=offset: y + by, colour, marker, label=label, intervals=True)  # type: ignore[misc]
    axes.set_yticks(range(len(games)), games)
    axes.set_ylim(len(games) - 0.5, -0.5)
    axes.set_xlim(-0.12, _MOST + 0.2)
    axes.set_xlabel("primary metric: 0 at the equilibrium, 1 at the play that is best for all")
    axes.set_title("Cooperative profile", loc="left", fontweight="bold")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    return figure


def _dots(
    axes: Axes,
    profile: Profile,
    games: Sequence[str],
    plays: Mapping[str, References | None],
    place: Callable[[float], float],
    colour: str,
    marker: str,
    *,
    label: str,
    intervals: bool = False,
) -> None:
    x, y, below, above = [], [], [], []
    for one in profile.games:
        found = plays.get(one.game)
        if one.game not in games or one.level is None or one.excluded or found is None:
            continue
        nash, optimum = float(found.nash.level), float(found.optimum.level)
        where = (one.level.value - nash) / (optimum - nash)
        inside = where <= _MOST
        x.append(where if inside else _MOST)
        y.append(place(games.index(one.game)))
        ends = [
            (end - nash) / (optimum - nash) for end in (one.level.low, one.level.high) if end is not None and inside
        ]
        below.append(where - min(ends, default=where))
        above.append(max(ends, default=where) - where)
        if not inside:
            axes.annotate(f"→ {where:.1f}", (_MOST, y[-1]), (6, -3), textcoords="offset points", color=colour, size=8)
    if not x:
        return
    if intervals:
        looks: Any = {"markersize": 6, "capsize": 2, "linewidth": 1, "zorder": 3}
        axes.errorbar(x, y, xerr=[below, above], fmt=marker, color=colour, label=label, **looks)
    else:
        axes.plot(x, y, marker, color=colour, label=label, markersize=7, linestyle="none", zorder=2)


def _name(one: Convergence) -> str:
    return one.game if one.metric == "level" else f"{one.game}, {one.metric.replace('_', ' ')}"


def convergence_figure(found: Sequence[Convergence]) -> Figure:
    """Draw the error of a mean of n simulations, and the reliability where there are several models."""
    judged = [one for one in found if one.reliability is not None]
    figure, axes = new_figure(8.4 if judged else 4.6, 3.4, columns=2 if judged else 1)
    for place, one in enumerate(found):
        colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
        axes[0].plot(one.sizes, one.bootstrap, marker, color=colour, label=_name(one), markersize=5)
        axes[0].plot(one.sizes, one.closed_form, color=colour, linewidth=1)
        if one.reliability is not None:
            axes[1].plot(one.sizes, one.reliability, f"{marker}-", color=colour, markersize=5, linewidth=1)
    axes[0].set_title("Mean absolute error (dots: bootstrap, lines: formula)", loc="left", fontsize=9)
    axes[0].set_ylabel("in units of the metric")
    axes[0].legend(fontsize=8, frameon=False)
    if judged:
        axes[1].set_title("Reliability: what tells models apart", loc="left", fontsize=9)
        axes[1].set_ylim(0, 1.02)
    for each in axes:
        each.set_xlabel("simulations")
    return figure
