"""Predictions of a fitted linear mixed model for each model's outcomes: densities, effects and replications.

Given coefficients and standard deviations, the outcomes of a model under test are jointly normal: y = fixed + Z b + ε,
with b normal around 0. Their density has a closed form, and b is drawn exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
class Parameter:
    """Parameters of one kind, such as all coefficients of games; s draws of k parameters.

    Attributes
    ----------
    dimension, labels
        Their dimension and coordinates; both empty for a single number.
    draws, prior
        From the posterior and from the prior, shape (s, k).
    log_prior
        Log density of the prior at the posterior draws, shape (s,); None for effects of families and derived
        parameters.
    """

    dimension: str
    labels: tuple[str, ...]
    draws: Array
    prior: Array
    log_prior: Array | None


@dataclass(frozen=True)
class Evaluated:
    """A fit with all values for checks and exports; s draws, n outcomes, m models.

    Attributes
    ----------
    name
        Of the fit: an outcome and a form, or a specification.
    outcome
        The explained quantity.
    cells, model_of
        Names of the outcomes, and the index of each one's model.
    observed, count
        Outcomes, and the number of simulations or runs averaged in each.
    expected
        Draws of the expected outcomes, shape (s, n).
    spread
        Standard deviation of each outcome around its expectation, shape (s, n).
    replicated
        Draws of new data for the same models, shape (s, n).
    log_likelihood
        Of each outcome given its model's effects, shape (s, n).
    by_model
        Log likelihood of all outcomes of a model, with its effects integrated out, shape (s, m).
    noise
        Standard deviation of a single simulation or observation, shape (s,).
    """

    name: str
    outcome: str
    posterior: Posterior
    parameters: Mapping[str, Parameter]
    models: tuple[str, ...]
    cells: tuple[str, ...]
    model_of: Array
    observed: Array
    count: Array
    expected: Array
    spread: Array
    replicated: Array
    log_likelihood: Array
    by_model: Array
    noise: Array

    @property
    def log_prior(self) -> Array:
        """Log density of all priors, shape (s,)."""
        log_priors = [each.log_prior for each in self.parameters.values() if each.log_prior is not None]
        return np.asarray(np.sum(log_priors, axis=0))


@dataclass(frozen=True)
class Prior:
    """A normal prior; half-normal with this standard deviation if `positive`."""

    mean: float
    sd: float
    positive: bool = False

    def like(self, draws: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draws from the prior in the shape of `draws`, (s, k), and its log density at `draws`, shape (s,)."""
        drawn = rng.normal(self.mean, self.sd, draws.shape)
        density = log_normal_density(draws, self.mean, self.sd**2).sum(axis=1)
        if not self.positive:
            return drawn, density
        return np.abs(drawn), density + draws.shape[1] * np.log(2)


@dataclass(frozen=True)
class Kind:
    """Parameters of a posterior with a common prior: the key and dimension of their `Parameter`."""

    key: str
    names: Sequence[str]
    prior: Prior
    dimension: str = ""
    labels: Sequence[str] | None = None

    def parameter(self, posterior: Posterior, rng: np.random.Generator) -> Parameter:
        """The parameters with draws from posterior and prior."""
        draws = posterior.columns(self.names)
        labels = self.names if self.labels is None else self.labels
        return Parameter(self.dimension, tuple(labels) if self.dimension else (), draws, *self.prior.like(draws, rng))


def evaluate(
    blocks: Sequence[Block], model_of: Array, noise: Array, rng: np.random.Generator, within: Array | float = 0.0
) -> dict[str, Array]:
    """The attributes of `Evaluated` computed from the blocks of all models.

    Parameters
    ----------
    model_of
        Index of the model of each outcome, shape (n,).
    noise
        Standard deviation of a single simulation or observation, shape (s,).
    within
        Log density of the values averaged in each outcome, given the outcome, shape (s, n).
    """
    expected, variance = (np.empty((len(noise), len(model_of))) for _ in range(2))
    observed = np.empty(len(model_of))
    by_model = np.column_stack([block.log_density() for block in blocks])
    for at, block in enumerate(blocks):
        mine = model_of == at
        expected[:, mine], variance[:, mine], observed[mine] = block.expected(rng), block.noise, block.outcome
        by_model[:, at] += np.broadcast_to(within, expected.shape)[:, mine].sum(axis=1)
    return {
        "model_of": model_of,
        "observed": observed,
        "expected": expected,
        "spread": np.sqrt(variance),
        "replicated": expected + np.sqrt(variance) * rng.standard_normal(expected.shape),
        "log_likelihood": log_normal_density(observed, expected, variance) + within,
        "by_model": by_model,
        "noise": noise,
    }


def log_normal_density(values: Array, mean: Array | float, variance: Array | float) -> Array:
    """The log density of normal values."""
    return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + (values - mean) ** 2 / variance))
