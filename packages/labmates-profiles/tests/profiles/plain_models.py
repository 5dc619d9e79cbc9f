"""Both Bayesian regressions as one would write them down, row by row, in NumPyro."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from labmates_profiles.arrays import Array
from labmates_profiles.prediction.density import CENTRE, COVARIATE, EFFECT, SPREAD, Collapsed
from labmates_profiles.prediction.density import INTERCEPT as INTERCEPT_PRIOR
from labmates_profiles.prediction.density import NOISE as NOISE_PRIOR
from labmates_profiles.prediction.fit import BETWEEN, INTERCEPT, NOISE
from labmates_profiles.proximity.mixed import CELL, FAMILY, GAME, SLOPES, MixedModel

Density = Callable[[], None]


def marginal(density: Density, sizes: Mapping[str, Sequence[int]]) -> Callable[[Mapping[str, Any]], float]:
    """The log density of the other sites with those of `sizes` (their shapes by name) integrated out.

    Given the others these are normal, so the density at one point, its gradient and its curvature give the integral.
    """
    import jax
    from numpyro.infer.util import log_density

    ends = np.cumsum([int(np.prod(shape)) for shape in sizes.values()])

    def at(linear: Any, others: Any) -> Any:
        parts = zip(sizes.items(), jax.numpy.split(linear, ends[:-1]), strict=True)
        sites = {name: part.reshape(shape) for (name, shape), part in parts}
        return log_density(density, (), {}, {**sites, **others})[0]

    with jax.enable_x64(True):
        derived = jax.jit(lambda x, others: (at(x, others), jax.grad(at)(x, others), jax.hessian(at)(x, others)))

    def integrated(others: Mapping[str, Any]) -> float:
        with jax.enable_x64(True):
            value, slope, curvature = map(np.asarray, derived(np.zeros(ends[-1]), dict(others)))
        step = 0.5 * slope @ np.linalg.solve(-curvature, slope)
        return float(value + step - 0.5 * np.linalg.slogdet(-curvature)[1])

    return integrated


def proximity_rows(frame: pd.DataFrame, outcome: str, model: MixedModel) -> tuple[Density, dict[str, Sequence[int]]]:
    """The regression of cooperation on rows, every random term a parameter, and the shapes of its normal sites."""
    import numpyro
    from numpyro import distributions as dist

    cells, priors = model.cells, model.priors
    keys = {FAMILY: ["family"], GAME: ["model", "game"], CELL: ["model", "game", "condition", *cells.names]}
    groups = {name: frame.groupby(keys.get(name, ["model"])).ngroup().to_numpy() for name in model.components}
    reactions = {name: frame[name].to_numpy(float) - model.centre(name) for name in SLOPES if name in groups}
    design, values = np.column_stack([np.ones(len(frame)), frame[list(cells.names)]]), frame[outcome].to_numpy(float)
    mean = np.r_[priors.intercept_mean, np.zeros(model.width - 1)]
    sd = np.r_[priors.intercept_sd, np.full(model.width - 1, priors.coefficient_sd)]
    half = dist.HalfNormal(priors.component_sd).expand([len(model.deviations)]).to_event(1)
    sizes = {f"unit {name}": (int(group.max()) + 1,) for name, group in groups.items()}

    def density() -> None:
        fitted = design @ numpyro.sample("coefficients", dist.Normal(mean, sd).to_event(1))
        deviations = numpyro.sample("deviations", half)
        for at, (name, group) in enumerate(groups.items(), 1):
            unit = numpyro.sample(f"unit {name}", dist.Normal(0, 1).expand(sizes[f"unit {name}"]).to_event(1))
            fitted += deviations[at] * unit[group] * reactions.get(name, 1.0)
        numpyro.sample("rows", dist.Normal(fitted, deviations[0]), obs=values)

    return density, {"coefficients": (model.width,), **sizes}


def prediction_rows(model: Collapsed) -> tuple[Density, dict[str, Sequence[int]]]:
    """The prediction of an outcome as the paper writes it, on rows, and the shapes of its normal sites."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    data, paper = model.data, model.form == "paper"
    m, g = data.levels.shape
    factor = np.eye(len(model.reactions.factors))[list(model.reactions.factor)]
    ones = np.column_stack([np.ones(len(data.outcome)), data.conditions])
    terms = ones @ model.reactions.terms.reshape(-1, ones.shape[1]).T
    root = np.eye(g) if model.correlation is None else np.linalg.cholesky(model.correlation)
    member, within = _members(model)
    sizes: dict[str, Sequence[int]] = {"mu": (g,), INTERCEPT: (), "columns": (data.conditions.shape[1],)}
    sizes |= {"controls": (data.benchmarks.shape[1],), "z": (m, g)}
    if not paper:
        sizes |= {"u": (m,), "s": (m, len(factor)), "d": (member.shape[1],)}
    sizes = {name: shape for name, shape in sizes.items() if 0 not in shape}
    normal = {"mu": (0, CENTRE), INTERCEPT: INTERCEPT_PRIOR, "columns": (0, COVARIATE), "controls": (0, COVARIATE)}

    def density() -> None:
        normals = {
            name: numpyro.sample(name, dist.Normal(*normal.get(name, (0, 1))).expand(shape))
            for name, shape in sizes.items()
        }
        effect = numpyro.sample("effect", dist.Normal(0, EFFECT).expand([g]))
        spread = numpyro.sample("spread", dist.HalfNormal(SPREAD).expand([g]))
        noise = numpyro.sample(NOISE, dist.HalfNormal(NOISE_PRIOR))
        dispositions = normals["mu"] + spread * (normals["z"] @ root.T)
        # A metric without error (a deterministic player) is its disposition.
        numpyro.sample("levels", dist.Normal(dispositions, np.maximum(data.errors, 1e-6)), obs=data.levels)
        expected = normals[INTERCEPT] + dispositions @ effect
        expected += data.benchmarks @ normals["controls"] if "controls" in sizes else 0.0
        if not paper:
            expected += numpyro.sample(BETWEEN, dist.HalfNormal(NOISE_PRIOR)) * normals["u"]
        mean = expected[data.model_of] + (data.conditions @ normals["columns"] if "columns" in sizes else 0.0)
        if "s" in sizes:
            sd = factor @ numpyro.sample("reactions", dist.HalfNormal(NOISE_PRIOR).expand([factor.shape[1]]))
            mean += (terms * (sd * normals["s"])[data.model_of]).sum(axis=1)
        if "d" in sizes:
            shifts = numpyro.sample("shift", dist.HalfNormal(NOISE_PRIOR)) * normals["d"]
            mean += member @ shifts
            if model.shifts is not None and model.shifts.freedom:
                run = numpyro.sample("run", dist.HalfNormal(NOISE_PRIOR))
                left = within[:, -1] - within[:, :-1] @ shifts
                numpyro.factor("runs", -float(model.shifts.freedom) * jnp.log(run) - 0.5 * left @ left / run**2)
        numpyro.sample("outcome", dist.Normal(mean, noise), obs=data.outcome)

    return density, sizes


def _members(model: Collapsed) -> tuple[Array, Array]:
    """Each observation's shares of data sets; and those and the outcome of each run, centred by observation."""
    runs = model.data.runs
    if runs is None:
        return np.empty((len(model.data.outcome), 0)), np.empty((0, 1))
    both = np.column_stack([runs.member, runs.outcome])
    mean = np.array([both[runs.observation == at].mean(axis=0) for at in range(len(model.data.outcome))])
    return mean[:, :-1], both - mean[runs.observation]
