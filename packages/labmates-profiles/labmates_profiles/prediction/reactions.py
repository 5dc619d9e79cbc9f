"""Models' own reactions to conditions (tasks, visibility, theory of mind, …), and the shifts of data sets.

A factor with levels, such as the task, gives each model a random deviation for each level, N(0, σ²). The deviations
enter by contrasts that sum to 0, so that a model's level (ω) is that of an average condition. A factor with two levels
or a number gives each model a random slope. The rows of a model then have the covariance

    V  =  τ² I + v 11' + Σ_t σ_t² tt'

with the variance v of its level and a term t for each contrast. The likelihood needs only moments of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.prediction.data import PredictionData, group_means

_LEAST = 1e-9
_ROUNDING = 1e-14


class Shifts:
    """The shifts d of the data sets, in the span of the observations: Z d = Q c with r numbers c.

    A seed fixes the data set of a task, and all models and conditions share the same few. Some are harder than others:
    each shifts scores by N(0, σ²). The runs of the same model and condition on different data sets are informative
    about σ, so the differences within each observation are modelled as well:

        y_ikr − ȳ_ik  =  d_r − d̄_ik + e_ikr − ē_ik        e ~ N(0, ρ²)

    Attributes
    ----------
    columns
        Q, shape (observations, r).
    turn
        The matrix from d to c, shape (r, d): Z = Q turn.
    freedom
        Differences between runs of the same observation; 0 if they carry no information, and then there is no ρ.
    noise
        The least-squares estimate of ρ; 0 without ρ.
    """

    def __init__(self, data: PredictionData) -> None:
        n, runs = len(data.outcome), data.runs
        if runs is None:
            self.columns, self.turn = np.empty((n, 0)), np.empty((0, 0))
            self.freedom, self.noise, self.told, self._turned = 0, 0.0, False, np.empty((0, 0))
            return
        member = runs.member
        counts = np.bincount(runs.observation, minlength=n).astype(float)
        mean = group_means(np.column_stack([member, runs.outcome]), runs.observation, counts)
        left, strength, right = np.linalg.svd(mean[:, :-1], full_matrices=False)
        positive = strength > _LEAST * max(strength.max(initial=0), 1)
        self.columns, self.turn = left[:, positive] * strength[positive], right[positive]
        within = np.column_stack([member, runs.outcome]) - mean[runs.observation]
        across, along = within[:, :-1], within[:, -1]
        solved, _, rank, _ = np.linalg.lstsq(across, along, rcond=None)
        freedom = len(along) - n
        rest = float(((along - across @ solved) ** 2).sum())
        usable = freedom > rank > 0 and rest > _LEAST**2 * len(along)
        self.freedom = freedom if usable else 0
        self.noise = float(np.sqrt(rest / (freedom - rank))) if usable else 0.0
        values, vectors = np.linalg.eigh(across.T @ across)
        self._values = np.maximum(values, 0)
        self._turned = self.turn @ vectors
        self._along = vectors.T @ (across.T @ along)
        self._square = float(along @ along)
        design = np.column_stack([np.ones(n), data.conditions])
        both = np.column_stack([design, self.columns])
        self.told = usable or bool(np.linalg.matrix_rank(both) > np.linalg.matrix_rank(design))
        """Whether the data are informative about the variance of data sets."""

    @property
    def size(self) -> int:
        """The length r of c."""
        return int(self.columns.shape[1])

    def given(self, spread: Array, noise: Array) -> tuple[Array, Array, Array]:
        """The mean and covariance of c given the runs within observations.

        Parameters
        ----------
        spread
            σ, shape (n,).
        noise
            ρ, shape (n,); ignored without ρ.

        Returns
        -------
        mean
            Shape (n, r).
        factor
            Lower Cholesky factor of the covariance, shape (n, r, r).
        log_likelihood
            Of the differences within observations, shape (n,).
        """
        if not self.freedom:
            factor = spread[:, None, None] * np.linalg.cholesky(self._turned @ self._turned.T)
            return np.zeros((len(spread), self.size)), factor, np.zeros(len(spread))
        ratio = (spread / noise) ** 2
        shrinkage = 1 / (1 + ratio[:, None] * self._values)
        mean = (ratio[:, None] * shrinkage * self._along) @ self._turned.T
        inner = (self._turned * shrinkage[:, None, :]) @ self._turned.T + _ROUNDING * np.eye(self.size)
        left = self._square - (ratio[:, None] * shrinkage * self._along**2).sum(axis=1)
        log_likelihood = 0.5 * np.log(shrinkage).sum(axis=1) - self.freedom * np.log(noise) - 0.5 * left / noise**2
        return mean, spread[:, None, None] * np.linalg.cholesky(inner), log_likelihood


@dataclass(frozen=True)
class Reactions:
    """Random terms of models; t terms, q columns.

    Attributes
    ----------
    factors
        The factors of the models' own reactions, each with one standard deviation.
    terms
        Each as a combination of 1 and the columns of the data, shape (t, 1 + q).
    factor
        Index of the factor of each term, length t.
    """

    factors: tuple[str, ...]
    terms: Array
    factor: tuple[int, ...]

    def of(self, conditions: Array) -> Array:
        """The terms of observations under conditions of shape (n, q), shape (n, t)."""
        ones = np.column_stack([np.ones(len(conditions)), conditions])
        return np.asarray(ones @ self.terms.reshape(-1, ones.shape[1]).T)


def reactions(data: PredictionData) -> Reactions:
    """The random terms that the data can separate from noise.

    A factor must vary within at least two models and leave degrees of freedom after coefficients for each model:
    otherwise noise and reactions are not separately identified.
    """
    factors: list[str] = []
    terms: list[Array] = []
    places: list[int] = []
    ones = np.column_stack([np.ones(len(data.outcome)), data.conditions])
    for name in dict.fromkeys(data.factors):
        new = _terms(data, [at for at, factor in enumerate(data.factors) if factor == name])
        own = [ones[data.model_of == at] @ np.array([*terms, *new]).T for at in range(len(data.models))]
        varying = sum(np.ptp(values[:, len(terms) :], axis=0).max() > 0 for values in own)
        ranks = sum(np.linalg.matrix_rank(np.column_stack([np.ones(len(values)), values])) for values in own)
        if varying >= 2 and ranks < len(data.outcome):
            places += [len(factors)] * len(new)
            factors.append(name)
            terms += new
    return Reactions(tuple(factors), np.array(terms).reshape(-1, ones.shape[1]), tuple(places))


def _terms(data: PredictionData, columns: list[int]) -> list[Array]:
    wide = 1 + len(data.columns)
    values = data.conditions[:, columns]
    if not np.isin(values, (0, 1)).all():
        slopes = np.eye(wide)[[1 + at for at in columns]]
        slopes[:, 0] = -values.mean(axis=0)
        return list(slopes)
    if len(columns) == 1:
        slope = np.eye(wide)[1 + columns[0]]
        slope[0] = -0.5
        return [slope]
    levels = np.zeros((len(columns) + 1, wide))  # the reference level first, at which all columns are 0
    levels[0, 0] = 1
    levels[0, [1 + at for at in columns]] = -1
    levels[np.arange(1, len(levels)), [1 + at for at in columns]] = 1
    contrasts = np.linalg.svd(np.ones((1, len(levels))))[2][1:]
    return list(contrasts @ levels)


@dataclass(frozen=True)
class Moments:
    """Moments of the rows, weighted by the inverse of their covariance; n points, m models, f columns.

    Attributes
    ----------
    all_rows
        Σ F'V⁻¹F over models, shape (n, f, f).
    level
        1'V⁻¹1, shape (n, m).
    with_level
        1'V⁻¹F, shape (n, m, f).
    log_size
        Sum over models of log |V|, shape (n,).
    """

    all_rows: Array
    level: Array
    with_level: Array
    log_size: Array


class Rows:
    """The rows F of all models, reduced to moments.

    With A = QL, of 1 and the random terms in a model's rows, V is diagonal apart from Q'VQ, a small matrix. No nearly
    equal numbers are subtracted, so a tiny noise loses no digits.

    Parameters
    ----------
    own
        1 and the random terms, shape (rows, 1 + t).
    columns
        F, shape (rows, f).
    """

    def __init__(self, own: Array, columns: Array, model_of: Array, models: int) -> None:
        self.count, self.wide = len(columns), columns.shape[1]
        k = own.shape[1]
        roots, self._cross = np.zeros((models, k, k)), np.zeros((models, k, self.wide))
        left = np.zeros((self.wide, self.wide))
        for at in range(models):
            values = columns[model_of == at]
            basis, strength, turned = np.linalg.svd(own[model_of == at], full_matrices=False)
            positive = strength > 1e-10 * strength[0]
            basis, rank = basis[:, positive], int(positive.sum())
            roots[at, :rank] = strength[positive, None] * turned[positive]
            self._cross[at, :rank] = basis.T @ values
            rest = values - basis @ self._cross[at, :rank]
            left += rest.T @ rest
        self._of_level = roots[:, :, 0]
        self._lower = np.tril_indices(self.wide)
        self._left = left[self._lower]
        pairs, terms = [], []
        for a in range(k):
            for b in range(a + 1):
                outer = self._cross[:, a, :, None] * self._cross[:, b, None, :]
                whole = outer if a == b else outer + outer.transpose(0, 2, 1)
                pairs.append(whole[:, self._lower[0], self._lower[1]])
                terms.append(roots[:, a] * roots[:, b])
        self._pairs = np.array(pairs).reshape(-1, len(self._lower[0]))
        self._terms = np.array(terms)

    def moments(self, noise: Array, level: Array, slopes: Array) -> Moments:
        """Moments of the rows for these standard deviations.

        Parameters
        ----------
        noise
            τ, shape (n,).
        level
            Variance of each model's level, shape (n, m).
        slopes
            Standard deviation of each random term, shape (n, t).
        """
        n, m, k = len(noise), level.shape[1], self._of_level.shape[1]
        levels, variances = level.T, slopes.T**2
        swept = np.empty((k, k, m, n))  # Q'VQ; only the lower triangle is filled and read
        at = 0
        for a in range(k):
            for b in range(a + 1):
                np.multiply(self._terms[at, :, 0, None], levels, out=swept[a, b])
                if k > 1:
                    swept[a, b] += self._terms[at, :, 1:] @ variances
                at += 1
            swept[a, a] += noise**2
        log_size = np.zeros((m, n))
        for pivot in range(k):
            _sweep(swept, pivot, noise**2, log_size)
        inverse = -swept
        packed = np.array([inverse[a, b] for a in range(k) for b in range(a + 1)]).reshape(-1, n).T @ self._pairs
        packed += noise[:, None] ** -2 * self._left
        all_rows = np.empty((n, self.wide, self.wide))
        all_rows[:, self._lower[0], self._lower[1]] = packed
        all_rows[:, self._lower[1], self._lower[0]] = packed
        weights = np.zeros((k, m, n))
        for a in range(k):
            for b in range(k):
                weights[a] += inverse[max(a, b), min(a, b)] * self._of_level[:, b, None]
        own = np.einsum("kmn,mk->nm", weights, self._of_level)
        whole = log_size.sum(axis=0) + 2 * (self.count - m * k) * np.log(noise)
        with_level = weights.transpose(1, 2, 0) @ self._cross
        return Moments(all_rows, own, with_level.transpose(1, 0, 2), whole)


def _sweep(matrix: Array, pivot: int, least: Array, log_size: Array) -> None:
    """Sweep a pivot of symmetric matrices, element by element: LAPACK calls on matrices this small are slow.

    A pivot is at least the noise variance, except for rounding errors.
    """
    row = np.concatenate([matrix[pivot, : pivot + 1], matrix[pivot + 1 :, pivot]])
    row[pivot] = np.maximum(row[pivot], least)
    log_size += np.log(row[pivot])
    scaled = row / row[pivot]
    for a in range(len(row)):
        if a != pivot:
            matrix[a, : a + 1] -= scaled[a] * row[: a + 1]
    matrix[pivot, : pivot + 1] = scaled[: pivot + 1]
    matrix[pivot + 1 :, pivot] = scaled[pivot + 1 :]
    matrix[pivot, pivot] = -1 / row[pivot]
