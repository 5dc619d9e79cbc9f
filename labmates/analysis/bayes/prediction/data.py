"""What the prediction of lab outcomes needs of its data: a row per observation, and what is left of all rows.

Game metrics and benchmark scores are constant within a model, and the other covariates enter linearly. So the rows say
nothing beyond a mean per model and one triangle for all that varies within models, exactly (`summarise`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labmates.games.base import Array

Places = NDArray[np.intp]


@dataclass(frozen=True)
class Scale:
    """How a column was put on a common scale: (value - centre) / spread."""

    centre: Array
    spread: Array

    def __call__(self, values: Array) -> Array:
        """Return values on that scale."""
        return np.asarray((values - self.centre) / self.spread)


def standardised(values: Array) -> tuple[Array, Scale]:
    """Return columns with mean 0 and standard deviation 1 (that of the sample itself), and how to do it to others."""
    scale = Scale(values.mean(axis=0), values.std(axis=0))
    return scale(values), scale


@dataclass(frozen=True)
class PredictionData:
    """Models that have both a profile and lab runs and one outcome.

    There are m models, n observations, g games, c controls, q columns.

    Attributes
    ----------
    models
        Names, length m.
    games
        Names, length g.
    controls
        What is known of models beside their play, such as benchmark scores; names, length c.
    columns
        What differs between observations of a model, such as the task; names, length q.
    levels
        Observed primary metrics on the scale of standard deviations between models, shape (m, g).
    errors
        Their standard errors, on the same scale, shape (m, g).
    benchmarks
        Controls on the scale of standard deviations, shape (m, c).
    model_of
        Place of the model of each observation, shape (n,).
    conditions
        Shape (n, q).
    outcome
        Shape (n,).
    """

    models: tuple[str, ...]
    games: tuple[str, ...]
    controls: tuple[str, ...]
    columns: tuple[str, ...]
    levels: Array
    errors: Array
    benchmarks: Array
    model_of: Places
    conditions: Array
    outcome: Array

    def without(self, model: int) -> PredictionData:
        """Return the data without one model, by its place; scales stay as they are."""
        kept = np.arange(len(self.models)) != model
        rows = kept[self.model_of]
        return replace(
            self,
            models=tuple(name for name, stays in zip(self.models, kept, strict=True) if stays),
            levels=self.levels[kept],
            errors=self.errors[kept],
            benchmarks=self.benchmarks[kept],
            model_of=(np.cumsum(kept) - 1)[self.model_of[rows]],
            conditions=self.conditions[rows],
            outcome=self.outcome[rows],
        )


@dataclass(frozen=True)
class Summary:
    """All that the likelihood needs of the rows.

    Attributes
    ----------
    counts
        Observations of each model, shape (m,).
    condition_means
        Shape (m, q).
    outcome_means
        Shape (m,).
    triangle
        R of the QR decomposition of conditions and outcome within models, shape (at most q + 1, q + 1): for any γ,
        the sum of squares within models is ‖R (γ, −1)‖².
    observations
        n.
    """

    counts: Array
    condition_means: Array
    outcome_means: Array
    triangle: Array
    observations: int


def summarise(data: PredictionData) -> Summary:
    """Return the sufficient statistics of the rows.

    Raises
    ------
    ValueError
        If a model has no observation.
    """
    m = len(data.models)
    counts = np.bincount(data.model_of, minlength=m).astype(float)
    if not counts.all():
        raise ValueError("each model needs an observation")
    means = group_means(np.column_stack([data.conditions, data.outcome]), data.model_of, counts)
    within = np.column_stack([data.conditions, data.outcome]) - means[data.model_of]
    triangle = np.asarray(np.linalg.qr(within, mode="r"))
    return Summary(counts, means[:, :-1], means[:, -1], triangle, len(data.outcome))


def group_means(values: Array, group: Places, counts: Array) -> Array:
    """Return the mean of each column in each group, shape (groups, columns)."""
    sums = np.zeros((len(counts), values.shape[1]))
    np.add.at(sums, group, values)
    return np.asarray(sums / counts[:, None])
