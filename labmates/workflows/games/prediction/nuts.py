"""The prediction model by Hamiltonian Monte Carlo (NumPyro), as a check; needs the extra `analysis`.

It samples the same collapsed density as the default engine, with JAX's gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from labmates.stats.arrays import Array
from labmates.stats.bayes.nuts import sample_model
from labmates.stats.bayes.posterior import Posterior
from labmates.workflows.games.prediction import Form
from labmates.workflows.games.prediction.data import PredictionData
from labmates.workflows.games.prediction.density import CENTRE, COVARIATE, EFFECT, SPREAD, Collapsed
from labmates.workflows.games.prediction.density import INTERCEPT as INTERCEPT_PRIOR
from labmates.workflows.games.prediction.density import NOISE as NOISE_PRIOR
from labmates.workflows.games.prediction.fit import BETWEEN, INTERCEPT, NOISE, names

SITES = (INTERCEPT, "effect", "controls", "columns", NOISE, BETWEEN, "reactions", "shift", "run", "mu", "spread")
"""In the order of `names`."""


def fit_nuts(data: PredictionData, form: Form = "robust", **how: Any) -> Posterior:
    """Sample the collapsed density by NUTS; parameters as in `fit_prediction` and `nuts.sample_model`."""
    model = Collapsed(data, form)
    density, given = collapsed(model)
    return sample_model(density, given, names(model), SITES, start=start(data), **how)[0]


def collapsed(model: Collapsed) -> tuple[Callable[[dict[str, Any]], None], dict[str, Any]]:
    """The collapsed density as a model in NumPyro, and its data."""
    data, paper = model.data, model.form == "paper"
    own = np.column_stack([np.ones(len(data.outcome)), own_terms(model)])
    rows = np.column_stack([data.conditions, *([] if paper else [members(data)[0]]), data.outcome])
    by_model = [(own[data.model_of == at], rows[data.model_of == at]) for at in range(len(data.models))]
    given = {
        **given_data(model),
        "counts": model.summary.counts,
        "conditions": data.conditions,
        "own": np.array([terms.T @ terms for terms, _ in by_model]),
        "cross": np.array([terms.T @ values for terms, values in by_model]),
        "square": np.array([values.T @ values for _, values in by_model]),
        **({} if model.correlation is None else {"correlation": model.correlation}),
    }
    return _COLLAPSED[paper], given


def given_data(model: Collapsed) -> dict[str, Any]:
    """The arrays that all implementations of the model take, by name."""
    data = model.data
    arrays: dict[str, Any] = {name: getattr(data, name) for name in ("levels", "errors", "benchmarks")}
    arrays["factor"] = np.eye(len(model.reactions.factors))[list(model.reactions.factor)]
    if model.shifts is not None and model.shifts.freedom:
        arrays |= {"within": members(data)[1], "freedom": float(model.shifts.freedom)}
    return arrays


def own_terms(model: Collapsed) -> Array:
    """The random terms of models' reactions in each observation, shape (observations, terms)."""
    ones = np.column_stack([np.ones(len(model.data.outcome)), model.data.conditions])
    return np.asarray(ones @ model.reactions.terms.reshape(-1, ones.shape[1]).T)


def members(data: PredictionData) -> tuple[Array, Array]:
    """Each observation's proportions of data sets; and those and the outcome of each run, centred by observation."""
    if data.runs is None:
        return np.empty((len(data.outcome), 0)), np.empty((0, 1))
    runs = data.runs
    both = np.column_stack([runs.member, runs.outcome])
    mean = np.array([both[runs.observation == at].mean(axis=0) for at in range(len(data.outcome))])
    return mean[:, :-1], both - mean[runs.observation]


def start(data: PredictionData) -> dict[str, Any]:
    """A starting point for chains, with a finite density."""
    return {NOISE: 0.1, "effect": np.zeros(len(data.games))}


