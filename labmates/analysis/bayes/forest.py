"""Rows of a forest plot: posterior means with their 95 % intervals, fits of the same thing beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from labmates.analysis.bayes.posterior import Summary
from labmates.analysis.figures import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SPREAD = 0.4
"""How much of a row's height the fits in it may take."""


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
    shift = 0.0 if many == 1 else _SPREAD * (number / (many - 1) - 0.5)
    axes.errorbar(
        [one.mean for one in found],
        np.asarray(rows, float) + shift,
        xerr=[[one.mean - one.low for one in found], [one.high - one.mean for one in found]],
        fmt=MARKERS[number],
        color=COLOURS[number],
        markerfacecolor=COLOURS[number] if number else "white",
        label=label,
        markersize=5,
        capsize=2.5,
        linewidth=1.2,
    )
