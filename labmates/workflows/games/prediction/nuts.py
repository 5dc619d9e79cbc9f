"""The prediction model once more by Hamiltonian Monte Carlo (NumPyro), as a check; needs the extra `analysis`.

`fit_nuts` samples the same collapsed density as the default engine, with JAX's gradients. `fit_rows` is the model as
the paper writes it down, with a latent disposition for each model and game and every observation: far slower, and there
to be compared with.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from labmates.stats.arrays import Array
from labmates.stats.bayes.nuts import sample_model
from labmates.stats.bayes.posterior import Posterior
from labmates.workflows.games.prediction.data import PredictionData
from labmates.workflows.games.prediction.density import CENTRE, COVARIATE, EFFECT, SPREAD, Collapsed
from labmates.workflows.games.prediction.density import INTERCEPT as INTERCEPT_PRIOR
from labmates.workflows.games.prediction.density import NOISE as NOISE_PRIOR
from labmates.workflows.games.prediction.fit import BETWEEN, INTERCEPT, NOISE, names
from labmates.workflows.games.prediction.forms import Form

_SITES = (INTERCEPT, "effect", "controls", "columns", NOISE, BETWEEN, "reactions", "shift", "run", "mu", "spread")
"""In the order of `names`."""


def fit_nuts(data: PredictionData, form: Form = "robust", **how: Any) -> Posterior:
    """Sample the collapsed density by NUTS; parameters as those of `fit_prediction` and of `nuts.sample_model`.

    Raises
    ------
    MissingExtraError
        If NumPyro is not installed.
    """
    model = Collapsed(data, form)
    paper = form == "paper"
    own = np.column_stack([np.ones(len(data.outcome)), _terms(model)])
    rows = np.column_stack([data.conditions, *([] if paper else [_members(data)[0]]), data.outcome])
    mine = [(own[data.model_of == at], rows[data.model_of == at]) for at in range(len(data.models))]
    given = {
        **_given(model),
        "counts": model.summary.counts,
        "conditions": data.conditions,
        "own": np.array([one.T @ one for one, _ in mine]),
        "cross": np.array([one.T @ other for one, other in mine]),
        "square": np.array([other.T @ other for _, other in mine]),
        **({} if model.correlation is None else {"correlation": model.correlation}),
    }
    return sample_model(_COLLAPSED[paper], given, names(model), _SITES, start=_start(data), **how)[0]


def fit_rows(data: PredictionData, form: Form = "robust", **how: Any) -> Posterior:
    """Do the same with the model as written, with every row and every latent disposition; not the form `correlated`."""
    if form == "correlated":
        raise ValueError("the model of rows has independent dispositions")
    model = Collapsed(data, form)
    given = {
        **_given(model),
        **{name: getattr(data, name) for name in ("model_of", "conditions", "outcome")},
        "terms": _terms(model),
        "members": _members(data)[0],
    }
    wanted = names(model)
    return sample_model(_ROWS[form == "paper"], given, wanted, _SITES, start=_start(data), dense=False, **how)[0]


def _given(model: Collapsed) -> dict[str, Any]:
    data, shifts = model.data, model.shifts
    found: dict[str, Any] = {name: getattr(data, name) for name in ("levels", "errors", "benchmarks")}
    found["factor"] = np.eye(len(model.reactions.factors))[list(model.reactions.factor)]
    if shifts is not None and shifts.freedom:
        found |= {"within": _members(data)[1], "freedom": float(shifts.freedom)}
    return found


def _terms(model: Collapsed) -> Array:
    ones = np.column_stack([np.ones(len(model.data.outcome)), model.data.conditions])
    return np.asarray(ones @ model.reactions.terms.reshape(-1, ones.shape[1]).T)


def _members(data: PredictionData) -> tuple[Array, Array]:
    """Return each observation's shares of data sets, and those and the outcome of each run less its observation's."""
    if data.runs is None:
        return np.empty((len(data.outcome), 0)), np.empty((0, 1))
    runs = data.runs
    both = np.column_stack([runs.member, runs.outcome])
    mean = np.array([both[runs.observation == at].mean(axis=0) for at in range(len(data.outcome))])
    return mean[:, :-1], both - mean[runs.observation]


def _start(data: PredictionData) -> dict[str, Any]:
    return {NOISE: 0.1, "effect": np.zeros(len(data.games))}


def _priors(given: dict[str, Any], columns: int, *, paper: bool) -> dict[str, Any]:
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


def _shifts(given: dict[str, Any], number: int) -> Any:
    """Return the shifts of data sets, with what runs within observations say of them."""
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
    one = _priors(given, given["conditions"].shape[1], paper=paper)
    if "correlation" in given:
        covariance = one["spread"][:, None] * given["correlation"] * one["spread"]
        factor = jnp.linalg.cholesky(covariance + given["errors"][:, :, None] ** 2 * np.eye(levels.shape[1]))
        common = covariance @ one["effect"]
        both = jnp.stack([levels - one["mu"], jnp.broadcast_to(common, levels.shape)], axis=-1)
        white = solve_triangular(factor, both, lower=True)
        away, told = white[..., 0], white[..., 1]
        numpyro.factor("levels", -0.5 * (away**2).sum() - jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)).sum())
        left = one["effect"] @ common - (told**2).sum(axis=1)
        known = (away * told).sum(axis=1)
    else:
        own = one["spread"] ** 2
        variance = own + given["errors"] ** 2
        numpyro.sample("levels", dist.Normal(one["mu"], jnp.sqrt(variance)), obs=levels)
        slope = one["effect"] * own / variance
        left = (one["effect"] * slope * given["errors"] ** 2).sum(axis=1)
        known = ((levels - one["mu"]) * slope).sum(axis=1)
    expected = one["effect"] @ one["mu"] + known + one["intercept"]
    expected += given["benchmarks"] @ one["controls"]
    shifts = _shifts(given, given["cross"].shape[2] - 1 - given["conditions"].shape[1])
    weights = jnp.concatenate([-one["columns"], -shifts, jnp.ones(1)])
    # Inner products of what is left of rows with each other, and with 1 and the terms of reactions.
    against = given["cross"] @ weights - given["own"][:, :, 0] * expected[:, None]
    square = weights @ given["square"] @ weights - expected * (2 * given["cross"][:, 0] @ weights)
    square += given["counts"] * expected**2
    slopes = given["factor"] @ one["reactions"]
    level = jnp.sqrt(left + one["between"] ** 2)[:, None]
    scale = jnp.concatenate([level, jnp.broadcast_to(slopes, (len(levels), slopes.shape[0]))], axis=1) / one["noise"]
    inner = jnp.eye(scale.shape[1]) + scale[:, :, None] * given["own"] * scale[:, None, :]
    factor = jnp.linalg.cholesky(inner)
    white = solve_triangular(factor, (scale * against)[..., None], lower=True)[..., 0]
    numpyro.factor("rows", -0.5 * (square.sum() - (white**2).sum()) / one["noise"] ** 2)
    numpyro.factor("size", -jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)).sum())
    numpyro.factor("noise", -given["counts"].sum() * jnp.log(one["noise"]))


def _rows(given: dict[str, Any], *, paper: bool) -> None:
    """As the paper writes it: non-centred dispositions, one likelihood term per observation."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    m, g = given["levels"].shape
    one = _priors(given, given["conditions"].shape[1], paper=paper)
    dispositions = one["mu"] + one["spread"] * numpyro.sample("z", dist.Normal(0, 1).expand([m, g]))
    # A metric without error (a deterministic player) is its disposition.
    numpyro.sample("levels", dist.Normal(dispositions, jnp.maximum(given["errors"], 1e-6)), obs=given["levels"])
    expected = one["intercept"] + dispositions @ one["effect"] + given["benchmarks"] @ one["controls"]
    if not paper:
        expected += one["between"] * numpyro.sample("u", dist.Normal(0, 1).expand([m]))
    mean = expected[given["model_of"]] + given["conditions"] @ one["columns"]
    if not paper:
        deviations = given["factor"] @ one["reactions"]
        if len(deviations):
            own = deviations * numpyro.sample("s", dist.Normal(0, 1).expand([m, len(deviations)]))
            mean += (given["terms"] * own[given["model_of"]]).sum(axis=1)
        mean += given["members"] @ _shifts(given, given["members"].shape[1])
    numpyro.sample("outcome", dist.Normal(mean, one["noise"]), obs=given["outcome"])


_COLLAPSED, _ROWS = ({paper: partial(one, paper=paper) for paper in (False, True)} for one in (_collapsed, _rows))
"""By whether they are in the paper's form, which has no ω; each is compiled once for data of the same shapes."""
