"""The prediction model once more by Hamiltonian Monte Carlo (NumPyro), as a check; needs the extra `analysis`.

`fit_nuts` samples the same collapsed density as the default engine, with JAX's gradients. `fit_rows` is the model as
the paper writes it down, with a latent disposition for each model and game and every observation: far slower, and there
to be compared with.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from labmates.analysis.bayes.nuts import sample_model
from labmates.analysis.bayes.posterior import Posterior
from labmates.analysis.bayes.prediction.data import PredictionData
from labmates.analysis.bayes.prediction.density import CENTRE, COVARIATE, EFFECT, SPREAD, Collapsed, Form
from labmates.analysis.bayes.prediction.density import INTERCEPT as INTERCEPT_PRIOR
from labmates.analysis.bayes.prediction.density import NOISE as NOISE_PRIOR
from labmates.analysis.bayes.prediction.fit import BETWEEN, INTERCEPT, NOISE, names

_SITES = (INTERCEPT, "effect", "controls", "columns", NOISE, BETWEEN, "mu", "spread")
"""In the order of `names`."""


def fit_nuts(data: PredictionData, form: Form = "robust", **how: Any) -> Posterior:
    """Sample the collapsed density by NUTS; parameters as those of `fit_prediction` and of `nuts.sample_model`.

    Raises
    ------
    MissingExtraError
        If NumPyro is not installed.
    """
    model = Collapsed(data, form)
    given = {
        **_given(data),
        **{name: getattr(model.summary, name) for name in ("counts", "condition_means", "outcome_means", "triangle")},
        "within": float(model.summary.observations - len(data.models)),
        **({} if model.correlation is None else {"correlation": model.correlation}),
    }
    return sample_model(_COLLAPSED[form == "paper"], given, names(model), _SITES, start=_start(data), **how)[0]


def fit_rows(data: PredictionData, form: Form = "robust", **how: Any) -> Posterior:
    """Do the same with the model as written, with every row and every latent disposition; not the form `correlated`."""
    if form == "correlated":
        raise ValueError("the model of rows has independent dispositions")
    given = {
        **_given(data),
        **{name: getattr(data, name) for name in ("model_of", "conditions", "outcome")},
    }
    wanted = names(Collapsed(data, form))
    return sample_model(_ROWS[form == "paper"], given, wanted, _SITES, start=_start(data), dense=False, **how)[0]


def _given(data: PredictionData) -> dict[str, Any]:
    return {name: getattr(data, name) for name in ("levels", "errors", "benchmarks")}


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
    }


def _collapsed(given: dict[str, Any], *, paper: bool) -> None:
    """θ and u integrated out; all else sampled."""
    import jax.numpy as jnp
    import numpyro
    from jax.scipy.linalg import solve_triangular
    from numpyro import distributions as dist

    levels = given["levels"]
    one = _priors(given, given["condition_means"].shape[1], paper=paper)
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
    expected += given["condition_means"] @ one["columns"] + given["benchmarks"] @ one["controls"]
    deviation = jnp.sqrt(left + one["between"] ** 2 + one["noise"] ** 2 / given["counts"])
    numpyro.sample("means", dist.Normal(expected, deviation), obs=given["outcome_means"])
    residual = given["triangle"] @ jnp.append(one["columns"], -1.0)
    numpyro.factor("within", -given["within"] * jnp.log(one["noise"]) - 0.5 * residual @ residual / one["noise"] ** 2)


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
    numpyro.sample("outcome", dist.Normal(mean, one["noise"]), obs=given["outcome"])


_COLLAPSED, _ROWS = ({paper: partial(one, paper=paper) for paper in (False, True)} for one in (_collapsed, _rows))
"""By whether they are in the paper's form, which has no ω; each is compiled once for data of the same shapes."""
