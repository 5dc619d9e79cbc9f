"""The same densities by NUTS in NumPyro (extra ``analysis``), as a cross-check of the importance sampler.

The sampler draws coefficients and standard deviations; random terms of models and families are integrated out with
residuals instead of moments. So the check shares neither the sampler nor the algebra of
`labmates.workflows.games.proximity.mixed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from labmates.stats.arrays import Array
from labmates.stats.bayes.nuts import check_numpyro, sample_model
from labmates.stats.bayes.posterior import Posterior
from labmates.workflows.games.proximity.cells import INTERCEPT, Cells
from labmates.workflows.games.proximity.fit import DEVIATION, Fit
from labmates.workflows.games.proximity.mixed import CELL, FAMILY, GAME, MODEL, RESIDUAL, SLOPES, MixedModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

SITES = ("coefficients", "deviations")


def fit_cells(fit: Fit, **how: Any) -> Posterior:
    """Coefficients and standard deviations by NUTS on the collapsed density.

    Coordinates are scaled by the importance sampler's posterior, for steps of similar size in each; the result does not
    depend on the scale.

    Parameters
    ----------
    how
        ``chains``, ``draws``, ``warm_up`` and ``seed``, see `labmates.stats.bayes.nuts.sample_model`.

    Raises
    ------
    MissingExtraError
        If NumPyro is not installed.
    """
    check_numpyro()
    width, many = fit.model.width, len(fit.model.deviations)
    ours = fit.posterior.draws[:, :width]
    given = {"centre": ours.mean(axis=0), "factor": np.linalg.cholesky(np.cov(ours.T) + 1e-14 * np.eye(width))}
    log_likelihood, priors = _collapsed(fit.model), fit.model.priors

    def density(given: dict[str, Any]) -> None:
        import numpyro
        from numpyro import distributions as dist

        # A flat coordinate, since the prior is on the coefficients.
        unit = numpyro.sample("unit", dist.ImproperUniform(dist.constraints.real_vector, (), (width,)))
        coefficients = numpyro.deterministic("coefficients", given["centre"] + given["factor"] @ unit)
        numpyro.factor("intercept", dist.Normal(priors.intercept_mean, priors.intercept_sd).log_prob(coefficients[0]))
        numpyro.factor("slopes", dist.Normal(0.0, priors.coefficient_sd).log_prob(coefficients[1:]).sum())
        deviations = numpyro.sample("deviations", dist.HalfNormal(priors.component_sd).expand([many]).to_event(1))
        numpyro.factor("likelihood", log_likelihood(coefficients, deviations))

    start = {"deviations": np.quantile(fit.posterior.draws[:, -1 - many : -1], 0.7, axis=0)}
    return sample_model(density, given, sampled_names(fit.model), SITES, start=start, **how)[0]


def sampled_names(model: MixedModel) -> tuple[str, ...]:
    """The parameters of the chains: coefficients and standard deviations."""
    return (INTERCEPT, *model.cells.names, *(DEVIATION + name for name in model.deviations))


def _collapsed(model: MixedModel) -> Callable[[Any, Any], Any]:
    """The log likelihood of cells given coefficients and deviations, with all random terms integrated out."""
    import jax.numpy as jnp
    from jax.scipy.linalg import solve_triangular

    cells: Cells = model.cells
    names = list(model.deviations)
    if set(names) <= {RESIDUAL, FAMILY}:
        return _simple(model)
    place, there = _padded(cells)
    slopes = [name for name in SLOPES if name in names]
    reactions = [model.reaction(name) for name in slopes]
    terms = jnp.asarray(np.column_stack([np.ones(len(cells.mean)), *reactions])[place])
    design, mean, count = (jnp.asarray(values[place]) for values in (cells.design, cells.mean, cells.count))
    of_family = np.zeros((len(cells.families), len(cells.models)))
    of_family[cells.family, cells.model] = 1
    within, squares = cells.rows - len(cells.count), float(cells.squares.sum())
    k = terms.shape[-1]

    def variance(deviations: Any, name: str) -> Any:
        return deviations[names.index(name)] ** 2 if name in names else 0.0

    def log_likelihood(coefficients: Any, deviations: Any) -> Any:
        residual = variance(deviations, RESIDUAL)
        noise = residual / count + variance(deviations, CELL)
        log_size = (jnp.log(noise) * there).sum()
        # Inner products of terms and residuals within each model, after integration over the level of each game.
        both = jnp.concatenate([terms, (mean - design @ coefficients)[..., None]], axis=-1)
        weighted = both * (there / noise)[..., None]
        sums = weighted.sum(axis=2)
        between = variance(deviations, GAME)
        log_size += jnp.log1p(between * sums[..., 0]).sum()
        shrunk = between / (1 + between * sums[..., 0])
        products = jnp.einsum("mgci,mgcj->mij", weighted, both) - jnp.einsum("mg,mgi,mgj->mij", shrunk, sums, sums)
        # A model's level and its reactions to prompts.
        spread = jnp.stack([deviations[names.index(n)] if n in names else 0.0 for n in (MODEL, *slopes)])
        factor = jnp.linalg.cholesky(jnp.eye(k) + spread[:, None] * products[:, :k, :k] * spread)
        log_size += 2 * jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)).sum()
        solved = solve_triangular(factor, spread[:, None] * products[:, :k, :], lower=True)
        products = products - jnp.swapaxes(solved, 1, 2) @ solved
        # A family's level.
        families = jnp.einsum("fm,mij->fij", of_family, products)
        one, cross, square = families[:, 0, 0], families[:, 0, -1], families[:, -1, -1]
        level = variance(deviations, FAMILY)
        log_size += jnp.log1p(level * one).sum()
        quadratic = (square - level * cross**2 / (1 + level * one)).sum()
        return -0.5 * (log_size + quadratic + within * jnp.log(residual) + squares / residual)

    return log_likelihood


def _simple(model: MixedModel) -> Callable[[Any, Any], Any]:
    """The same for families only: inner products of rows within each family do not depend on the parameters."""
    import jax.numpy as jnp

    cells = model.cells
    values = np.column_stack([cells.design, cells.mean])
    each = values[:, :, None] * values[:, None, :] * cells.count[:, None, None]
    moments = jnp.asarray([each[cells.family == at].sum(axis=0) for at in range(len(cells.families))])
    squares = float(cells.squares.sum())

    def log_likelihood(coefficients: Any, deviations: Any) -> Any:
        residual = deviations[0] ** 2
        level = deviations[1] ** 2 if FAMILY in model.components else 0.0
        against = moments @ jnp.append(-coefficients, 1.0)
        one, cross = moments[:, 0, 0] / residual, against[:, 0] / residual
        square = against @ jnp.append(-coefficients, 1.0) / residual
        quadratic = (square - level * cross**2 / (1 + level * one)).sum() + squares / residual
        return -0.5 * (jnp.log1p(level * one).sum() + quadratic + cells.rows * jnp.log(residual))

    return log_likelihood


def _padded(cells: Cells) -> tuple[NDArray[np.intp], Array]:
    """Cells as a padded block of models × games × cells: the index of each cell, and a mask of real ones.

    Sums over blocks of equal length avoid slow scattering.
    """
    blocks = len(cells.models) * len(cells.games)
    sizes = np.bincount(cells.block, minlength=blocks)
    firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    at = np.arange(sizes.max())
    there = at < sizes[:, None]
    place = np.where(there, firsts[:, None] + at, 0)
    shape = (len(cells.models), len(cells.games), int(sizes.max()))
    return place.reshape(shape), there.reshape(shape).astype(float)
