"""The forest plot of the prediction of lab outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from labmates.analysis.bayes.prediction_tables import LABELS, OutcomeResult
from labmates.analysis.figures import COLOURS, GREY, MARKERS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STEP = 0.24


def forest_figure(results: Sequence[OutcomeResult]) -> Figure:
    """Draw the effects of games and controls with 95 % intervals: a panel for each outcome, a colour for each form."""
    names = list(
        dict.fromkeys(name for one in results for name in (*one.assembled.data.games, *one.assembled.data.controls))
    )
    figure, axes = new_figure(1.6 + 2.9 * len(results), 1.2 + 0.34 * len(names), columns=len(results))
    places = np.arange(len(names))[::-1]
    for ax, result in zip(axes, results, strict=True):
        ax.axvline(0, color=GREY, linewidth=0.8)
        for at, (form, fit) in enumerate(result.fits.items()):
            known = [(place, fit.posterior.summaries.get(name)) for place, name in zip(places, names, strict=True)]
            there = [(place, one) for place, one in known if one is not None]
            shift = _STEP * ((len(result.fits) - 1) / 2 - at)
            means = np.array([one.mean for _, one in there])
            ends = np.array([[one.mean - one.low, one.high - one.mean] for _, one in there]).T
            ax.errorbar(
                means,
                np.array([place for place, _ in there]) + shift,
                xerr=ends,
                fmt=MARKERS[at],
                color=COLOURS[at],
                markersize=4,
                capsize=2,
                linewidth=1,
                label=form,
            )
        ax.set_title(result.assembled.outcome)
        ax.set_yticks(places, [LABELS.get(name, name) for name in names] if ax is axes[0] else [""] * len(names))
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.set_xlabel("effect per standard deviation")
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    figure.suptitle("What predicts lab outcomes (95 % intervals)", x=0.01, ha="left", fontweight="bold")
    return figure
