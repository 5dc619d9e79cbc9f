"""Tests over models that stand beside a posterior when models are few; they assume no distribution of models."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from labmates.stats.arrays import Array
from labmates.stats.domains import AT_MOST_ONE
from labmates.stats.intervals import Estimate, clusters

PERMUTATIONS = 10_000
_TIE = 1e-10


@dataclass(frozen=True)
class PermutationTest:
    """Whether predictors have to do with an outcome.

    Attributes
    ----------
    statistic
        F of the tested predictors, given the others; or, of signs, the mean over its standard error, which is infinite
        where all values are the same.
    p
        Share of permutations at least as extreme, the data themselves counted in.
    units
        How many models it rests on.
    """

    statistic: float
    p: float
    permutations: int
    units: int


def freedman_lane(
    outcome: Array, tested: Array, controls: Array | None = None, *, permutations: int = PERMUTATIONS, seed: int = 0
) -> PermutationTest:
    """Test whether predictors have to do with an outcome beyond what the controls explain.

    What the controls leave of the outcome is permuted among models, and the F of the tested predictors is taken each
    time (Freedman and Lane, Journal of Business & Economic Statistics 1983). It holds its level with few models and
    without normal errors, where an F test of rows that are repeats of models does not.

    Parameters
    ----------
    outcome
        One value per model, shape ``(models,)``.
    tested
        Shape ``(models, k)`` or ``(models,)``.
    controls
        Beside the intercept, which is always there; shape ``(models, c)``.

    Raises
    ------
    ValueError
        If there are not more models than coefficients, or the tested predictors are determined by the controls.
    """
    n = len(outcome)
    kept = _basis(np.column_stack([np.ones(n), np.empty((n, 0)) if controls is None else controls]))
    away = tested.reshape(n, -1) - kept @ (kept.T @ tested.reshape(n, -1))
    extra = _basis(away, like=tested.reshape(n, -1))
    freedom = n - kept.shape[1] - extra.shape[1]
    if not extra.shape[1]:
        raise ValueError("the tested predictors are constant, or the controls determine them")
    if freedom < 1:
        raise ValueError(f"{n} models are too few for {kept.shape[1] + extra.shape[1]} coefficients")
    left = outcome - kept @ (kept.T @ outcome)
    if np.linalg.norm(left) <= _TIE * np.linalg.norm(outcome):
        left = np.zeros(n)  # the controls explain everything: the rest is rounding
    rng = np.random.default_rng(seed)
    shuffled = left[np.argsort(rng.random((permutations, n)), axis=1)]
    ratios = _ratios(np.vstack([left, shuffled]), kept, extra)
    at_least = int(np.count_nonzero(ratios[1:] >= ratios[0] * (1 - _TIE)))
    statistic = float(ratios[0] * freedom / extra.shape[1])
    return PermutationTest(statistic, (1 + at_least) / (1 + permutations), permutations, n)


def sign_flips(differences: Array, *, permutations: int = PERMUTATIONS, seed: int = 0) -> PermutationTest:
    """Test whether differences, one per model, are around 0, by flipping their signs at random.

    Raises
    ------
    ValueError
        If there are fewer than two.
    """
    n = len(differences)
    if n < 2:
        raise ValueError("at least two models must differ")
    rng = np.random.default_rng(seed)
    means = np.abs(np.where(rng.random((permutations, n)) < 0.5, -differences, differences).mean(axis=1))
    observed = abs(float(differences.mean()))
    at_least = int(np.count_nonzero(means >= observed * (1 - _TIE)))
    error = float(differences.std(ddof=1)) / np.sqrt(n)
    return PermutationTest(
        _ratio(float(differences.mean()), float(error)), (1 + at_least) / (1 + permutations), permutations, n
    )


def leave_one_out_r2(outcome: Array, predictors: Array) -> Estimate | None:
    """R² of least-squares predictions for each model by a fit without it: 1 perfectly.

    Below 0 the mean of the other models is a better prediction. The predictors are taken with an intercept. The
    interval is the jackknife's over models, on the scale of the logarithm of 1 - R².

    None if there are not more models than coefficients, or the outcome does not vary.
    """
    n = len(outcome)
    design = _basis(np.column_stack([np.ones(n), predictors]))
    if n <= design.shape[1] or _alike(outcome):
        return None
    around = (outcome - outcome.mean()) * n / (n - 1)
    own = np.minimum((design**2).sum(axis=1), 1 - 1e-9)
    missed = (outcome - design @ (design.T @ outcome)) / (1 - own)
    missed, around = missed**2, around**2
    without = 1 - (missed.sum() - missed) / np.maximum(around.sum() - around, np.finfo(float).tiny)
    return clusters(float(1 - missed.sum() / around.sum()), without.tolist(), AT_MOST_ONE)


def variance_inflation(predictors: Array) -> Array:
    """The factor by which the others of a set inflate the variance of each predictor's coefficient.

    1 where a predictor has nothing in common with the others; infinite where they determine it. NaN if constant.

    Parameters
    ----------
    predictors
        Without intercept, shape ``(models, predictors)``.
    """
    inflation = np.full(predictors.shape[1], np.nan)
    for at in range(predictors.shape[1]):
        mine = predictors[:, at]
        others = _basis(np.column_stack([np.ones(len(mine)), np.delete(predictors, at, axis=1)]))
        whole = ((mine - mine.mean()) ** 2).sum()
        if not _alike(mine):
            left = ((mine - others @ (others.T @ mine)) ** 2).sum()
            inflation[at] = np.inf if left <= 1e-10 * whole else whole / left
    return inflation


def leverage(predictors: Array) -> Array:
    """The share of each model's own value in its fitted value, from 0 to 1; their sum is the number of
    coefficients.

    Parameters
    ----------
    predictors
        Without intercept, shape ``(models, predictors)``.
    """
    return np.asarray((_basis(np.column_stack([np.ones(len(predictors)), predictors])) ** 2).sum(axis=1))


def _alike(values: Array) -> bool:
    """Whether values are all the same, but for rounding."""
    return bool(np.ptp(values) <= _TIE * np.abs(values).max())


def _ratio(mean: float, error: float) -> float:
    """A mean over its standard error; infinite where all values are the same, and not 0."""
    if error > _TIE * abs(mean):
        return mean / error
    return math.copysign(math.inf, mean) if mean else 0.0


def _basis(columns: Array, like: Array | None = None) -> Array:
    """An orthonormal basis of columns; what is next to nothing beside `like` is not part of it."""
    size = np.sqrt(((columns if like is None else like) ** 2).sum(axis=0))
    vectors, strength, _ = np.linalg.svd(columns / np.where(size > 0, size, 1), full_matrices=False)
    return np.asarray(vectors[:, strength > 1e-9])


def _ratios(left: Array, kept: Array, extra: Array) -> Array:
    """Explained over unexplained variation of rows of residuals."""
    left = left - (left @ kept) @ kept.T
    explained = ((left @ extra) ** 2).sum(axis=1)
    rest = np.maximum((left**2).sum(axis=1) - explained, np.finfo(float).tiny)
    return np.asarray(explained / rest)
