"""The verdict of a regression of proximity in plain words, and the limits of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from labmates.stats.bayes.covariates import PREFIX
from labmates.stats.bayes.posterior import Summary
from labmates.workflows.games.proximity.checks import Checks
from labmates.workflows.games.proximity.fit import Fit
from labmates.workflows.games.proximity.predictors import (
    COT,
    GROUP_SIZE,
    SIZE,
    STANDARD,
    THINKING,
    TOM,
    about_models,
    label,
)

MATTERS: Final = 0.05
"""An effect below this share of the way from the optimum to the equilibrium hardly matters to anybody."""
FEW_MODELS: Final = 15
_INFLATED, _LEVER = 5.0, 0.5
_WHAT: Final = {
    SIZE: "Ten times the parameters",
    THINKING: "A thinking variant",
    COT: "Asking for a chain of thought",
    TOM: "Asking for theory of mind",
    GROUP_SIZE: "One more player in a group",
    STANDARD: "The standard wording",
}


def verdict(fits: Sequence[Fit], beside: Checks, outcome: str = "cooperation") -> list[str]:
    """Sentences: one for each predictor, then what limits them.

    Parameters
    ----------
    fits
        Of the same cells; what is said rests on the robust one where it is among them.
    outcome
        What they explain; the paper's ``proximity`` is a distance, of which less is better.
    """
    by_name = {one.specification: one for one in fits}
    main = by_name.get("robust", fits[0])
    names = main.cells.names
    predictors = [name for name in _WHAT if name in names] + [name for name in names if name.startswith(PREFIX)]
    sentences = [_of_predictor(name, main, by_name.get("paper"), beside, outcome) for name in predictors]
    if main.specification == "paper":
        sentences.append(
            "These intervals are of the paper's specification, which takes simulations of one model for independent: "
            "they are far too narrow wherever models differ beyond the predictors. Fit the robust one (--spec robust)."
        )
    return [*sentences, *_limits(main, beside)]


def _of_predictor(name: str, main: Fit, paper: Fit | None, beside: Checks, outcome: str) -> str:
    summary = main.posterior.summaries[name]
    test = beside.tests.get(name)
    adjusted = beside.p_holm.get(name)
    p = f"; over {test.units} models p = {test.p:.2g} ({adjusted:.2g} after Holm's adjustment)" if test else ""
    what = f"{_WHAT.get(name, label(name))}: {summary.mean:+.3f} [{summary.low:+.3f}, {summary.high:+.3f}]{p}."
    if summary.credible:
        return f"{what} {_direction(summary, outcome)}{_doubt(adjusted)}"
    if max(abs(summary.low), abs(summary.high)) <= MATTERS:
        text = f"No effect as large as {MATTERS} either way."
    else:
        text = "The data are inconclusive: relevant effects of either sign, or none, fit them."
        if min(abs(summary.low), abs(summary.high)) <= MATTERS:
            way = "up" if summary.high > MATTERS else "down"
            text = f"The data can't tell whether there is none, or one that matters, {way}."
    if paper is not None and paper is not main and paper.posterior.summaries[name].credible:
        text += (
            " The paper's specification calls it credible, since it takes simulations of one model for independent "
            "evidence."
        )
    return f"{what} {text}"


def _direction(summary: Summary, outcome: str) -> str:
    better = summary.mean < 0 if outcome == "proximity" else summary.mean > 0
    way = "Nearer to the optimum" if better else "Nearer to the equilibrium"
    size = "" if max(abs(summary.low), abs(summary.high)) > MATTERS else f", though by less than {MATTERS}"
    return f"{way}{size}."


def _doubt(p: float | None) -> str:
    if p is None or p <= 0.05:
        return ""
    return " The test over models does not bear it out, so do not rest much on it."


def _limits(main: Fit, beside: Checks) -> list[str]:
    cells = main.cells
    sentences = []
    about = about_models(cells.names)
    if len(cells.models) < FEW_MODELS:
        sentences.append(
            f"{len(cells.models)} models are few: statements about models (size, thinking, family) rest on them alone, "
            "whatever the number of simulations. More models help, more simulations do not."
        )
    if beside.left_out_r2 is not None and beside.left_out_r2 <= 0 and about:
        sentences.append(
            f"{', '.join(map(label, about))} do not predict a model that was left out (R² {beside.left_out_r2:.2f}): "
            "the mean of the others is as good a guess."
        )
    inflated = [name for name, value in beside.inflation.items() if value > _INFLATED]
    if inflated:
        sentences.append(
            f"{', '.join(map(label, inflated))} are correlated in these models (variance inflation "
            f"{max(beside.inflation.values()):.1f}): their effects can hardly be separated."
        )
    levers = {model: value for model, value in beside.leverage.items() if value > _LEVER}
    if levers and about:
        named = ", ".join(f"{model} ({value:.2f})" for model, value in levers.items())
        sentences.append(
            f"Much rests on single models (leverage above {_LEVER}): {named}. Repeat the analysis without them."
        )
    return sentences