def priors(given: dict[str, Any], columns: int, *, paper: bool) -> dict[str, Any]:
    """The sampled parameters by name, each with its prior."""
    import numpyro
    from numpyro import distributions as dist

    g, c = given["levels"].shape[1], given["benchmarks"].shape[1]

    def vector(name: str, prior: Any, length: int) -> Any:
        return numpyro.sample(name, prior.expand([length]).to_event(1)) if length else np.empty(0)

    return {
        "mu": vector("mu", dist.Normal(0, CENTRE), g),
        "spread": vector("spread", dist.HalfNormal(SPREAD), g),
        "intercept": numpyro.sample(INTERCEPT, dist.Normal(*INTERCEPT_PRIOR)),
        "effect": vector("effect", dist.Normal(0, EFFECT), g),
        "columns": vector("columns", dist.Normal(0, COVARIATE), columns),
        "controls": vector("controls", dist.Normal(0, COVARIATE), c),
        "noise": numpyro.sample(NOISE, dist.HalfNormal(NOISE_PRIOR)),
        "between": 0.0 if paper else numpyro.sample(BETWEEN, dist.HalfNormal(NOISE_PRIOR)),
        "reactions": vector("reactions", dist.HalfNormal(NOISE_PRIOR), given["factor"].shape[1]),
    }


def shifts(given: dict[str, Any], number: int) -> Any:
    """The shifts of data sets, with the likelihood of the runs within observations."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    if not number:
        return np.empty(0)
    spread = numpyro.sample("shift", dist.HalfNormal(NOISE_PRIOR))
    shifts = spread * numpyro.sample("d", dist.Normal(0, 1).expand([number]).to_event(1))
    if "within" in given:
        run = numpyro.sample("run", dist.HalfNormal(NOISE_PRIOR))
        left = given["within"][:, -1] - given["within"][:, :-1] @ shifts
        numpyro.factor("runs", -given["freedom"] * jnp.log(run) - 0.5 * left @ left / run**2)
    return shifts


def _collapsed(given: dict[str, Any], *, paper: bool) -> None:
    """θ, u and reactions integrated out; all else sampled."""
    import jax.numpy as jnp
    import numpyro
    from jax.scipy.linalg import solve_triangular
    from numpyro import distributions as dist

    levels = given["levels"]
    parameters = priors(given, given["conditions"].shape[1], paper=paper)
    mu, spread, effect, noise = (parameters[name] for name in ("mu", "spread", "effect", "noise"))
    if "correlation" in given:
        covariance = spread[:, None] * given["correlation"] * spread
        factor = jnp.linalg.cholesky(covariance + given["errors"][:, :, None] ** 2 * np.eye(levels.shape[1]))
        common = covariance @ effect
        both = jnp.stack([levels - mu, jnp.broadcast_to(common, levels.shape)], axis=-1)
        white = solve_triangular(factor, both, lower=True)
        away, explained = white[..., 0], white[..., 1]
        numpyro.factor("levels", -0.5 * (away**2).sum() - jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)).sum())
        left = effect @ common - (explained**2).sum(axis=1)
        known = (away * explained).sum(axis=1)
    else:
        own = spread**2
        variance = own + given["errors"] ** 2
        numpyro.sample("levels", dist.Normal(mu, jnp.sqrt(variance)), obs=levels)
        slope = effect * own / variance
        left = (effect * slope * given["errors"] ** 2).sum(axis=1)
        known = ((levels - mu) * slope).sum(axis=1)
    expected = effect @ mu + known + parameters["intercept"] + given["benchmarks"] @ parameters["controls"]
    moved = shifts(given, given["cross"].shape[2] - 1 - given["conditions"].shape[1])
    weights = jnp.concatenate([-parameters["columns"], -moved, jnp.ones(1)])
    # Inner products of residual rows with each other, and with 1 and the terms of reactions.
    against = given["cross"] @ weights - given["own"][:, :, 0] * expected[:, None]
    square = weights @ given["square"] @ weights - expected * (2 * given["cross"][:, 0] @ weights)
    square += given["counts"] * expected**2
    slopes = given["factor"] @ parameters["reactions"]
    level = jnp.sqrt(left + parameters["between"] ** 2)[:, None]
    scale = jnp.concatenate([level, jnp.broadcast_to(slopes, (len(levels), slopes.shape[0]))], axis=1) / noise
    inner = jnp.eye(scale.shape[1]) + scale[:, :, None] * given["own"] * scale[:, None, :]
    factor = jnp.linalg.cholesky(inner)
    white = solve_triangular(factor, (scale * against)[..., None], lower=True)[..., 0]
    numpyro.factor("rows", -0.5 * (square.sum() - (white**2).sum()) / noise**2)
    numpyro.factor("size", -jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)).sum())
    numpyro.factor("noise", -given["counts"].sum() * jnp.log(noise))


_COLLAPSED = {paper: partial(_collapsed, paper=paper) for paper in (False, True)}
"""By whether it is the paper's form, without ω; each is compiled once for data of the same shapes."""
