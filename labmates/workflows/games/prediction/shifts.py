"""Shifts of data sets: their effect on the scores of all models alike.

A seed fixes the data set of a task, and all models and conditions work on the same few. Some are harder than others:
each shifts scores by its own N(0, σ²). How far shifts differ is told by runs of the same model and condition on
different data sets, so these are looked at within each observation, beside the observations themselves:

    y_ikr − ȳ_ik  =  d_r − d̄_ik + e_ikr − ē_ik        e ~ N(0, ρ²)
"""

from __future__ import annotations

import numpy as np

from labmates.stats.arrays import Array
from labmates.workflows.games.prediction.data import PredictionData, group_means

_LEAST = 1e-9
_ROUNDING = 1e-14


class Shifts:
    """The shifts d of d data sets, as far as observations rest on them: Z d = Q c with r numbers c.

    Attributes
    ----------
    columns
        Q, shape (observations, r).
    turn
        What makes c of d, shape (r, d): Q is Z times its transpose.
    freedom
        Differences between runs of the same observation; 0 where they tell nothing, and there is no ρ.
    noise
        ρ as least squares has it; 0 where there is none.
    """

    def __init__(self, data: PredictionData) -> None:
        n, runs = len(data.outcome), data.runs
        if runs is None:
            self.columns, self.freedom, self.noise, self.told = np.empty((n, 0)), 0, 0.0, False
            return
        member = runs.member
        counts = np.bincount(runs.observation, minlength=n).astype(float)
        mean = group_means(np.column_stack([member, runs.outcome]), runs.observation, counts)
        left, strength, right = np.linalg.svd(mean[:, :-1], full_matrices=False)
        kept = strength > _LEAST * max(strength.max(initial=0), 1)
        self.columns, self.turn = left[:, kept] * strength[kept], right[kept]
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
        """Whether anything but the prior says how far data sets differ."""

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
            ρ, shape (n,); of no use where there is none.

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
        kept = 1 / (1 + ratio[:, None] * self._values)
        mean = (ratio[:, None] * kept * self._along) @ self._turned.T
        inner = (self._turned * kept[:, None, :]) @ self._turned.T + _ROUNDING * np.eye(self.size)
        left = self._square - (ratio[:, None] * kept * self._along**2).sum(axis=1)
        log_likelihood = 0.5 * np.log(kept).sum(axis=1) - self.freedom * np.log(noise) - 0.5 * left / noise**2
        return mean, spread[:, None, None] * np.linalg.cholesky(inner), log_likelihood
