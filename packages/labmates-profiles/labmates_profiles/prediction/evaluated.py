"""Predictions of the fits for each observation and model, for checks and exports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labmates_profiles.bayes.blocks import Block, Evaluated, Kind, Parameter, Prior, evaluate
from labmates_profiles.prediction.data import PredictionData
from labmates_profiles.prediction.density import CENTRE, COVARIATE, EFFECT, INTERCEPT, SPREAD
from labmates_profiles.prediction.density import NOISE as NOISE_SCALE
from labmates_profiles.prediction.fit import BETWEEN, DEVIATION, NOISE, PredictionFit
from labmates_profiles.prediction.fit import INTERCEPT as INTERCEPT_NAME
from labmates_profiles.prediction.screening import Candidate, level_draws


def evaluated(fit: PredictionFit, outcome: str, *, draws: int, seed: int = 0) -> Evaluated:
    """The first draws of a fit, evaluated for each observation and model."""
    rng = np.random.default_rng([seed, 4])
    fit = replace(fit, posterior=fit.posterior.first(draws))
    data = fit.data
    blocks = [block(fit, data, at) for at in range(len(data.models))]
    return Evaluated(
        name=f"{outcome}-{fit.form}",
        outcome=outcome,
        posterior=fit.posterior,
        models=data.models,
        cells=_labels(data),
        count=np.ones(len(data.outcome)),
        **evaluate(blocks, data.model_of, fit.posterior[NOISE], rng),
        parameters=_parameters(fit, rng),
    )


def block(fit: PredictionFit, data: PredictionData, at: int) -> Block:
    """The prediction of a model's lab outcomes given its play; the model need not be part of the fit.

    `data` is on the scales of the fit and contains the model at index `at`.
    """
    mine = data.model_of == at
    mean, variance = level_draws(fit, Candidate(data.levels[at], data.errors[at], data.benchmarks[at]))
    columns = [fit.posterior[name] for name in data.columns]
    conditions = np.column_stack(columns) @ data.conditions[mine].T if columns else 0.0
    fixed = mean[:, None] + conditions + np.zeros(int(mine.sum()))
    if fit.shifts.shape[1] and data.runs is not None:
        shares = data.runs.shares(len(data.outcome))[mine]
        fixed += fit.shifts[: len(fixed)] @ (shares @ fit.turn.T).T
    noise = np.broadcast_to((fit.posterior[NOISE] ** 2)[:, None], fixed.shape)
    ones = np.column_stack([np.ones(int(mine.sum())), data.conditions[mine]])
    terms = np.column_stack([ones[:, 0], ones @ fit.reactions.terms.reshape(-1, ones.shape[1]).T])
    own = [fit.posterior[DEVIATION + fit.reactions.factors[place]] ** 2 for place in fit.reactions.factor]
    return Block(data.outcome[mine], fixed, terms, np.column_stack([variance, *own]), noise)


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


def _parameters(fit: PredictionFit, rng: np.random.Generator) -> dict[str, Parameter]:
    data, posterior = fit.data, fit.posterior
    games, deviation = data.games, Prior(0.0, NOISE_SCALE, positive=True)
    others = [name for name in posterior.names if name.startswith(DEVIATION)]
    kinds = [
        Kind("alpha", [INTERCEPT_NAME], Prior(*INTERCEPT)),
        Kind("beta", games, Prior(0.0, EFFECT), "game"),
        Kind("delta", data.controls, Prior(0.0, COVARIATE), "control"),
        Kind("gamma", data.columns, Prior(0.0, COVARIATE), "column"),
        Kind("mu", [f"mu: {game}" for game in games], Prior(0.0, CENTRE), "game", games),
        Kind("sigma", [f"sigma: {game}" for game in games], Prior(0.0, SPREAD, positive=True), "game", games),
        Kind("tau", [NOISE], deviation),
        Kind("omega", [BETWEEN] if BETWEEN in posterior.names else [], deviation),
        Kind("sd", others, deviation, "term", [name.removeprefix(DEVIATION) for name in others]),
    ]
    return {kind.key: kind.parameter(posterior, rng) for kind in kinds if kind.names}
