"""Figures of fits: forest plots and predictive checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from labmates.stats.figures import COLOURS, GREY, MARKERS, new_figure, title_figure
from labmates_profiles.bayes.blocks import Evaluated
from labmates_profiles.bayes.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STEP = 0.24
"""Vertical distance of fits, as a share of a row's height."""
_MOST_TICKS = 5
"""Maximum number of intervals on the axis of a narrow panel; with more, labels of three digits overlap."""
_BINS = 10
_MOST_BESIDE = 3
"""Maximum number of fits side by side on a page."""


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


def check_figure(fits: Sequence[Evaluated]) -> Figure:
    """Two panels for each fit: outcomes with 95 % of their replications, and their ranks among replications.

    Fits of one outcome are side by side.
    """
    columns = min(_MOST_BESIDE, sum(fit.outcome == fits[0].outcome for fit in fits))
    bands = -(-len(fits) // columns)
    figure, axes = new_figure(3.3 * columns, 5.8 * bands + 0.4, rows=2 * bands, columns=columns)
    for unused in axes:
        unused.set_visible(False)
    for at, fit in enumerate(fits):
        band, column = divmod(at, columns)
        upper, lower = axes[2 * band * columns + column], axes[(2 * band + 1) * columns + column]
        upper.set_visible(True)
        lower.set_visible(True)
        low, high = np.quantile(fit.replicated, [0.025, 0.975], axis=0)
        centre = fit.replicated.mean(axis=0)
        outside = (fit.observed < low) | (fit.observed > high)
        upper.vlines(centre, low, high, color=GREY, linewidth=0.5, alpha=0.5)
        for mask, colour, marker, label in (
            (~outside, COLOURS[0], "o", "within 95 %"),
            (outside, COLOURS[1], "x", "outside"),
        ):
            if mask.any():
                upper.plot(centre[mask], fit.observed[mask], marker, color=colour, markersize=3.5, label=label)
        ends = [min(low.min(), fit.observed.min()), max(high.max(), fit.observed.max())]
        upper.plot(ends, ends, color=GREY, linewidth=0.8)
        upper.set_title(fit.name, loc="left", fontsize=9)
        upper.set(xlabel=f"predicted {fit.outcome}, 95 % interval", ylabel=f"observed {fit.outcome}")
        upper.legend(fontsize=7, frameon=False)
        place = (fit.replicated < fit.observed).mean(axis=0)
        n = len(place)
        lower.hist(place, _BINS, range=(0, 1), color=COLOURS[0], edgecolor="white", zorder=2)
        half = 1.96 * np.sqrt(n / _BINS * (1 - 1 / _BINS))
        chance = max(n / _BINS - half, 0), n / _BINS + half
        lower.axhspan(*chance, color=GREY, alpha=0.25, linewidth=0)
        for height, style in ((chance[0], ":"), (n / _BINS, "--"), (chance[1], ":")):
            lower.axhline(height, color="black", linewidth=0.8, linestyle=style, zorder=3)
        lower.locator_params(axis="y", integer=True)
        lower.set(xlabel="share of replications below the outcome", ylabel="number of outcomes", xlim=(0, 1))
    title_figure(figure, "Does the model fit? (grey: 95 % by chance)")
    return figure
