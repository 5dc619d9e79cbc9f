"""Checks of a regression of proximity: tests over models, their power, and the verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from labmates.stats.multiplicity import holm
from labmates_profiles.arrays import Array
from labmates_profiles.bayes.covariates import PREFIX
from labmates_profiles.bayes.evidence import (
    PERMUTATIONS,
    PermutationTest,
    freedman_lane,
    indicators,
    leave_out_r2,
    leverage,
    sign_flips,
    variance_inflation,
)
from labmates_profiles.bayes.posterior import Summary
from labmates_profiles.proximity.cells import GAME_PREFIX, PREDICTORS, Cells, about_models, label
from labmates_profiles.proximity.fit import Fit

if TYPE_CHECKING:
    import pandas as pd


MATTERS: Final = 0.05
"""Smallest relevant effect, as a share of the distance from the optimum to the equilibrium."""
FEW_MODELS: Final = 15
_INFLATED, _LEVER = 5.0, 0.5


@dataclass(frozen=True)
class Checks:
    """Tests over models, with one value per model.

    Attributes
    ----------
    tests
        By predictor. For size, thinking and covariates: permutations of models' adjusted means (Freedman and Lane),
        each given the others. For predictors that vary within models: sign flips of the models' own effects.
    left_out_r2
        R² of predictions of the adjusted means of models left out; None if undefined.
    inflation
        Variance inflation of the predictors of models.
    leverage
        Leverage of each model, in descending order.
    """

    tests: dict[str, PermutationTest]
    left_out_r2: float | None
    inflation: dict[str, float]
    leverage: dict[str, float]

    @cached_property
    def p_holm(self) -> dict[str, float]:
        """P values of all tests, adjusted by Holm's method."""
        adjusted = holm([test.p for test in self.tests.values()])
        return {name: p for name, p in zip(self.tests, adjusted, strict=True) if p is not None}


def checks(cells: Cells, *, permutations: int = PERMUTATIONS, seed: int = 0) -> Checks:
    """Tests over the models of cells."""
    names = about_models(cells.names)
    places = [cells.names.index(name) for name in names]
    firsts = np.unique(cells.model, return_index=True)[1]
    traits = cells.predictors[firsts][:, places]
    means = adjusted_means(cells)
    families = indicators(cells.family[firsts])
    tests: dict[str, PermutationTest] = {}
    for at, name in enumerate(names):
        others = np.delete(traits, at, axis=1)
        try:
            tests[name] = freedman_lane(means, traits[:, at], others, families, permutations=permutations, seed=seed)
        except ValueError:
            continue  # too few models, or one predictor determines the other
    for name in cells.names:
        if name not in names and len(effects := own_effects(cells, name)) >= 2:
            tests[name] = sign_flips(effects, permutations=permutations, seed=seed)
    left_out = leave_out_r2(means, traits, families) if names else None
    by_model = dict(zip(cells.models, leverage(traits).tolist(), strict=True))
    return Checks(
        tests,
        left_out.value if left_out else None,
        dict(zip(names, variance_inflation(traits).tolist(), strict=True)),
        dict(sorted(by_model.items(), key=lambda item: -item[1])),
    )


def adjusted_means(cells: Cells) -> Array:
    """The mean of each model over cells, adjusted for differences in conditions: shape ``(models,)``.

    By least squares of the cells' means on models and on all predictors that vary within them.
    """
    about = about_models(cells.names)
    within = [at for at, name in enumerate(cells.names) if name not in about]
    others = cells.predictors[:, within]
    design = np.column_stack([np.eye(len(cells.models))[cells.model], others - others.mean(axis=0)])
    return np.asarray(np.linalg.lstsq(design, cells.mean, rcond=None)[0][: len(cells.models)])


