"""The figure of a regression of proximity: coefficients with their intervals, specifications beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labmates.stats.bayes.forest import draw_estimates
from labmates.stats.figures import GREY, new_figure
from labmates.workflows.games.proximity.predictors import GAME_PREFIX, label
from labmates.workflows.games.proximity.report import ProximityReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def forest_figure(report: ProximityReport) -> Figure:
    """Draw posterior means and 95 % intervals of coefficients, games in a part of their own with a wider scale."""
    names = report.prepared.cells.names
    others = [name for name in names if not name.startswith(GAME_PREFIX)]
    games = [name for name in names if name.startswith(GAME_PREFIX)]
    parts = [
        (part, title)
        for part, title in (
            (others, "Models, prompts and groups"),
            (games, f"Games, compared with {report.prepared.reference}"),
        )
        if part
    ]
    heights = [len(part) + 0.8 for part, _ in parts]
    figure, axes = new_figure(6.8, 1.5 + 0.42 * sum(heights), rows=max(len(parts), 1), height_ratios=heights or None)
    for one, (part, title) in zip(axes, parts, strict=False):
        _part(one, report, part, title)
    outcome = report.prepared.outcome
    ways = ["← nearer to the equilibrium", "nearer to the optimum →"]
    if outcome == "proximity":
        ways = ["← nearer to the optimum", "nearer to the equilibrium →"]
    axes[-1].set_xlabel(f"effect on {outcome}\n{'      '.join(ways)}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False, fontsize=8)
    return figure


def _part(axes: Axes, report: ProximityReport, names: list[str], title: str) -> None:
    axes.axvline(0, color=GREY, linewidth=0.9)
    for number, one in enumerate(report.fits):
        found = [one.posterior.summaries[name] for name in names]
        draw_estimates(axes, range(len(names)), found, number, len(report.fits), f"{one.specification} (95 % interval)")
    axes.set_yticks(range(len(names)), [label(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_title(title, loc="left", fontsize=9)
