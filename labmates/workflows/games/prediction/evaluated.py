"""What fits of the prediction of lab outcomes say of each observation and model, for checks and exports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from labmates.stats.bayes.blocks import Block, Evaluated, Parameter, drawn, half_normal, log_normal_density, normal
from labmates.workflows.games.prediction.data import PredictionData
from labmates.workflows.games.prediction.density import CENTRE, COVARIATE, EFFECT, INTERCEPT, SPREAD
from labmates.workflows.games.prediction.density import NOISE as NOISE_SCALE
from labmates.workflows.games.prediction.fit import BETWEEN, DEVIATION, NOISE, PredictionFit
from labmates.workflows.games.prediction.fit import INTERCEPT as INTERCEPT_NAME
from labmates.workflows.games.prediction.screening import Candidate, level_draws


def evaluated(fit: PredictionFit, outcome: str, *, draws: int, seed: int = 0) -> Evaluated:
    """Evaluate the first draws of a fit."""
    rng = np.random.default_rng([seed, 4])
    fit = replace(fit, posterior=fit.posterior.first(draws))
    data, posterior = fit.data, fit.posterior
    noise = posterior[NOISE]
    expected, by_model = drawn([block(fit, data, at) for at in range(len(data.models))], data.model_of, rng)
    variance = np.broadcast_to((noise**2)[:, None], expected.shape)
    return Evaluated(
        name=f"{outcome}-{fit.form}",
        outcome=outcome,
        posterior=posterior,
        parameters=_parameters(fit, rng),
        models=data.models,
        cells=_labels(data),
        model_of=data.model_of,
        observed=data.outcome,
        count=np.ones(len(data.outcome)),
        expected=expected,
        spread=np.sqrt(variance),
        replicated=expected + np.sqrt(variance) * rng.standard_normal(expected.shape),
        log_likelihood=log_normal_density(data.outcome, expected, variance),
        by_model=by_model,
        noise=noise,
    )


def block(fit: PredictionFit, data: PredictionData, at: int) -> Block:
    """Return what a fit says of the lab outcomes of a model, given its play; it need not be part of the fit.

    Parameters
    ----------
    data
        That the model is part of, on the scales of the fit.
    at
        Its place there.
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
    told = []
    for at, model in enumerate(data.model_of):
        values = [
            name if value == 1 else f"{name}={value:+.2g}"
            for name, value in zip(data.columns, data.conditions[at], strict=True)
            if value
        ]
        told.append(", ".join([data.models[model], *values]))
    return tuple(told)


def _parameters(fit: PredictionFit, rng: np.random.Generator) -> dict[str, Parameter]:
    data, posterior = fit.data, fit.posterior

    found: dict[str, Parameter] = {}

    def add(key: str, dimension: str, names: Sequence[str], labels: Sequence[str], mean: float, sd: float) -> None:
        if names:
            draws = posterior.columns(names)
            prior = half_normal(draws, sd, rng) if mean != mean else normal(draws, mean, sd, rng)
            found[key] = Parameter(dimension, tuple(labels), draws, *prior)

    half = float("nan")
    add("alpha", "", [INTERCEPT_NAME], (), *INTERCEPT)
    add("beta", "game", data.games, data.games, 0, EFFECT)
    add("delta", "control", data.controls, data.controls, 0, COVARIATE)
    add("gamma", "column", data.columns, data.columns, 0, COVARIATE)
    add("mu", "game", [f"mu: {game}" for game in data.games], data.games, 0, CENTRE)
    add("sigma", "game", [f"sigma: {game}" for game in data.games], data.games, half, SPREAD)
    add("tau", "", [NOISE], (), half, NOISE_SCALE)
    if BETWEEN in posterior.names:
        add("omega", "", [BETWEEN], (), half, NOISE_SCALE)
    others = [name for name in posterior.names if name.startswith(DEVIATION)]
    add("sd", "term", others, [name.removeprefix(DEVIATION) for name in others], half, NOISE_SCALE)
    return found
