"""Panels of a forest plot: posterior means with their 95 % intervals, fits of the same thing beside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from labmates.stats.bayes.posterior import Posterior
from labmates.stats.figures import COLOURS, GREY, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEP = 0.24
"""How far apart fits stand, of a row's height."""
_MOST_TICKS = 5
"""Intervals between numbers below a panel, which is narrow: with more, numbers of three digits run into each other."""


def draw_forest(
    axes: Axes, names: Sequence[str], fits: Mapping[str, Posterior], label: Callable[[str], str], title: str
) -> None:
    """Draw estimates, a row for each parameter and a look for each fit.

    Parameters
    ----------
    names
        Of the parameters, from the top; a fit that lacks one leaves its place empty.
    fits
        By what the legend calls them.
    label
        Makes the text beside a row of a parameter's name.
    """
    axes.axvline(0, color=GREY, linewidth=0.9)
    for number, (name_of_fit, posterior) in enumerate(fits.items()):
        rows = [row for row, name in enumerate(names) if name in posterior.summaries]
        found = [posterior.summaries[names[row]] for row in rows]
        axes.errorbar(
            [one.mean for one in found],
            np.asarray(rows, float) + _STEP * (number - (len(fits) - 1) / 2),
            xerr=[[one.mean - one.low for one in found], [one.high - one.mean for one in found]],
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
