"""Evidence besides the fits of an outcome: tests over models, and a verdict in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.bayes.covariates import PREFIX
from labmates_profiles.bayes.evidence import (
    PERMUTATIONS,
    PermutationTest,
    freedman_lane,
    leave_out_r2,
    leverage,
    sign_flips,
    variance_inflation,
)
from labmates_profiles.bayes.posterior import Posterior
from labmates_profiles.prediction import Form
from labmates_profiles.prediction.data import PredictionData
from labmates_profiles.prediction.dispositions import correlations
from labmates_profiles.prediction.fit import PredictionFit

RELIABLE = 0.8
"""Reliability (share of true variance between models) below this counts as poor measurement of a game."""
INFLATED = 5.0
LEANING = 0.5
"""Leverage above this counts as high."""
LEVEL = 0.05
TOGETHER = 0.9
"""At correlations of .95 the form `robust`, whose dispositions are independent a priori, has too low coverage; at .8 it
has its nominal level."""


@dataclass(frozen=True)
class Evidence:
    """Tests over models without assumptions about their distribution.

    Attributes
    ----------
    permutation
        Of all games together, given the controls.
    r2, r2_low, r2_high
        Predictive R² of left-out families of models with the games, and its 95 % interval; None if there are too few.
    r2_without
        The same without the games.
    inflation
        Variance inflation of each game and control.
    leverage
        Of each model.
    reliability
        Of each game: the share of the variance between models' metrics that is not measurement error.
    freedom
        Models beyond the coefficients per model.
    signs
        Sign-flip tests of the effects within models, by column.
    """

    permutation: PermutationTest
    r2: float | None
    r2_low: float | None
    r2_high: float | None
    r2_without: float | None
    inflation: Mapping[str, float]
    leverage: Mapping[str, float]
    reliability: Mapping[str, float]
    freedom: int
    signs: Mapping[str, PermutationTest]


def evidence(data: PredictionData, *, permutations: int = PERMUTATIONS, seed: int = 0) -> Evidence:
    """Tests of the models' mean outcomes, adjusted for the conditions of their observations."""
    means = adjusted_means(data)
    predictors = np.column_stack([data.levels, data.benchmarks])
    names = (*data.games, *data.controls)
    freedom = len(data.models) - 1 - predictors.shape[1]
    reliable = 1 - (data.errors**2).mean(axis=0) / np.maximum(data.levels.var(axis=0, ddof=1), 1e-12)
    families = data.families
    with_games, without = (leave_out_r2(means, columns, families) for columns in (predictors, data.benchmarks))
    return Evidence(
        permutation=freedman_lane(means, data.levels, data.benchmarks, families, permutations=permutations, seed=seed),
        r2=None if with_games is None else with_games.value,
        r2_low=None if with_games is None else with_games.low,
        r2_high=None if with_games is None else with_games.high,
        r2_without=None if without is None else without.value,
        inflation=dict(zip(names, map(float, variance_inflation(predictors)), strict=True)),
        leverage=dict(zip(data.models, map(float, leverage(predictors)), strict=True)),
        reliability=dict(zip(data.games, map(float, np.clip(reliable, 0, 1)), strict=True)),
        freedom=freedom,
        signs=sign_tests(data, permutations=permutations, seed=seed),
    )


def adjusted_means(data: PredictionData) -> Array:
    """Each model's mean outcome, adjusted for its conditions by least squares within models, shape (m,)."""
    conditions, outcomes = data.means
    return np.asarray(outcomes - (conditions - data.conditions.mean(axis=0)) @ data.within[0])


def sign_tests(data: PredictionData, *, permutations: int = PERMUTATIONS, seed: int = 0) -> dict[str, PermutationTest]:
    """Sign-flip tests of each column, over the models whose own observations identify its effect.

    Each model counts once, whatever its number of observations, and no distribution over models is assumed. The result
    is conditional on the data sets.
    """
    effects = own_effects(data)
    tests = {}
    for name, own in zip(data.columns, effects.T, strict=True):
        known = own[~np.isnan(own)]
        if len(known) >= 2:
            tests[name] = sign_flips(known, permutations=permutations, seed=seed)
    return tests


def own_effects(data: PredictionData) -> Array:
    """The effects of columns by least squares in each model's own observations, shape (models, columns).

    NaN if the observations do not identify the effect.
    """
    effects = np.full((len(data.models), len(data.columns)), np.nan)
    for at in range(len(data.models)):
        mine = data.model_of == at
        design = np.column_stack([np.ones(int(mine.sum())), data.conditions[mine]])
        inverse = np.linalg.pinv(design)
        identified = np.abs((inverse @ design) - np.eye(design.shape[1])).max(axis=1) < 1e-8
        effects[at, identified[1:]] = (inverse @ data.outcome[mine])[1:][identified[1:]]
    return effects


