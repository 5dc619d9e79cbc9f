"""Permutation tests over models, to complement a posterior of few models; they assume no distribution of models."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from labmates.stats.domains import AT_MOST_ONE
from labmates.stats.intervals import Estimate, clusters
from labmates_profiles.arrays import Array

PERMUTATIONS = 10_000
_TIE = 1e-10


@dataclass(frozen=True)
class PermutationTest:
    """A test of association between predictors and an outcome.

    Attributes
    ----------
    statistic
        F of the tested predictors, given the others; for sign flips, the mean over its standard error, infinite if all
        values are equal.
    p
        Share of permutations at least as extreme, the data themselves included.
    units
        Number of models.
    """

    statistic: float
    p: float
    permutations: int
    units: int


def freedman_lane(
    outcome: Array, tested: Array, controls: Array | None = None, *, permutations: int = PERMUTATIONS, seed: int = 0
) -> PermutationTest:
    """Test the association of predictors with an outcome beyond the controls.

    The residuals of the outcome on the controls are permuted among models, with the F of the tested predictors as
    statistic (Freedman and Lane, Journal of Business & Economic Statistics 1983). The test keeps its level with few
    models and non-normal errors, where an F test of repeated rows of models does not.

    Parameters
    ----------
    outcome
        One value per model, shape ``(models,)``.
    tested
        Predictors, shape ``(models, k)`` or ``(models,)``.
    controls
        In addition to the intercept; shape ``(models, c)``.

    Raises
    ------
    ValueError
        If there are not more models than coefficients, or the controls determine the tested predictors.
    """
    n = len(outcome)
    base = _basis(np.column_stack([np.ones(n), np.empty((n, 0)) if controls is None else controls]))
    residual = tested.reshape(n, -1) - base @ (base.T @ tested.reshape(n, -1))
    extra = _basis(residual, like=tested.reshape(n, -1))
    freedom = n - base.shape[1] - extra.shape[1]
    if not extra.shape[1]:
        raise ValueError("the tested predictors are constant, or the controls determine them")
    if freedom < 1:
        raise ValueError(f"{n} models are too few for {base.shape[1] + extra.shape[1]} coefficients")
    left = outcome - base @ (base.T @ outcome)
    if np.linalg.norm(left) <= _TIE * np.linalg.norm(outcome):
        left = np.zeros(n)  # the controls explain everything but rounding
    rng = np.random.default_rng(seed)
    shuffled = left[np.argsort(rng.random((permutations, n)), axis=1)]
    ratios = _ratios(np.vstack([left, shuffled]), base, extra)
    at_least = int(np.count_nonzero(ratios[1:] >= ratios[0] * (1 - _TIE)))
    statistic = float(ratios[0] * freedom / extra.shape[1])
    return PermutationTest(statistic, (1 + at_least) / (1 + permutations), permutations, n)


def sign_flips(differences: Array, *, permutations: int = PERMUTATIONS, seed: int = 0) -> PermutationTest:
    """Test whether differences, one per model, are centred on 0, by random sign flips.

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
    """R² of least-squares predictions for each model by a fit without it.

    1 is a perfect prediction; below 0 the mean of the other models predicts better. The interval is a jackknife over
    models on the scale of the logarithm of 1 - R². None without more models than coefficients, or variation of the
    outcome.
    """
    n = len(outcome)
    design = _basis(np.column_stack([np.ones(n), predictors]))
    if n <= design.shape[1] or _alike(outcome):
        return None
    around = (outcome - outcome.mean()) * n / (n - 1)
    leverages = np.minimum((design**2).sum(axis=1), 1 - 1e-9)
    missed = (outcome - design @ (design.T @ outcome)) / (1 - leverages)
    missed, around = missed**2, around**2
    without = 1 - (missed.sum() - missed) / np.maximum(around.sum() - around, np.finfo(float).tiny)
    return clusters(float(1 - missed.sum() / around.sum()), without.tolist(), AT_MOST_ONE)


def variance_inflation(predictors: Array) -> Array:
    """The variance inflation factor of each predictor's coefficient.

    1 for a predictor orthogonal to the others, infinite if they determine it, NaN if it is constant.

    Parameters
    ----------
    predictors
        Without intercept, shape ``(models, predictors)``.
    """
    inflation = np.full(predictors.shape[1], np.nan)
    for at in range(predictors.shape[1]):
        column = predictors[:, at]
        others = _basis(np.column_stack([np.ones(len(column)), np.delete(predictors, at, axis=1)]))
        whole = ((column - column.mean()) ** 2).sum()
        if not _alike(column):
            left = ((column - others @ (others.T @ column)) ** 2).sum()
            inflation[at] = np.inf if left <= 1e-10 * whole else whole / left
    return inflation


def leverage(predictors: Array) -> Array:
    """The leverage of each model, from 0 to 1: the share of its own value in its fitted value.

    Parameters
    ----------
    predictors
        Without intercept, shape ``(models, predictors)``.
    """
    return np.asarray((_basis(np.column_stack([np.ones(len(predictors)), predictors])) ** 2).sum(axis=1))


def _alike(values: Array) -> bool:
    """Whether values are equal but for rounding."""
    return bool(np.ptp(values) <= _TIE * np.abs(values).max())


def _ratio(mean: float, error: float) -> float:
    """A mean over its standard error; infinite if all values are equal and not 0."""
    if error > _TIE * abs(mean):
        return mean / error
    return math.copysign(math.inf, mean) if mean else 0.0


def _basis(columns: Array, like: Array | None = None) -> Array:
    """An orthonormal basis of columns, without components that are negligible beside `like`."""
    size = np.sqrt(((columns if like is None else like) ** 2).sum(axis=0))
    vectors, strength, _ = np.linalg.svd(columns / np.where(size > 0, size, 1), full_matrices=False)
    return np.asarray(vectors[:, strength > 1e-9])


def _ratios(left: Array, base: Array, extra: Array) -> Array:
    """Explained over unexplained variation of rows of residuals."""
    left = left - (left @ base) @ base.T
    explained = ((left @ extra) ** 2).sum(axis=1)
    rest = np.maximum((left**2).sum(axis=1) - explained, np.finfo(float).tiny)
    return np.asarray(explained / rest)
