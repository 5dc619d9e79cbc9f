"""Predictions of the fits for each observation and model, for checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from labmates_profiles.bayes.blocks import Block, Evaluated
from labmates_profiles.bayes.blocks import evaluated as blocks_evaluated
from labmates_profiles.prediction.data import PredictionData
from labmates_profiles.prediction.density import CENTRE, COVARIATE, EFFECT, INTERCEPT, SPREAD
from labmates_profiles.prediction.density import NOISE as NOISE_SCALE
from labmates_profiles.prediction.fit import BETWEEN, DEVIATION, NOISE, PredictionFit
from labmates_profiles.prediction.fit import INTERCEPT as INTERCEPT_NAME
from labmates_profiles.prediction.screening import Candidate, level_draws


def evaluated(fit: PredictionFit, outcome: str, *, draws: int, seed: int = 0) -> Evaluated:
    """The first draws of a fit, evaluated for each observation and model."""
    fit = replace(fit, posterior=fit.posterior.first(draws))
    data = fit.data
    cells = _labels(data), data.model_of, np.ones(len(data.outcome))
    blocks = [block(fit, data, at) for at in range(len(data.models))]
    names = (f"{outcome}-{fit.form}", outcome)
    return blocks_evaluated(names, fit.posterior, blocks, cells, fit.posterior[NOISE], _priors(fit), seed=seed)


def block(fit: PredictionFit, data: PredictionData, at: int) -> Block:
    """The prediction of a model's lab outcomes given its play; the model need not be part of the fit.

    `data` is on the scales of the fit and contains the model at index `at`.
    """
    mine = data.model_of == at
    mean, variance = level_draws(fit, Candidate(data.levels[at], data.errors[at], data.benchmarks[at]))
    fixed = mean[:, None] + fit.shifted(data)[:, mine]
    noise = np.broadcast_to((fit.posterior[NOISE] ** 2)[:, None], fixed.shape)
    terms = np.column_stack([np.ones(int(mine.sum())), fit.reactions.of(data.conditions[mine])])
    return Block(data.outcome[mine], fixed, terms, np.column_stack([variance, fit.reacting]), noise)


def _labels(data: PredictionData) -> tuple[str, ...]:
    labels = []
    for at, model in enumerate(data.model_of):
        values = [
            name if value == 1 else f"{name}={value:+.2g}"
            for name, value in zip(data.columns, data.conditions[at], strict=True)
            if value
        ]
        labels.append(", ".join([data.models[model], *values]))
    return tuple(labels)


def _priors(fit: PredictionFit) -> Iterable[tuple[Sequence[str], float, float]]:
    data, names = fit.data, fit.posterior.names
    yield [INTERCEPT_NAME], *INTERCEPT
    yield data.games, 0.0, EFFECT
    yield [*data.controls, *data.columns], 0.0, COVARIATE
    yield [f"mu: {game}" for game in data.games], 0.0, CENTRE
    yield [f"sigma: {game}" for game in data.games], 0.0, SPREAD
    yield [name for name in names if name in (NOISE, BETWEEN) or name.startswith(DEVIATION)], 0.0, NOISE_SCALE
