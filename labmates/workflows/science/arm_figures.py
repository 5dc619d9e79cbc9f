"""The arms of divided evidence side by side: accuracy and cost of each over the split."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Final

from labmates.stats import intervals
from labmates.stats.domains import COUNT, SHARE
from labmates.stats.figures import Drawing, error_bars, look, new_figure
from labmates.stats.intervals import Estimate
from labmates.workflows.science.necessity import ALL, Play

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ARMS: Final = ("oracle", "team", "mute", "restricted")
_APART: Final = 0.012
"""Distance between arms at a split, so that their intervals do not overlap."""


def arm_figures(played: Sequence[Play]) -> Iterator[Drawing]:
    """A figure for each condition and team: accuracy and dollars of each arm over the split, with intervals over seeds.

    Conditions with one arm alone have none.
    """
    teams = dict.fromkeys((play.settings, play.teams) for play in played if play.teams)
    for number, (settings, team) in enumerate(teams, 1):
        arms = {
            arm: [p for p in played if (p.settings, p.arm) == (settings, arm) and p.teams in ("", team)]
            for arm in _ARMS
        }
        arms = {arm: plays for arm, plays in arms.items() if plays}
        if len(arms) > 1:
            condition, organisation = json.loads(settings), json.loads(team).get("organisation", "pipeline")
            name = organisation["name"] if isinstance(organisation, Mapping) else organisation
            title = f"{condition.get('task')}, {condition.get('model')}: {name} against one agent"
            alt = f"Mean accuracy and dollars of the arms {', '.join(arms)} over the split of the evidence."
            yield Drawing(f"arms-{number}", title, alt, partial(_figure, arms))


def _figure(arms: Mapping[str, Sequence[Play]]) -> Figure:
    figure, [accuracy, money] = new_figure(7.2, 3.0, columns=2)
    for place, (arm, plays) in enumerate(arms.items()):
        shift = (place - (len(arms) - 1) / 2) * _APART
        _draw(accuracy, arm, shift, _over_splits(plays, "credit"))
        _draw(money, arm, shift, _over_splits(plays, "spent"))
    accuracy.set_ylabel("accuracy, 95 % interval over seeds")
    accuracy.set_ylim(-0.02, 1.02)
    money.set_ylabel("dollars a run")
    money.set_ylim(bottom=0)
    splits = sorted({play.split for plays in arms.values() for play in plays})
    for ax in (accuracy, money):
        ax.set_xlabel("split of the evidence")
        ax.set_xticks(splits, [f"{split:g}" for split in splits])
    money.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    return figure


def _over_splits(plays: Sequence[Play], what: str) -> dict[float, Estimate]:
    """The mean over seeds at each split; runs of one seed are averaged first."""
    domain = SHARE if what == "credit" else COUNT
    estimates = {}
    for split in sorted({play.split for play in plays}):
        seeds: dict[int, list[float]] = {}
        for play in plays:
            if play.split == split:
                seeds.setdefault(play.seed, []).append(play.credit[ALL] if what == "credit" else play.spent)
        estimates[split] = intervals.mean([fmean(values) for values in seeds.values()], domain)
    return estimates


def _draw(ax: Axes, arm: str, shift: float, means: Mapping[float, Estimate]) -> None:
    colour, marker = look(_ARMS.index(arm))
    estimates = [*means.values()]
    at, values = [split + shift for split in means], [estimate.value for estimate in estimates]
    bars = error_bars(estimates)
    ax.errorbar(at, values, bars, marker=marker, color=colour, markersize=4, capsize=2, linewidth=1, label=arm)
