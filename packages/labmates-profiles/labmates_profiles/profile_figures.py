"""Figures of cooperative profiles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

from labmates.games.base import Game, Quantity
from labmates.games.references import references_or_none
from labmates.models.roster import traits_of
from labmates.stats.figures import COLOURS, GREY, LEGEND_ROW, MARKERS, new_figure
from labmates_profiles.profiles import Profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAMILY_COLOURS = (*COLOURS[:-1], "#882255", "#44AA99", "#999933", "#661100")
"""Colours of families, in order."""
_NASH, _BEST = COLOURS[1], COLOURS[2]
_UNKNOWN, _BASELINES = "unknown family", "baselines"
_WIDTH, _PANELS_HEIGHT = 6.5, 7.2
"""Width of a page, and the height of its panels in inches; names and the legend take the rest."""
_TALL = {True: 2.3, False: 3.4}
"""Height of a panel in inches, by whether the names stand below the last panels alone."""
_LEAST_WIDTH, _CROWDED = 3.2, 0.125
"""Minimum widths of a panel and of a point, in inches."""
_LEGEND_ENTRY = 1.45
"""Width of a legend's entry in inches."""
_TITLE_WIDTH = 44
"""Maximum characters per line of a panel's title; longer lines would overlap the next panel."""
_SMALLEST, _PER_DOUBLING = 4.0, 0.75
"""Diameter in points of a model with a billion parameters, and its increase for each doubling."""


