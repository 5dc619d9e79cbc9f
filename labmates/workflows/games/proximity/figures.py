"""The figure of a regression of proximity: coefficients with their intervals, specifications side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labmates.stats.bayes.figures import draw_forest
from labmates.stats.figures import new_figure
from labmates.workflows.games.proximity.predictors import GAME_PREFIX, label
from labmates.workflows.games.proximity.report import ProximityReport

if TYPE_CHECKING:
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
    fits = {f"{one.specification} (95 % interval)": one.posterior for one in report.fits}
    for one, (part, title) in zip(axes, parts, strict=False):
        draw_forest(one, part, fits, label, title)
    outcome = report.prepared.outcome
    ways = ["← nearer to the equilibrium", "nearer to the optimum →"]
    if outcome == "proximity":
        ways = ["← nearer to the optimum", "nearer to the equilibrium →"]
    axes[-1].set_xlabel(f"effect on {outcome}\n{'      '.join(ways)}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False, fontsize=8)
    return figure
