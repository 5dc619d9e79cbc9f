"""Least squares with standard errors that allow for clusters: a plain check beside hierarchical models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labmates.stats.intervals import Estimate, interval
from labmates_profiles.arrays import Array


def clustered_ols(
    design: Array, outcome: Array, cluster: NDArray[np.intp], count: Array | None = None
) -> list[Estimate] | None:
    """The coefficients of least squares with cluster-robust intervals.

    The variance is the sandwich of sums within clusters (Liang and Zeger 1986) with the factor
    ``G/(G-1) · (n-1)/(n-k)`` for n rows, k coefficients and G clusters; intervals are t with ``G-1`` degrees of
    freedom. They are too narrow for a predictor that few clusters tell apart.

    Parameters
    ----------
    design
        One column per coefficient, the intercept included, shape ``(rows, k)``.
    cluster
        Index of each row's cluster, shape ``(rows,)``.
    count
        How many equal rows of the data a row stands for, with `outcome` as their mean; 1 by default.

    Returns
    -------
    estimates
        One for each column; None if the data do not determine the coefficients, or there are fewer than 2 clusters.
    """
    weight = np.ones(len(outcome)) if count is None else count
    rows, width, clusters = float(weight.sum()), design.shape[1], len(np.unique(cluster))
    weighted = design * weight[:, None]
    if clusters < 2 or rows <= width or np.linalg.matrix_rank(design) < width:
        return None
    bread = np.linalg.inv(design.T @ weighted)
    coefficients = bread @ (weighted.T @ outcome)
    scores = np.zeros((int(cluster.max()) + 1, width))
    np.add.at(scores, cluster, weighted * (outcome - design @ coefficients)[:, None])
    scale = clusters / (clusters - 1) * (rows - 1) / (rows - width)
    errors = np.sqrt(np.maximum(scale * np.diagonal(bread @ (scores.T @ scores) @ bread), 0.0))
    return [
        interval(float(value), float(error), clusters - 1, n=clusters, method="clustered, t")
        for value, error in zip(coefficients, errors, strict=True)
    ]
