"""Both Bayesian models as one would write them down, row by row, in NumPyro: what the fast densities are held against.

Each gradient takes all rows, so they are for tests and for measuring what the fast ones save.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from labmates.stats.bayes.nuts import sample_model
from labmates.stats.bayes.posterior import Posterior
from labmates.workflows.games.prediction import Form
from labmates.workflows.games.prediction.data import PredictionData
from labmates.workflows.games.prediction.density import Collapsed
from labmates.workflows.games.prediction.fit import names
from labmates.workflows.games.prediction.nuts import SITES, given_data, members, own_terms, priors, shifts, start
from labmates.workflows.games.proximity import nuts as proximity
from labmates.workflows.games.proximity.mixed import CELL, FAMILY, GAME, SLOPES, MixedModel


def proximity_rows(frame: pd.DataFrame, outcome: str, model: MixedModel, **how: Any) -> tuple[Posterior, int]:
    """The posterior of the regression of proximity, and the number of gradients; `how` as for `sample_model`."""
    density, given = plain(frame, outcome, model)
    how = {"dense": False, **how}
    return sample_model(density, given, proximity.sampled_names(model), proximity.SITES, **how)


def plain(frame: pd.DataFrame, outcome: str, model: MixedModel) -> tuple[Callable[[Any], None], dict[str, Any]]:
    """Return the model of rows in NumPyro, every random term a parameter of its own, and its data."""
    import jax.numpy as jnp

    cells, priors = model.cells, model.priors
    columns = {
        FAMILY: ["family"],
        GAME: ["model", "game"],
        CELL: ["model", "game", "condition", *cells.names],
    }
    groups = {
        name: frame.groupby(columns.get(name, ["model"]), sort=True).ngroup().to_numpy() for name in model.components
    }
    given = {
        "design": np.column_stack([np.ones(len(frame)), frame[list(cells.names)]]),
        "values": frame[outcome].to_numpy(dtype=float),
        "groups": groups,
        "reactions": {
            name: frame[name].to_numpy(dtype=float) - model.centre(name) for name in SLOPES if name in groups
        },
    }
    sizes = {name: int(group.max()) + 1 for name, group in groups.items()}

    def density(given: dict[str, Any]) -> None:
        import numpyro
        from numpyro import distributions as dist

        sd = jnp.full(model.width, priors.coefficient_sd).at[0].set(priors.intercept_sd)
        mean = jnp.zeros(model.width).at[0].set(priors.intercept_mean)
        coefficients = numpyro.sample("coefficients", dist.Normal(mean, sd).to_event(1))
        shape = [len(model.deviations)]
        deviations = numpyro.sample("deviations", dist.HalfNormal(priors.component_sd).expand(shape).to_event(1))
        fitted = given["design"] @ coefficients
        for at, (name, size) in enumerate(sizes.items(), 1):
            unit = numpyro.sample(f"unit {name}", dist.Normal(0, 1).expand([size]).to_event(1))
            by = given["reactions"].get(name, 1.0)
            fitted = fitted + deviations[at] * unit[given["groups"][name]] * by
        numpyro.sample("rows", dist.Normal(fitted, deviations[0]), obs=given["values"])

    return density, given


def prediction_rows(data: PredictionData, form: Form = "robust", **how: Any) -> Posterior:
    """The posterior of the prediction of an outcome, with every latent disposition; not in the form `correlated`."""
    model = Collapsed(data, form)
    density, given = prediction_plain(model)
    return sample_model(density, given, names(model), SITES, start=start(data), dense=False, **how)[0]


def prediction_plain(model: Collapsed) -> tuple[Callable[[dict[str, Any]], None], dict[str, Any]]:
    """The prediction of an outcome as a model of rows in NumPyro, and its data; not in the form `correlated`."""
    data = model.data
    if model.form == "correlated":
        raise ValueError("the model of rows has independent dispositions")
    given = {
        **given_data(model),
        **{name: getattr(data, name) for name in ("model_of", "conditions", "outcome")},
        "terms": own_terms(model),
        "members": members(data)[0],
    }
    return _ROWS[model.form == "paper"], given


def _rows(given: dict[str, Any], *, paper: bool) -> None:
    """As the paper writes it: non-centred dispositions, one likelihood term per observation."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    m, g = given["levels"].shape
    one = priors(given, given["conditions"].shape[1], paper=paper)
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
        mean += given["members"] @ shifts(given, given["members"].shape[1])
    numpyro.sample("outcome", dist.Normal(mean, one["noise"]), obs=given["outcome"])


_ROWS = {paper: partial(_rows, paper=paper) for paper in (False, True)}
