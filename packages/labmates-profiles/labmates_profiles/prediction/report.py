"""The results of the prediction for each outcome: fits, tests and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    results = []
    for assembled, fits, p_values in zip(outcomes, fitted, _adjusted(fitted, forms), strict=True):
        tests, use = analysed[assembled.outcome][1], useful[assembled.outcome]
        sentences = (use.sentence, *verdict(assembled.outcome, fits, tests, p_values, use.p_holm))
        results.append(OutcomeResult(assembled, fits, tests, use, p_values, sentences))
    return results


def _adjusted(
    fits: Sequence[Mapping[Form, PredictionFit]], forms: Sequence[Form]
) -> list[dict[Form, dict[str, float]]]:
    """Holm-adjusted p of each outcome's effects by form: for all games and outcomes; likewise controls and columns."""
    p_holm: list[dict[Form, dict[str, float]]] = [{form: {} for form in forms} for _ in fits]
    for form in forms:
        for kind in ("games", "controls", "columns"):
            effects = [(at, name) for at, by_form in enumerate(fits) for name in getattr(by_form[form].data, kind)]
            p_values = adjusted([(fits[place][form].posterior, name) for place, name in effects])
            for (place, name), p in zip(effects, p_values, strict=True):
                p_holm[place][form][name] = p
    return p_holm
