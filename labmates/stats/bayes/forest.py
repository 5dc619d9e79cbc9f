"""Rows of a forest plot: posterior means with their 95 % intervals, fits of the same thing beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from labmates.stats.bayes.posterior import Summary
from labmates.stats.figures import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEP = 0.24
"""How far apart fits stand, of a row's height."""
_MOST_TICKS = 5
"""Intervals between numbers below a panel, which is narrow: with more, numbers of three digits run into each other."""


def draw_estimates(
    axes: Axes, rows: Sequence[float], found: Sequence[Summary], number: int, many: int, label: str
) -> None:
    """Draw one fit's estimates, each in its row.

    Parameters
    ----------
    rows
        Their places on the vertical axis, which grows downwards.
    number, many
        Which of how many fits this is.
    """
    axes.errorbar(
        [one.mean for one in found],
        np.asarray(rows, float) + _STEP * (number - (many - 1) / 2),
        xerr=[[one.mean - one.low for one in found], [one.high - one.mean for one in found]],
        fmt=MARKERS[number],
        color=COLOURS[number],
        markerfacecolor=COLOURS[number] if number else "white",
        label=label,
        markersize=5,
        capsize=2.5,
        linewidth=1.2,
    )
    axes.locator_params(axis="x", nbins=_MOST_TICKS, min_n_ticks=3)