def credible_games(posterior: Posterior, games: Sequence[str], p_holm: Mapping[str, float]) -> list[str]:
    """The games whose 95 % interval excludes 0, with their effects and adjusted p values."""
    return [
        f"{game} {summary.mean:+.3f} [{summary.low:+.3f}, {summary.high:+.3f}], p (Holm) = {p_holm[game]:.4f}"
        for game in games
        if (summary := posterior.summaries[game]).credible
    ]


def verdict(
    outcome: str,
    fits: Mapping[Form, PredictionFit],
    tests: Evidence,
    p_holm: Mapping[Form, Mapping[str, float]],
    p: float,
) -> list[str]:
    """The conclusions in sentences, the most important first.

    Parameters
    ----------
    p_holm
        Of the games by form, adjusted for all games and outcomes.
    p
        Of the permutation test, adjusted for all analysed outcomes.
    """
    data = next(iter(fits.values())).data
    beyond = f" beyond {', '.join(name.removeprefix(PREFIX) for name in data.controls)}" if data.controls else ""
    sentences = [_whether(outcome, beyond, tests, p)]
    trusted: Form | None = next((form for form in ("correlated", "robust") if form in fits), None)
    if trusted is not None:
        posterior = fits[trusted].posterior
        names = credible_games(posterior, data.games, p_holm[trusted])
        sentences.append(
            f"Credible in the form {trusted}: {'; '.join(names)}."
            if names
            else f"In the form {trusted}, no game has a credible effect by itself."
        )
        if "paper" in fits:
            alone = [
                game
                for game in data.games
                if fits["paper"].posterior.summaries[game].credible and not posterior.summaries[game].credible
            ]
            if alone:
                sentences.append(
                    f"Credible only in the paper's form: {', '.join(alone)}. This form treats a model's runs as "
                    "independent; do not rely on these effects."
                )
    elif "paper" in fits:
        sentences.append(
            "The paper's form calls chance findings credible once models differ in other ways (--spec robust)."
        )
    if trusted == "robust":
        sentences += _together(data)
    return [*sentences, *_cautions(tests)]


def _together(data: PredictionData) -> list[str]:
    correlation = correlations(data.levels, data.errors)
    pairs = [
        f"{game} and {other} ({correlation[row, column]:+.2f})"
        for row, game in enumerate(data.games)
        for column, other in enumerate(data.games[:row])
        if abs(correlation[row, column]) > TOGETHER
    ]
    if not pairs:
        return []
    return [
        f"Correlated dispositions: {', '.join(pairs)}. The form robust assumes independence, so its intervals for "
        "these games are too narrow; fit the form correlated (--spec correlated)."
    ]


def _whether(outcome: str, beyond: str, tests: Evidence, p: float) -> str:
    test = tests.permutation
    of = f" of {test.families} families" if test.families < test.units else ""
    chance = f"(permuting models: F = {test.statistic:.2f}, p = {p:.4f}, {test.units} models{of})"
    better = tests.r2 is not None and tests.r2_without is not None and tests.r2 > max(tests.r2_without, 0.0)
    gain = ""
    if tests.r2 is not None and tests.r2_without is not None:
        verb = "better" if tests.r2 > tests.r2_without else "worse"
        change = f"R² {tests.r2_without:.2f} → {tests.r2:.2f}"
        gain = f" With the games, the prediction of left-out models is {verb} ({change})."
    if p >= LEVEL:
        return f"These data can't tell whether the games predict {outcome}{beyond} {chance}.{gain}"
    if better:
        return f"The games predict {outcome}{beyond} {chance}.{gain}"
    return f"The games are associated with {outcome}{beyond} {chance}, but do not help to predict a new model.{gain}"


def _cautions(tests: Evidence) -> list[str]:
    sentences = []
    if leaning := [f"{model} ({value:.2f})" for model, value in tests.leverage.items() if value > LEANING]:
        sentences.append(f"Leverage above {LEANING}, so the result depends on these models: {', '.join(leaning)}.")
    if inflated := [f"{name} ({value:.1f})" for name, value in tests.inflation.items() if value > INFLATED]:
        sentences.append(f"Hard to separate from the other predictors (variance inflation): {', '.join(inflated)}.")
    if noisy := [f"{game} ({value:.2f})" for game, value in tests.reliability.items() if value < RELIABLE]:
        sentences.append(f"Low reliability, more simulations would help: {', '.join(noisy)}.")
    return sentences