def profile_figure(
    profiles: Sequence[Profile], games: Mapping[tuple[str, str], Game], shown: Collection[Game] | None = None
) -> Figure:
    """Profiles, a panel for each game in its own unit (cooperative-profiles paper, Figure 2).

    Models are ordered by family and size, else as given, followed by baselines. Dashed lines are the equilibrium and
    the social optimum, with the range between them shaded; a dotted range is human play, where known. The colour of a
    point is its family, the marker its place in the family, and its size grows with the logarithm of the model's size;
    bars are 95 % intervals. A cross at the lower edge marks a game excluded from a model's profile.

    Parameters
    ----------
    games
        The game of each setting and name of a game.
    shown
        Those of one page, from `profile_pages`; by default all.
    """
    points = _points(profiles)
    panels = {game: title for game, title in _panels(games).items() if shown is None or game in shown}
    played = {game: [point for point in points if _has_played(point.profile, game, games)] for game in panels}
    are_alike = all(members == points for members in played.values())
    most = max(map(len, played.values()))
    columns = min(len(panels), _columns(most))
    rows = -(-len(panels) // columns)
    width = max(min(max(_LEAST_WIDTH, 1.2 + 0.2 * most), _WIDTH / columns), 1.2 + _CROWDED * most) * columns
    beside = int(width / _LEGEND_ENTRY)
    entries = 6 + len({point.family for point in points})
    height = _TALL[are_alike] * rows + 1.2 + LEGEND_ROW * -(-entries // beside)
    figure, axes = new_figure(width, height, rows=rows, columns=columns)
    for place, (panel, (game, title)) in enumerate(zip(axes, panels.items(), strict=False)):
        _draw_range(panel, game)
        _draw_points(panel, game, played[game])
        panel.set_title(title, fontsize=9)
        panel.set_ylabel(_primary(game).about, fontsize=8)
        _name_points(panel, played[game], shown=not are_alike or place + columns >= len(panels))
        if len(panels) - columns <= place < (rows - 1) * columns:
            # Names extend into the empty place below, so that panels in the same row keep their height.
            panel.xaxis.set_in_layout(False)
    for empty in axes[len(panels) :]:
        empty.set_visible(False)
    handles = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=beside, fontsize=8, frameon=False)
    return figure


def profile_pages(profiles: Sequence[Profile], games: Mapping[tuple[str, str], Game]) -> list[tuple[Game, ...]]:
    """The games of each page of `profile_figure`."""
    panels = list(_panels(games))
    played = [sum(_has_played(profile, game, games) for profile in profiles) for game in panels]
    rows = int(_PANELS_HEIGHT / _TALL[all(number == len(profiles) for number in played)])
    most = rows * _columns(max(played, default=0))
    return [tuple(panels[first : first + most]) for first in range(0, len(panels), most)]


def _panels(games: Mapping[tuple[str, str], Game]) -> dict[Game, str]:
    """The games with the titles of their panels; those of a game under several settings are adjacent."""
    panels: dict[Game, str] = {}
    for (setting, name), game in games.items():
        is_varied = len({other for other in games.values() if other.name == name}) > 1
        panels.setdefault(game, fill(f"{name} ({setting})", _TITLE_WIDTH) if setting and is_varied else name)
    names = list(dict.fromkeys(game.name for game in panels))
    return dict(sorted(panels.items(), key=lambda item: (names.index(item[0].name), len(item[1]), item[1])))


def _has_played(profile: Profile, game: Game, games: Mapping[tuple[str, str], Game]) -> bool:
    return any(games.get((profile.setting, each.game)) == game for each in profile.games)


def _columns(points: int) -> int:
    """The number of panels beside each other on a page, with so many points in a panel."""
    return 2 if 2 * (1.2 + _CROWDED * points) <= _WIDTH else 1


@dataclass(frozen=True)
class _Point:
    """The style of a profile in every panel."""

    profile: Profile
    family: str
    colour: str
    marker: str
    size: float


def _points(profiles: Sequence[Profile]) -> list[_Point]:
    traits = traits_of({profile.model for profile in profiles})

    models = list(dict.fromkeys(profile.model for profile in profiles))

    def order(profile: Profile) -> tuple[bool, bool, str, float, int]:
        known = traits.get(profile.model)
        return (
            profile.model.startswith("scripted:"),
            not known,
            known.family if known else "",
            known.size if known else 0.0,
            models.index(profile.model),
        )

    points: list[_Point] = []
    members: dict[str, list[str]] = {}
    for profile in sorted(profiles, key=order):
        known = traits.get(profile.model)
        family = _BASELINES if profile.model.startswith("scripted:") else (known and known.family) or _UNKNOWN
        if profile.model not in members.setdefault(family, []):
            members[family].append(profile.model)
        colour = {_UNKNOWN: "black", _BASELINES: GREY}.get(family) or FAMILY_COLOURS[
            (len(members) - 1) % len(FAMILY_COLOURS)
        ]
        marker = MARKERS[members[family].index(profile.model) % len(MARKERS)]
        size = _SMALLEST + _PER_DOUBLING * max(0.0, math.log2(known.size)) if known else 6.0
        points.append(_Point(profile, family, colour, marker, size))
    return points


def _draw_range(axes: Axes, game: Game) -> None:
    for people in game.people:
        if people.metric == "level" and people.low is not None and people.high is not None:
            axes.axhspan(people.low, people.high, fill=False, edgecolor=GREY, linestyle=":", label="people")
    if plays := references_or_none(game):
        nash, best = float(plays.nash.level), float(plays.optimum.level)
        axes.axhline(nash, color=_NASH, linestyle="--", linewidth=1, label="equilibrium")
        axes.axhline(best, color=_BEST, linestyle="--", linewidth=1, label="social optimum")
        band: Any = {"color": _BEST, "alpha": 0.07, "linewidth": 0, "label": "between both"}
        axes.axhspan(min(nash, best), max(nash, best), **band)
    primary = _primary(game)
    room = 0.06 * (primary.high - primary.low)
    axes.set_ylim(primary.low - room, primary.high + room)


def _primary(game: Game) -> Quantity:
    return next(quantity for quantity in game.quantities if quantity.name == game.primary)


def _draw_points(axes: Axes, game: Game, points: Sequence[_Point]) -> None:
    for place, point in enumerate(points):
        axes.plot([], [], linewidth=4, color=point.colour, label=point.family)
        [played] = [each for each in point.profile.games if each.game == game.name]
        if played.excluded or played.level is None:
            style: Any = {"color": point.colour, "markersize": 5, "clip_on": False, "label": "excluded"}
            axes.plot(place, axes.get_ylim()[0], "x", **style)
            continue
        axes.vlines(place, *played.level.ends(), color=point.colour, linewidth=1, label="95 % interval")
        axes.plot(place, played.level.value, point.marker, color=point.colour, markersize=point.size, zorder=3)


def _name_points(axes: Axes, points: Sequence[_Point], *, shown: bool) -> None:
    names = [[point.profile.model for point in points], [point.profile.name for point in points]]
    short = [[name.partition(":")[2] or name for name in full] for full in names]
    labels = next((unique for unique in (*short, *names) if len(set(unique)) == len(unique)), names[-1])
    axes.set_xticks(range(len(points)), labels if shown else [""] * len(labels), rotation=90, fontsize=7)
    axes.set_xlim(-0.6, len(points) - 0.4)
    for place, (before, after) in enumerate(itertools.pairwise(points)):
        if before.family != after.family:
            axes.axvline(place + 0.5, color=GREY, linewidth=0.4, alpha=0.5)
