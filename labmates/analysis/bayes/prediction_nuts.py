"""The prediction model once more by Hamiltonian Monte Carlo (NumPyro), as a check; needs the extra `analysis`.

`fit_nuts` samples the same collapsed density as the default engine, with JAX's gradients. `fit_rows` is the model as
the paper writes it down, with a latent disposition for each model and game and every observation: far slower, and there
to be compared with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labmates.analysis.bayes.hamiltonian import check_numpyro
from labmates.analysis.bayes.posterior import Posterior, from_chains
from labmates.analysis.bayes.prediction import BETWEEN, INTERCEPT, NOISE, names
from labmates.analysis.bayes.prediction_data import PredictionData
from labmates.analysis.bayes.prediction_density import CENTRE, COVARIATE, EFFECT, SPREAD, Collapsed, Form
from labmates.analysis.bayes.prediction_density import INTERCEPT as INTERCEPT_PRIOR
from labmates.analysis.bayes.prediction_density import NOISE as NOISE_PRIOR

CHAINS, WARMUP, DRAWS = 2, 1000, 2000


def fit_nuts(
    data: PredictionData,
    form: Form = "robust",
    *,
    chains: int = CHAINS,
    warmup: int = WARMUP,
    draws: int = DRAWS,
    seed: int = 0,
) -> Posterior:
    """Sample the collapsed density by NUTS; parameters as those of `fit_prediction`.

    Raises
    ------
    MissingExtraError
        If NumPyro is not installed.
    """
    model = Collapsed(data, form)
    return _run(_collapsed, (model,), names(model), chains=chains, warmup=warmup, draws=draws, seed=seed)


def fit_rows(
    data: PredictionData,
    form: Form = "robust",
    *,
    chains: int = CHAINS,
    warmup: int = WARMUP,
    draws: int = DRAWS,
    seed: int = 0,
) -> Posterior:
    """Sample the model as written, with every row and every latent disposition; not the form `correlated`.

    Raises
    ------
    MissingExtraError
        If NumPyro is not installed.
    """
    if form == "correlated":
        raise ValueError("the model of rows has independent dispositions")
    model = Collapsed(data, form)
    return _run(_rows, (data, form), names(model), chains=chains, warmup=warmup, draws=draws, seed=seed)


def _run(
    model: Any, given: tuple[Any, ...], wanted: tuple[str, ...], *, chains: int, warmup: int, draws: int, seed: int
) -> Posterior:
    check_numpyro()
    import jax
    from numpyro.infer import MCMC, NUTS, init_to_value

    with jax.enable_x64(True):
        kernel = NUTS(
            model,
            dense_mass=model is _collapsed,
            target_accept_prob=0.9,
            init_strategy=init_to_value(values={NOISE: 0.1, "effect": np.zeros(_games(given))}),
        )
        run = MCMC(
            kernel,
            num_warmup=warmup,
            num_samples=draws,
            num_chains=chains,
            chain_method="sequential",
            progress_bar=False,
        )
        run.run(jax.random.key(seed), *given, extra_fields=("diverging",))
        found = run.get_samples(group_by_chain=True)
        parts = ["intercept", "effect", "controls", "columns", NOISE, BETWEEN, "mu", "spread"]
        stacked = [np.asarray(found[part]) for part in parts if part in found]
        joined = np.concatenate([one[..., None] if one.ndim == 2 else one for one in stacked], axis=2)
        assert joined.shape[2] == len(wanted)
    divergences = int(np.asarray(run.get_extra_fields()["diverging"]).sum())
    return from_chains(wanted, joined, divergences=divergences)


def _games(given: tuple[Any, ...]) -> int:
    first = given[0]
    return len((first.data if isinstance(first, Collapsed) else first).games)


def _priors(data: PredictionData, form: Form) -> dict[str, Any]:
    import numpyro
    from numpyro import distributions as dist

    g, c, q = len(data.games), len(data.controls), len(data.columns)

    def vector(name: str, prior: Any, length: int) -> Any:
        return numpyro.sample(name, prior.expand([length])) if length else np.empty(0)

    return {
        "mu": vector("mu", dist.Normal(0, CENTRE), g),
        "spread": vector("spread", dist.HalfNormal(SPREAD), g),
        "intercept": numpyro.sample(INTERCEPT, dist.Normal(*INTERCEPT_PRIOR)),
        "effect": vector("effect", dist.Normal(0, EFFECT), g),
        "columns": vector("columns", dist.Normal(0, COVARIATE), q),
        "controls": vector("controls", dist.Normal(0, COVARIATE), c),
        "noise": numpyro.sample(NOISE, dist.HalfNormal(NOISE_PRIOR)),
        "between": 0.0 if form == "paper" else numpyro.sample(BETWEEN, dist.HalfNormal(NOISE_PRIOR)),
    }


def _collapsed(model: Collapsed) -> None:
    """θ and u integrated out; all else sampled."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    data, summary = model.data, model.summary
    one = _priors(data, model.form)
    away = data.levels - one["mu"]
    if model.correlation is None:
        own = one["spread"] ** 2
        variance = own + data.errors**2
        numpyro.sample("levels", dist.Normal(one["mu"], jnp.sqrt(variance)), obs=data.levels)
        slope = one["effect"] * own / variance
        left = (one["effect"] * slope * data.errors**2).sum(axis=1)
    else:
        covariance = one["spread"][:, None] * model.correlation * one["spread"]
        seen = covariance + data.errors[:, :, None] ** 2 * np.eye(len(data.games))
        numpyro.sample("levels", dist.MultivariateNormal(one["mu"], covariance_matrix=seen), obs=data.levels)
        common = covariance @ one["effect"]
        slope = jnp.linalg.solve(seen, jnp.broadcast_to(common, away.shape)[..., None])[..., 0]
        left = one["effect"] @ common - slope @ common
    expected = one["effect"] @ one["mu"] + (away * slope).sum(axis=1) + one["intercept"]
    expected += summary.condition_means @ one["columns"] + data.benchmarks @ one["controls"]
    deviation = jnp.sqrt(left + one["between"] ** 2 + one["noise"] ** 2 / summary.counts)
    numpyro.sample("means", dist.Normal(expected, deviation), obs=summary.outcome_means)
    residual = summary.triangle @ jnp.concatenate([one["columns"], jnp.array([-1.0])])
    freedom = summary.observations - len(data.models)
    numpyro.factor("within", -freedom * jnp.log(one["noise"]) - 0.5 * (residual @ residual) / one["noise"] ** 2)


def _rows(data: PredictionData, form: Form) -> None:
    """As the paper writes it: non-centred dispositions, one likelihood term per observation."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    one = _priors(data, form)
    m, g = data.levels.shape
    dispositions = one["mu"] + one["spread"] * numpyro.sample("z", dist.Normal(0, 1).expand([m, g]))
    # A metric without error (a deterministic player) is its disposition.
    numpyro.sample("levels", dist.Normal(dispositions, jnp.maximum(data.errors, 1e-6)), obs=data.levels)
    expected = one["intercept"] + dispositions @ one["effect"] + data.benchmarks @ one["controls"]
    if form != "paper":
        expected += one["between"] * numpyro.sample("u", dist.Normal(0, 1).expand([m]))
    mean = expected[data.model_of] + data.conditions @ one["columns"]
    numpyro.sample("outcome", dist.Normal(mean, one["noise"]), obs=data.outcome)
