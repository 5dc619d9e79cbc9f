"""Predicted lab outcomes of a model without lab runs, and its distance from the fitted study.

A model's dispositions are measured with error: given its profile and the population of dispositions they are normal,
and so is the outcome, given the coefficients. The interval covers the error of the profile, the uncertainty of all
coefficients, and the residual differences between models (ω); that of a single run also its noise (τ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from labmates.errors import UsageError
from labmates.models.roster import KnownModel
from labmates_profiles.arrays import Array
from labmates_profiles.bayes.evidence import leverage
from labmates_profiles.prediction.data import PredictionData
from labmates_profiles.prediction.design_matrix import Assembled, control_values, lacking
from labmates_profiles.prediction.fit import BETWEEN, INTERCEPT, NOISE, PredictionFit
from labmates_profiles.prediction.sources import Level
from labmates_profiles.prediction.usefulness import Forecast, bounded

Where = Literal["within", "at the edge", "far outside"]
FAR_Z: Final = 3.0
FAR_P: Final = 0.001
FAR_LEVERAGE: Final = 2.0
"""A leverage that exceeds that of any fitted model by this factor is far outside."""


@dataclass(frozen=True)
class Standing:
    """The distance of a model from the fitted models.

    Attributes
    ----------
    z
        Of each disposition and control: standard deviations from the mean of the fitted models.
    distance
        Mahalanobis distance of its dispositions from that mean; None if there are too few models.
    p
        Probability of at least this distance for a model of the same population (Hotelling's T²); None likewise.
    leverage, largest_leverage
        Of this model, and the largest among the fitted models.
    reasons
        Reasons why it is not within the range.
    """

    z: dict[str, float]
    distance: float | None
    p: float | None
    leverage: float
    largest_leverage: float
    where: Where
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Candidate:
    """A model on the scales of a fitted study: levels and errors of games, and controls, in the study's order."""

    levels: Array
    errors: Array
    controls: Array


def candidate(model: str, levels: Sequence[Level], known: KnownModel | None, study: Assembled) -> Candidate:
    """A model's profile on the scales of a study; UsageError if it lacks a game, an error or a benchmark score."""
    data = study.data
    by_game = {level.game: level for level in levels}
    if reason := lacking(by_game, data.games, [known], data.controls):
        raise UsageError(f"{model} can't be predicted from the fitted study: {reason}")
    values = np.array([by_game[game].value for game in data.games])
    errors = np.array([by_game[game].error for game in data.games], dtype=float)
    by_name = control_values(known) if known else {}
    controls = study.control_scale(np.array([by_name[name] for name in data.controls]))
    return Candidate(study.level_scale(values), errors / study.level_scale.spread, controls)


def forecast(fit: PredictionFit, new: Candidate, outcome: str, *, seed: int = 0) -> Forecast:
    """The predicted outcome, with the games, of a model outside the study, limited by `bounded`."""
    expected, run = predictive_draws(fit, new, seed=seed)
    ends = [float(end) for draws in (expected, run) for end in np.quantile(draws, [0.025, 0.975])]
    return bounded(Forecast(outcome, float(expected.mean()), *ends), fit.data)


def predictive_draws(fit: PredictionFit, new: Candidate, *, seed: int = 0) -> tuple[Array, Array]:
    """Draws from the posterior predictive distribution: the model's expected score, and a single observation.

    Averaged over the conditions and data sets of the study. The form `paper` has no ω, so its interval is too narrow.
    """
    rng = np.random.default_rng([seed, 2])
    mean, variance = level_draws(fit, new)
    terms = fit.reactions.of(fit.data.conditions)
    own_average, own_condition = fit.reacting @ terms.mean(axis=0) ** 2, fit.reacting @ (terms**2).mean(axis=0)
    average = mean + fit.shifted(fit.data).mean(axis=1)
    expected = average + np.sqrt(variance + own_average) * rng.standard_normal(len(mean))
    around = np.sqrt(fit.posterior[NOISE] ** 2 + own_condition - own_average)
    return expected, expected + around * rng.standard_normal(len(mean))


def level_draws(fit: PredictionFit, new: Candidate) -> tuple[Array, Array]:
    """Mean and variance of a model's level given its play, excluding conditions, shape (draws,) each."""
    data, posterior = fit.data, fit.posterior
    effects = np.column_stack([posterior[game] for game in data.games])
    centre = np.column_stack([posterior[f"mu: {game}"] for game in data.games])
    spread = np.column_stack([posterior[f"sigma: {game}"] for game in data.games])
    correlation = np.eye(len(data.games)) if fit.correlation is None else fit.correlation
    covariance = spread[:, :, None] * correlation * spread[:, None, :]
    seen = covariance + np.diag(new.errors**2)
    common = np.einsum("ngh,nh->ng", covariance, effects)
    slope = np.linalg.solve(seen, common[..., None])[..., 0]
    left = np.maximum((effects * common).sum(axis=1) - (slope * common).sum(axis=1), 0)
    mean = posterior[INTERCEPT] + (effects * centre).sum(axis=1) + (slope * (new.levels - centre)).sum(axis=1)
    for name, value in zip(data.controls, new.controls, strict=True):
        mean = mean + posterior[name] * value
    between = posterior[BETWEEN] ** 2 if BETWEEN in posterior.names else 0.0
    return mean, left + between


def standing(data: PredictionData, new: Candidate) -> Standing:
    """The distance of a model from the fitted models."""
    from scipy import stats

    m, g = data.levels.shape
    names = (*data.games, *data.controls)
    fitted = np.column_stack([data.levels, data.benchmarks])
    values = np.concatenate([new.levels, new.controls])
    centre, deviation = fitted.mean(axis=0), fitted.std(axis=0, ddof=1)
    z = (values - centre) / deviation
    distance = p = None
    if m > g + 1:
        away = new.levels - data.levels.mean(axis=0)
        square = float(away @ np.linalg.pinv(np.cov(data.levels.T).reshape(g, g)) @ away)
        distance = float(np.sqrt(square))
        p = float(stats.f.sf(square * m / (m + 1) * (m - g) / (g * (m - 1)), g, m - g))
    fitted_leverage = leverage(fitted)
    design = np.column_stack([np.ones(m), fitted])
    row = np.concatenate([[1.0], values])
    own = float(row @ np.linalg.pinv(design.T @ design) @ row)
    largest = float(fitted_leverage.max())
    reasons, far = _reasons(names, z, fitted, values)
    if p is not None and p < FAR_P:
        far = True
        reasons.append(f"the distance of its dispositions from the mean is {distance:.1f} (p = {p:.1g})")
    if own > FAR_LEVERAGE * largest:
        far = True
    if own > largest:
        reasons.append(f"its leverage is {own:.2f}, the largest of a fitted model {largest:.2f}")
    where: Where = "far outside" if far else "at the edge" if reasons else "within"
    return Standing(dict(zip(names, map(float, z), strict=True)), distance, p, own, largest, where, tuple(reasons))


def _reasons(names: Sequence[str], z: Array, fitted: Array, values: Array) -> tuple[list[str], bool]:
    """The values outside the range of the fitted models, and whether one of them is far outside."""
    reasons, far = [], False
    low, high = fitted.min(axis=0), fitted.max(axis=0)
    for at, name in enumerate(names):
        if low[at] <= values[at] <= high[at]:
            continue
        reasons.append(f"{name} is outside the range of the fitted models (z = {z[at]:+.1f})")
        far = far or abs(z[at]) > FAR_Z
    return reasons, far
