"""Figures of fits: forest plots, and predictive checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from labmates.stats.bayes.blocks import Evaluated
from labmates.stats.bayes.posterior import Posterior
from labmates.stats.figures import COLOURS, GREY, MARKERS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STEP = 0.24
"""How far apart fits stand, of a row's height."""
_MOST_TICKS = 5
"""Intervals between numbers below a panel, which is narrow: with more, numbers of three digits run into each other."""
_BINS = 10


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
        summaries = [posterior.summaries[names[row]] for row in rows]
        axes.errorbar(
            [one.mean for one in summaries],
            np.asarray(rows, float) + _STEP * (number - (len(fits) - 1) / 2),
            xerr=[[one.mean - one.low for one in summaries], [one.high - one.mean for one in summaries]],
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


def check_figure(fits: Sequence[Evaluated]) -> Figure:
    """Draw two panels for each fit: outcomes with 95 % of their replications, and where they lie among these."""
    figure, axes = new_figure(3.3 * len(fits), 6.2, rows=2, columns=len(fits))
    for at, fit in enumerate(fits):
        upper, lower = axes[at], axes[at + len(fits)]
        low, high = np.quantile(fit.replicated, [0.025, 0.975], axis=0)
        centre = fit.replicated.mean(axis=0)
        outside = (fit.observed < low) | (fit.observed > high)
        upper.vlines(centre, low, high, color=GREY, linewidth=0.5, alpha=0.5)
        for mask, colour, marker, label in (
            (~outside, COLOURS[0], "o", "within 95 %"),
            (outside, COLOURS[1], "x", "outside"),
        ):
            upper.plot(centre[mask], fit.observed[mask], marker, color=colour, markersize=3.5, label=label)
        ends = [min(low.min(), fit.observed.min()), max(high.max(), fit.observed.max())]
        upper.plot(ends, ends, color=GREY, linewidth=0.8)
        upper.set(title=fit.name, xlabel=f"predicted {fit.outcome}", ylabel="observed")
        upper.legend(fontsize=7, frameon=False)
        place = (fit.replicated < fit.observed).mean(axis=0)
        n = len(place)
        lower.hist(place, _BINS, range=(0, 1), color=COLOURS[0], edgecolor="white")
        half = 1.96 * np.sqrt(n / _BINS * (1 - 1 / _BINS))
        lower.axhspan(max(n / _BINS - half, 0), n / _BINS + half, color=GREY, alpha=0.25)
        lower.axhline(n / _BINS, color=GREY, linewidth=0.8)
        lower.set(xlabel="share of replications below the outcome", ylabel="outcomes")
    figure.suptitle("Does the model fit? (grey: chance)", x=0.01, ha="left", fontweight="bold")
    return figure