def own_effects(cells: Cells, name: str) -> Array:
    """The effect of a predictor that varies within models, such as a prompt or a game, on each model's proximity.

    Cells are compared with those of the same model, game and otherwise equal predictors; for group size the effect is
    the slope. A game is compared with the reference, under equal conditions.

    Returns
    -------
    effects
        Shape ``(models,)``, for models in which it varies; empty if the regression has no such predictor.
    """
    import pandas as pd

    if name not in cells.names:
        return np.empty(0)
    games = [other for other in cells.names if other.startswith(GAME_PREFIX)]
    frame: pd.DataFrame = pd.DataFrame(cells.predictors, columns=list(cells.names)).assign(
        model=cells.model, block=cells.block, mean=cells.mean
    )
    alike = ["model", *(other for other in cells.names if other != name and other not in games)]
    if name in games:
        frame = frame[(frame[[other for other in games if other != name]] == 0).all(axis=1)]
    else:
        alike.append("block")
    frame = frame.groupby([*alike, name])["mean"].mean().reset_index()
    deviations = frame[[name, "mean"]] - frame.groupby(alike)[[name, "mean"]].transform("mean")
    model = frame["model"].to_numpy(dtype=int)
    cross = np.bincount(model, (deviations[name] * deviations["mean"]).to_numpy())
    square = np.bincount(model, (deviations[name] ** 2).to_numpy())
    return np.asarray(cross[square > 0] / square[square > 0])


def verdict(fits: Sequence[Fit], beside: Checks, outcome: str = "cooperation") -> list[str]:
    """Sentences on each predictor, then on limitations.

    Parameters
    ----------
    fits
        Of the same cells; sentences use the robust one, if present.
    outcome
        The explained outcome; the paper's ``proximity`` is a distance, so less is better.
    """
    by_name = {fit.specification: fit for fit in fits}
    main = by_name.get("robust", fits[0])
    names = main.cells.names
    predictors = [name for name in PREDICTORS if name in names] + [name for name in names if name.startswith(PREFIX)]
    sentences = [_of_predictor(name, main, by_name.get("paper"), beside, outcome) for name in predictors]
    if main.specification == "paper":
        sentences.append(
            "These intervals are of the paper's specification, which treats one model's simulations as independent: "
            "they are far too narrow if models differ beyond the predictors. Fit the robust one (--spec robust)."
        )
    return [*sentences, *_limits(main, beside)]


def _of_predictor(name: str, main: Fit, paper: Fit | None, beside: Checks, outcome: str) -> str:
    summary = main.posterior.summaries[name]
    test = beside.tests.get(name)
    adjusted = beside.p_holm.get(name)
    p = f"; over {test.units} models p = {test.p:.2g} ({adjusted:.2g} after Holm's adjustment)" if test else ""
    effect = PREDICTORS[name].effect if name in PREDICTORS else label(name)
    what = f"{effect}: {summary.mean:+.3f} [{summary.low:+.3f}, {summary.high:+.3f}]{p}."
    if summary.credible:
        return f"{what} {_direction(summary, outcome)}{_doubt(adjusted)}"
    if max(abs(summary.low), abs(summary.high)) <= MATTERS:
        text = f"No effect as large as {MATTERS} either way."
    else:
        text = "Inconclusive: no effect and relevant effects of either sign all fit the data."
        if min(abs(summary.low), abs(summary.high)) <= MATTERS:
            way = "increase" if summary.high > MATTERS else "decrease"
            text = f"Inconclusive: no effect and a relevant {way} both fit the data."
    if paper is not None and paper is not main and paper.posterior.summaries[name].credible:
        text += " The paper's specification calls it credible, since it treats one model's simulations as independent."
    return f"{what} {text}"


def _direction(summary: Summary, outcome: str) -> str:
    better = summary.mean < 0 if outcome == "proximity" else summary.mean > 0
    way = f"Moves play toward the {'optimum' if better else 'equilibrium'}"
    size = "" if max(abs(summary.low), abs(summary.high)) > MATTERS else f", though by less than {MATTERS}"
    return f"{way}{size}."


def _doubt(p: float | None) -> str:
    if p is None or p <= 0.05:
        return ""
    return " The test over models does not confirm it, so treat it with caution."


def _limits(main: Fit, beside: Checks) -> list[str]:
    cells = main.cells
    sentences = []
    about = about_models(cells.names)
    if len(cells.models) < FEW_MODELS:
        sentences.append(
            f"{len(cells.models)} models are few: statements about models (size, thinking, family) depend on their "
            "number, not on the number of simulations. More models help, more simulations do not."
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
            f"The results depend on single models (leverage above {_LEVER}): {named}. Repeat the analysis without them."
        )
    return sentences
