"""Correlations of dispositions across games, corrected for measurement noise."""

from __future__ import annotations

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.bayes.importance import climb

_SCALE = 0.01
"""Unit of the search for the mode; its gradients are differences over a hundredth of this."""
LKJ = 2.0
"""Shape of the prior of the correlation matrix (Lewandowski, Kurowicka and Joe, 2009): weakly favours independence."""


def correlations(levels: Array, errors: Array) -> Array:
    """The correlation matrix of dispositions, shape (g, g), at its posterior mode given the games alone.

    Parameters
    ----------
    levels
        Observed metrics, in standard deviations between models, shape (m, g).
    errors
        Standard errors in the same unit, shape (m, g).

    Notes
    -----
    ȳ_i ~ N(μ, D R D + SE_i²), R ~ LKJ(2), flat priors on μ and on the logarithms of D. The plain correlations of
    observed metrics would be too small: noise attenuates them.
    """
    g = levels.shape[1]
    pairs = g * (g - 1) // 2
    if not pairs:
        return np.ones((1, 1))
    spread = np.log(np.sqrt(np.maximum(levels.var(axis=0) - (errors**2).mean(axis=0), 0.1)))
    start = np.concatenate([levels.mean(axis=0), spread, np.zeros(pairs)])
    most = np.concatenate([np.full(g, np.inf), np.full(g, 5.0), np.full(pairs, 4.0)]) / _SCALE
    mode, _ = climb(
        lambda points: _log_posterior(points, levels, errors),
        start,
        np.full(len(start), _SCALE),
        most_steps=300,
        bounds=list(zip(-most, most, strict=True)),
    )
    factor = correlation_factor(np.tanh(mode[None, 2 * g :] * _SCALE), g)[0]
    return np.asarray(factor @ factor.T)


def correlation_factor(partial: Array, games: int) -> Array:
    """The lower Cholesky factor of correlation matrices, shape (n, g, g).

    Parameters
    ----------
    partial
        Partial correlations, each given the earlier ones in its row of the lower triangle, shape (n, g (g - 1) / 2).
    """
    factor = np.zeros((len(partial), games, games))
    factor[:, *np.tril_indices(games, -1)] = partial
    left = np.cumprod(1 - factor**2, axis=2)
    before = np.concatenate([np.ones((len(partial), games, 1)), left[:, :, :-1]], axis=2)
    return np.asarray((factor + np.eye(games)) * np.sqrt(before))


def _log_posterior(points: Array, levels: Array, errors: Array) -> Array:
    g = levels.shape[1]
    centre, spread, angle = points[:, :g], np.exp(points[:, g : 2 * g]), points[:, 2 * g :]
    factor = spread[:, :, None] * correlation_factor(np.tanh(angle), g)
    covariance = (factor @ factor.transpose(0, 2, 1))[:, None] + errors[:, :, None] ** 2 * np.eye(g)
    lower = np.linalg.cholesky(covariance)
    away = np.linalg.solve(lower, (levels - centre[:, None, :])[..., None])[..., 0]
    size = np.log(np.diagonal(lower, axis1=2, axis2=3)).sum(axis=2)
    before = np.tril_indices(g, -1)[1]
    # The density of partial correlations in an LKJ matrix, on the scale of their inverse hyperbolic tangents.
    log_slope = -2 * np.logaddexp(angle, -angle)
    prior = log_slope @ (LKJ + (g - 2 - before) / 2)
    return np.asarray(prior - (size + 0.5 * (away**2).sum(axis=2)).sum(axis=1))
