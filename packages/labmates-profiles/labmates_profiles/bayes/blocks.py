"""Predictions of a fitted linear mixed model for each model's outcomes: densities, effects and replications.

Given coefficients and standard deviations, the outcomes of a model under test are jointly normal: y = fixed + Z b + ε,
with b normal around 0. Their density has a closed form, and b is drawn exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.bayes.posterior import Posterior


@dataclass(frozen=True)
class Block:
    """The n outcomes of one model, for s draws from a posterior, with k random effects.

    Attributes
    ----------
    outcome
        Shape (n,).
    fixed
        Their mean given the coefficients, shape (s, n).
    terms
        Z, shape (n, k).
    variance
        Of the random effects, shape (s, k).
    noise
        Variance of ε, shape (s, n).
    """

    outcome: Array
    fixed: Array
    terms: Array
    variance: Array
    noise: Array

    def _factor(self) -> tuple[Array, Array]:
        """L, the Cholesky factor of 1 + D½Z'R⁻¹ZD½, and L⁻¹D½Z'R⁻¹(y − fixed)."""
        root = np.sqrt(self.variance)
        scaled = self.terms[None] * root[:, None, :]
        weighted = scaled / self.noise[:, :, None]
        inner = np.eye(self.terms.shape[1]) + scaled.transpose(0, 2, 1) @ weighted
        factor = np.linalg.cholesky(inner)
        against = (weighted * (self.outcome - self.fixed)[:, :, None]).sum(axis=1)
        return factor, np.linalg.solve(factor, against[..., None])[..., 0]

    def log_density(self) -> Array:
        """Joint log density of all outcomes, with random effects integrated out, shape (s,)."""
        factor, white = self._factor()
        left = self.outcome - self.fixed
        size = np.log(self.noise).sum(axis=1) + 2 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        square = (left**2 / self.noise).sum(axis=1) - (white**2).sum(axis=1)
        return np.asarray(-0.5 * (len(self.outcome) * np.log(2 * np.pi) + size + square))

    def expected(self, rng: np.random.Generator) -> Array:
        """Draws of the expected outcomes given the data: fixed + Z b, shape (s, n)."""
        factor, white = self._factor()
        drawn = np.linalg.solve(factor.transpose(0, 2, 1), (white + rng.standard_normal(white.shape))[..., None])
        return np.asarray(self.fixed + (drawn[..., 0] * np.sqrt(self.variance)) @ self.terms.T)

    def predicted(self, rng: np.random.Generator) -> Array:
        """Draws of outcomes of another model with the same predictors and new random effects, shape (s, n)."""
        effects = np.sqrt(self.variance) * rng.standard_normal(self.variance.shape)
        error = np.sqrt(self.noise) * rng.standard_normal(self.noise.shape)
        return np.asarray(self.fixed + effects @ self.terms.T + error)


@dataclass(frozen=True)
class Evaluated:
    """A fit with all values for checks; s draws, n outcomes.

    Attributes
    ----------
    name
        Of the fit: an outcome and a form, or a specification.
    outcome
        The explained quantity.
    cells
        Names of the outcomes.
    count
        The number of simulations or runs averaged in each outcome.
    log_prior
        Log density of all priors up to a constant, shape (s,).
    observed
        The outcomes.
    expected
        Draws of the expected outcomes, shape (s, n).
    spread
        Standard deviation of each outcome around its expectation, shape (s, n).
    replicated
        Draws of new data for the same models, shape (s, n).
    noise
        Standard deviation of a single simulation or observation, shape (s,).
    """

    name: str
    outcome: str
    posterior: Posterior
    cells: tuple[str, ...]
    count: Array
    log_prior: Array
    observed: Array
    expected: Array
    spread: Array
    replicated: Array
    noise: Array


def evaluated(
    names: tuple[str, str],
    posterior: Posterior,
    blocks: Sequence[Block],
    cells: tuple[Sequence[str], Array, Array],
    noise: Array,
    priors: Iterable[tuple[Sequence[str], float, float]],
    *,
    seed: int,
) -> Evaluated:
    """Evaluate a fit for checks.

    Parameters
    ----------
    names
        Of the fit, and of its outcome.
    blocks
        Of all models.
    cells
        Names of the outcomes, indices of their models, and numbers of averaged simulations or runs.
    noise
        Standard deviation of a single simulation or observation, shape (s,).
    priors
        Names of parameters, with the mean and standard deviation of their normal or half-normal prior.
    """
    rng = np.random.default_rng([seed, 4])
    labels, model_of, count = cells
    expected, variance = (np.empty((len(noise), len(model_of))) for _ in range(2))
    observed = np.empty(len(model_of))
    for at, block in enumerate(blocks):
        mine = model_of == at
        expected[:, mine], variance[:, mine], observed[mine] = block.expected(rng), block.noise, block.outcome
    spread = np.sqrt(variance)
    replicated = expected + spread * rng.standard_normal(expected.shape)
    squares = [(((posterior.columns(some) - mean) / sd) ** 2).sum(axis=1) for some, mean, sd in priors]
    log_prior = np.asarray(-0.5 * np.sum(squares, axis=0))
    return Evaluated(*names, posterior, tuple(labels), count, log_prior, observed, expected, spread, replicated, noise)
