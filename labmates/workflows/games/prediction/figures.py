"""The forest plot of the prediction of lab outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labmates.stats.bayes.figures import draw_forest
from labmates.stats.bayes.posterior import Posterior
from labmates.stats.figures import new_figure
from labmates.workflows.games.prediction.tables import OutcomeResult, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def forest_figure(results: Sequence[OutcomeResult]) -> Figure:
    """Draw the effects of games and controls with 95 % intervals: a panel for each outcome, a colour for each form."""
    names = list(
        dict.fromkeys(name for one in results for name in (*one.assembled.data.games, *one.assembled.data.controls))
    )
    figure, axes = new_figure(1.6 + 2.9 * len(results), 1.2 + 0.34 * len(names), columns=len(results))
    for ax, result in zip(axes, results, strict=True):
        fits: dict[str, Posterior] = {form: fit.posterior for form, fit in result.fits.items()}
        draw_forest(ax, names, fits, label if ax is axes[0] else lambda _: "", result.assembled.outcome)
        ax.set_xlabel("effect per standard deviation")
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    figure.suptitle("What predicts lab outcomes (95 % intervals)", x=0.01, ha="left", fontweight="bold")
    return figure
