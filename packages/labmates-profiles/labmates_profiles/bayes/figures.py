"""Forest plots of fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from labmates.stats.figures import COLOURS, GREY, MARKERS
from labmates_profiles.bayes.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEP = 0.24
"""Vertical distance of fits, as a share of a row's height."""
_MOST_TICKS = 5
"""Maximum number of intervals on the axis of a narrow panel; with more, labels of three digits overlap."""


def draw_forest(
    axes: Axes, names: Sequence[str], fits: Mapping[str, Posterior], label: Callable[[str], str], title: str
) -> None:
    """Draw estimates, with a row for each parameter and a style for each fit.

    Parameters
    ----------
    names
        Of the parameters, from the top; parameters missing from a fit leave a gap.
    fits
        By their name in the legend.
    label
        Maps a parameter's name to the label of its row.
    """
    axes.axvline(0, color=GREY, linewidth=0.9)
    for number, (name_of_fit, posterior) in enumerate(fits.items()):
        rows = [row for row, name in enumerate(names) if name in posterior.summaries]
        summaries = [posterior.summaries[names[row]] for row in rows]
        axes.errorbar(
            [summary.mean for summary in summaries],
            np.asarray(rows, float) + _STEP * (number - (len(fits) - 1) / 2),
            xerr=np.array([[summary.mean - summary.low, summary.high - summary.mean] for summary in summaries]).T,
            fmt=MARKERS[number],
            color=COLOURS[number],
            markerfacecolor=COLOURS[number] if number else "white",
            label=name_of_fit,
            markersize=5,
            capsize=2.5,
            linewidth=1.2,
        )
    axes.set_yticks(range(len(names)), list(map(label, names)))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_title(title, loc="left", fontsize=9)
    axes.locator_params(axis="x", nbins=_MOST_TICKS, min_n_ticks=3)
