"""The results of the prediction for each outcome: fits, tests and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labmates.stats.figures import new_figure, title_figure
from labmates_profiles.bayes.figures import draw_forest
from labmates_profiles.bayes.importance import DRAWS
from labmates_profiles.bayes.posterior import Posterior, adjusted
from labmates_profiles.prediction import FORMS, Form
from labmates_profiles.prediction.design_matrix import Assembled
from labmates_profiles.prediction.evidence import evidence, verdict
from labmates_profiles.prediction.fit import PredictionFit, fit_prediction
from labmates_profiles.prediction.tables import OutcomeResult, label
from labmates_profiles.prediction.usefulness import usefulness

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def forest_figure(results: Sequence[OutcomeResult]) -> Figure:
    """Draw the effects of games and controls with 95 % intervals: a panel for each outcome, a colour for each form."""
    names = list(
        dict.fromkeys(
            name for result in results for name in (*result.assembled.data.games, *result.assembled.data.controls)
        )
    )
    figure, axes = new_figure(1.4 + 1.8 * len(results), 1.5 + 0.34 * len(names), columns=len(results))
    for ax, result in zip(axes, results, strict=True):
        fits: dict[str, Posterior] = {form: fit.posterior for form, fit in result.fits.items()}
        draw_forest(ax, names, fits, label if ax is axes[0] else lambda _: "", result.assembled.outcome)
        ax.set_xlabel("effect per SD")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8)
    title_figure(figure, "What predicts lab outcomes (95 % intervals)")
    return figure


def predict_outcomes(
    outcomes: Sequence[Assembled],
    *,
    forms: Sequence[Form] = FORMS,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[OutcomeResult]:
    """Fit the model to each outcome (cooperative-profiles paper, section 4.1.2)."""
    analysed = {assembled.outcome: (assembled.data, evidence(assembled.data, seed=seed)) for assembled in outcomes}
    useful = usefulness(analysed)
    fitted = [
        {form: fit_prediction(assembled.data, form, draws=draws, seed=seed) for form in forms} for assembled in outcomes
    ]
    p_holm = {form: _adjusted([fits[form] for fits in fitted]) for form in forms}
    results = []
    for place, (assembled, fits) in enumerate(zip(outcomes, fitted, strict=True)):
        tests, use = analysed[assembled.outcome][1], useful[assembled.outcome]
        p_values = {form: p_holm[form][place] for form in forms}
        sentences = (use.sentence, *verdict(assembled.outcome, fits, tests, p_values, use.p_holm))
        results.append(OutcomeResult(assembled, fits, tests, use, p_values, sentences))
    return results


def _adjusted(fits: Sequence[PredictionFit]) -> list[dict[str, float]]:
    """Holm-adjusted p of each outcome's effects: for all games and outcomes; likewise controls and columns."""
    kinds = ([getattr(fit.data, kind) for fit in fits] for kind in ("games", "controls", "columns"))
    return adjusted([fit.posterior for fit in fits], *kinds)
