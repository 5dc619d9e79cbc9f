"""The figure of a predictive check: observed against predicted outcomes, and how their p values spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from labmates.stats.bayes.blocks import Evaluated
from labmates.stats.figures import COLOURS, GREY, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS = 10


def check_figure(found: Sequence[Evaluated]) -> Figure:
    """Draw two panels for each fit: outcomes with 95 % of their replications, and where they lie among these."""
    figure, axes = new_figure(3.3 * len(found), 6.2, rows=2, columns=len(found))
    for at, one in enumerate(found):
        upper, lower = axes[at], axes[at + len(found)]
        low, high = np.quantile(one.replicated, [0.025, 0.975], axis=0)
        centre = one.replicated.mean(axis=0)
        outside = (one.observed < low) | (one.observed > high)
        upper.vlines(centre, low, high, color=GREY, linewidth=0.5, alpha=0.5)
        for mask, colour, marker, label in (
            (~outside, COLOURS[0], "o", "within 95 %"),
            (outside, COLOURS[1], "x", "outside"),
        ):
            upper.plot(centre[mask], one.observed[mask], marker, color=colour, markersize=3.5, label=label)
        ends = [min(low.min(), one.observed.min()), max(high.max(), one.observed.max())]
        upper.plot(ends, ends, color=GREY, linewidth=0.8)
        upper.set(title=one.name, xlabel=f"predicted {one.outcome}", ylabel="observed")
        upper.legend(fontsize=7, frameon=False)
        place = (one.replicated < one.observed).mean(axis=0)
        n = len(place)
        lower.hist(place, _BINS, range=(0, 1), color=COLOURS[0], edgecolor="white")
        half = 1.96 * np.sqrt(n / _BINS * (1 - 1 / _BINS))
        lower.axhspan(max(n / _BINS - half, 0), n / _BINS + half, color=GREY, alpha=0.25)
        lower.axhline(n / _BINS, color=GREY, linewidth=0.8)
        lower.set(xlabel="share of replications below the outcome", ylabel="outcomes")
    figure.suptitle("Does the model fit? (grey: what chance gives)", x=0.01, ha="left", fontweight="bold")
    return figure
