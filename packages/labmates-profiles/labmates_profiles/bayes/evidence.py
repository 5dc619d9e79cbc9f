"""Permutation tests over models, to complement a posterior of few models; they assume no distribution of models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labmates.stats.domains import AT_MOST_ONE
from labmates.stats.intervals import Estimate, clusters
from labmates_profiles.arrays import Array

Places = NDArray[np.intp]
PERMUTATIONS = 10_000
_TIE = 1e-10
_CORRELATIONS = np.arange(20) / 20


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
    families
        Number of their families; that of models where these count as unrelated.
    """

    statistic: float
    p: float
    permutations: int
    units: int
    families: int


def freedman_lane(
    outcome: Array,
    tested: Array,
    controls: Array | None = None,
    families: Array | None = None,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> PermutationTest:
    """Test the association of predictors with an outcome beyond the controls.

    The residuals of the outcome on the controls are permuted among models, with the F of the tested predictors as
    statistic (Freedman and Lane, Journal of Business & Economic Statistics 1983). The test keeps its level with few
    models and non-normal errors, where an F test of repeated rows of models does not. Models of one family resemble
    each other in play and results alike, so theirs can't be exchanged as they are: all columns are first freed of the
    correlation within families that the residuals show (REML, see `_uncorrelated`).

    Parameters
    ----------
    outcome
        One value per model, shape ``(models,)``.
    tested
        Predictors, shape ``(models, k)`` or ``(models,)``.
    controls
        In addition to the intercept; shape ``(models, c)``.
    families
        The share of each family in each model, shape ``(models, families)``; None if they are unrelated.

    Raises
    ------
    ValueError
        If there are not more models than coefficients, or the controls determine the tested predictors.
    """
    n, tested = len(outcome), tested.reshape(len(outcome), -1)
    fixed = np.column_stack([np.ones(n), np.empty((n, 0)) if controls is None else controls])
    same = np.eye(n) if families is None else families @ families.T
    if np.count_nonzero(same) > n:
        turn = _uncorrelated(outcome, fixed, same)
        outcome, tested, fixed = turn @ outcome, turn @ tested, turn @ fixed
    base = _basis(fixed)
    extra = _basis(tested - base @ (base.T @ tested), like=tested)
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
    statistic = float(ratios[0]) * freedom / extra.shape[1]
    number = n if families is None else families.shape[1]
    return PermutationTest(statistic, (1 + at_least) / (1 + permutations), permutations, n, number)


def indicators(family: Places) -> Array:
    """The share of each family in each model, where a model is of one family."""
    return np.asarray(family[:, None] == np.unique(family), dtype=float)


def _uncorrelated(outcome: Array, fixed: Array, same: Array) -> Array:
    """The matrix that removes the correlation within families which best explains the outcome beside fixed columns.

    The correlation is that of the highest restricted likelihood on a grid (Patterson and Thompson, Biometrika 1971).
    """
    n = len(outcome)
    best, chosen = -np.inf, np.eye(n)
    for correlation in _CORRELATIONS:
        turn = np.linalg.inv(np.linalg.cholesky((1 - correlation) * np.eye(n) + correlation * same))
        columns, values = turn @ fixed, turn @ outcome
        base = _basis(columns)
        freedom = n - base.shape[1]
        rest = max(float(((values - base @ (base.T @ values)) ** 2).sum()), np.finfo(float).tiny)
        size = np.linalg.svd(columns, compute_uv=False)[: base.shape[1]]
        likelihood = np.log(np.diag(turn)).sum() - 0.5 * freedom * np.log(rest) - np.log(size).sum()
        if likelihood > best:
            best, chosen = likelihood, turn
    return chosen


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
        _ratio(float(differences.mean()), float(error)), (1 + at_least) / (1 + permutations), permutations, n, n
    )


def leave_out_r2(outcome: Array, predictors: Array, families: Array | None = None) -> Estimate | None:
    """R² of least-squares predictions for the models of each family by a fit without that family.

    1 is a perfect prediction; below 0 the mean of the other families' models predicts better. The interval is a
    jackknife over families on the scale of the logarithm of 1 - R². None without variation of the outcome, or where the
    rest does not determine the coefficients.

    Parameters
    ----------
    outcome
        One value per model, shape ``(models,)``.
    predictors
        Without intercept, shape ``(models, predictors)``.
    families
        The share of each family in each model, shape ``(models, families)``; None if each is its own.
    """
    n = len(outcome)
    design, ones = _basis(np.column_stack([np.ones(n), predictors])), np.full((n, 1), n**-0.5)
    if n <= design.shape[1] or _alike(outcome):
        return None
    members = [np.flatnonzero(family) for family in (np.eye(n) if families is None else families.T)]
    missed, around = (_missed(outcome, columns, members) for columns in (design, ones))
    if missed is None or around is None:
        return None
    without = 1 - (missed.sum() - missed) / np.maximum(around.sum() - around, np.finfo(float).tiny)
    return clusters(float(1 - missed.sum() / around.sum()), without.tolist(), AT_MOST_ONE)


def _missed(outcome: Array, basis: Array, members: Sequence[Places]) -> Array | None:
    """Sum of squared errors of each group's predictions by the other groups; None if these determine no fit."""
    left = outcome - basis @ (basis.T @ outcome)
    sums = []
    for mine in members:
        free = np.eye(len(mine)) - basis[mine] @ basis[mine].T
        if np.linalg.eigvalsh(free)[0] < 1e-9:
            return None
        sums.append(float((np.linalg.solve(free, left[mine]) ** 2).sum()))
    return np.array(sums)


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
    with np.errstate(over="ignore"):  # infinite if nothing is unexplained
        return np.asarray(explained / rest)
