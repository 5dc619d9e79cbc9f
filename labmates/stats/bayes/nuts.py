"""NUTS sampling of NumPyro models (extra ``analysis``), as a cross-check of the importance sampler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from labmates.errors import MissingExtraError
from labmates.stats.bayes.posterior import Posterior, from_chains

CHAINS, DRAWS, WARM_UP = 4, 1000, 600


def check_numpyro() -> None:
    """Check that NumPyro is installed; a `MissingExtraError` if not."""
    try:
        import numpyro  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("the cross-check by NUTS", "analysis") from error


def sample_model(
    model: Callable[[Any], None],
    data: Mapping[str, Any],
    names: Sequence[str],
    sites: Sequence[str],
    *,
    start: Mapping[str, Any] | None = None,
    dense: bool = True,
    chains: int = CHAINS,
    draws: int = DRAWS,
    warm_up: int = WARM_UP,
    seed: int = 0,
) -> tuple[Posterior, int]:
    """The posterior of a model by NUTS, chains in sequence, and the number of gradient evaluations.

    A model is compiled once for all data of the same shapes.

    Parameters
    ----------
    model
        A NumPyro model of `data`, arrays by name.
    names
        Of all parameters.
    sites
        Sites of the model, numbers and vectors, in the order of `names`. Missing sites are skipped.
    start
        Initial values by site; others are random.
    dense
        Whether the mass matrix is dense.

    Raises
    ------
    MissingExtraError
        If NumPyro is not installed.
    """
    check_numpyro()
    import jax

    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), chains)
        chained = _program(model, tuple(sites), dense, warm_up, draws)(keys, dict(data), dict(start or {}))
        values, diverging, steps = (np.asarray(one)[:, warm_up:] for one in chained)
    return from_chains(names, values, divergences=int(diverging.sum())), int(steps.sum())


@lru_cache(maxsize=8)
def _program(model: Callable[[Any], None], sites: tuple[str, ...], dense: bool, warm_up: int, draws: int) -> Any:
    """The compiled function from keys of chains, data and starts to parameters, divergences and steps.

    NumPyro's own loop compiles dozens of further small functions, and that of vectorised chains is larger still; with
    few models both take longer than sampling.
    """
    import jax
    from jax.flatten_util import ravel_pytree
    from numpyro import handlers
    from numpyro.distributions import biject_to
    from numpyro.infer import init_to_value
    from numpyro.infer.hmc import hmc
    from numpyro.infer.util import constrain_fn, potential_energy

    def first(key: Any, data: Any, start: Any) -> dict[str, Any]:
        seeded = handlers.substitute(handlers.seed(model, key), substitute_fn=init_to_value(values=start))
        trace = handlers.trace(seeded).get_trace(data)
        free = {name: site for name, site in trace.items() if site["type"] == "sample" and not site["is_observed"]}
        return {name: biject_to(site["fn"].support).inv(site["value"]) for name, site in free.items()}

    def chain(key: Any, data: Any, start: Any) -> Any:
        start_key, sample_key = jax.random.split(key)
        point, named = ravel_pytree(first(start_key, data, start))
        begin, move = hmc(lambda point: potential_energy(model, (data,), {}, named(point)), algo="NUTS")

        def parameters(point: Any) -> Any:
            values = constrain_fn(model, (data,), {}, named(point), return_deterministic=True)
            return jax.numpy.concatenate([jax.numpy.ravel(values[site]) for site in sites if site in values])

        def step(state: Any, _: None) -> Any:
            state = move(state)
            return state, (parameters(state.z), state.diverging, state.num_steps)

        state = begin(point, warm_up, rng_key=sample_key, dense_mass=dense, target_accept_prob=0.9)
        return jax.lax.scan(step, state, length=warm_up + draws)[1]

    return jax.jit(lambda keys, data, start: jax.lax.map(lambda key: chain(key, data, start), keys))
