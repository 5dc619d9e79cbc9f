"""The data of the prediction of lab outcomes: a row per observation, and sufficient statistics of all rows.

Game metrics and benchmark scores are constant within a model, and the other covariates enter linearly. So the rows say
nothing beyond a mean per model and one triangle for all that varies within models, exactly (`summarise`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from labmates.errors import UsageError
from labmates.stats.arrays import Array

Places = NDArray[np.intp]
_FACTORS: Final[Mapping[str, tuple[str, str]]] = {
    "task": ("task: {}", "anomaly"),
    "difficulty": ("difficulty: {}", "medium"),
    "visibility": ("visibility: {}", "full"),
    "team_size": ("team size = {}", "2"),
}
"""What a column of each value of a factor is called, and the value that others are compared with."""
_NO_PART: Final = frozenset({"budget", "theory_of_mind", *_FACTORS})
_TRUE: Final = ("true", "1", "yes")


@dataclass(frozen=True)
class Scale:
    """The standardisation of a column: (value - centre) / spread."""

    centre: Array
    spread: Array

    def __call__(self, values: Array) -> Array:
        """Values on that scale."""
        return np.asarray((values - self.centre) / self.spread)


def standardised(values: Array) -> tuple[Array, Scale]:
    """Columns with mean 0 and standard deviation 1 (that of the sample itself), and how to do it to others."""
    scale = Scale(values.mean(axis=0), values.std(axis=0))
    return scale(values), scale


@dataclass(frozen=True)
class Runs:
    """The runs behind observations, each on a data set that a seed fixes; r runs, d data sets.

    Attributes
    ----------
    data_sets
        What tells apart those on which several models worked, such as task and seed; length d.
    observation
        Place of the observation of each run, shape (r,).
    data_set
        Place of its data set, shape (r,); d where no other model worked on it.
    outcome
        Shape (r,); the mean over the runs of an observation is that of the observation.
    """

    data_sets: tuple[str, ...]
    observation: Places
    data_set: Places
    outcome: Array

    @property
    def member(self) -> Array:
        """1 where a run worked on a data set, shape (r, d); nowhere where no other model worked on its own."""
        return np.asarray(np.eye(len(self.data_sets) + 1)[self.data_set][:, :-1])

    def shares(self, observations: int) -> Array:
        """Each observation's shares of data sets, shape (observations, d)."""
        counts = np.bincount(self.observation, minlength=observations).astype(float)
        return group_means(self.member, self.observation, counts)


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
    factors
        The factor of each column, such as task for all columns of tasks; by default each column is one by itself.
    runs
        None where data sets are not known, or not shared between models.
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
    factors: tuple[str, ...] = ()
    runs: Runs | None = None

    def __post_init__(self) -> None:
        if not self.factors:
            object.__setattr__(self, "factors", self.columns)

    def without(self, model: int) -> PredictionData:
        """The data without one model, by its place; scales stay as they are."""
        kept = np.arange(len(self.models)) != model
        rows = kept[self.model_of]
        runs = self.runs
        if runs is not None:
            mine = rows[runs.observation]
            place = np.cumsum(rows) - 1
            runs = Runs(runs.data_sets, place[runs.observation[mine]], runs.data_set[mine], runs.outcome[mine])
        return replace(
            self,
            models=tuple(name for name, stays in zip(self.models, kept, strict=True) if stays),
            levels=self.levels[kept],
            errors=self.errors[kept],
            benchmarks=self.benchmarks[kept],
            model_of=(np.cumsum(kept) - 1)[self.model_of[rows]],
            conditions=self.conditions[rows],
            outcome=self.outcome[rows],
            runs=runs,
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

    @cached_property
    def within(self) -> tuple[Array, float, int]:
        """Least squares within models: the coefficients of conditions, the sum of squares left, and the rank."""
        across, along = self.triangle[:, :-1], self.triangle[:, -1]
        columns, _, rank, _ = np.linalg.lstsq(across, along, rcond=None)
        return columns, float(((along - across @ columns) ** 2).sum()), int(rank)


def summarise(data: PredictionData) -> Summary:
    """The sufficient statistics of the rows.

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
    """The mean of each column in each group, shape (groups, columns)."""
    sums = np.zeros((len(counts), values.shape[1]))
    np.add.at(sums, group, values)
    return np.asarray(sums / counts[:, None])


def condition_columns(conditions: Sequence[Mapping[str, Any]], notes: list[str]) -> tuple[dict[str, str], Array]:
    """The columns of some observations, each with its factor, and their values, shape (n, columns).

    What they lack is added to notes.

    The logarithm of the budget on the scale of standard deviations, one column for each value of task, difficulty,
    visibility and team size but that which others are compared with, and theory of mind (cooperative-profiles paper,
    section 4.1.2). What is the same for all has no column.

    Raises
    ------
    UsageError
        If a budget is no positive number.
    """
    n = len(conditions)
    names: dict[str, str] = {}
    columns: list[Array] = []
    if all("budget" in one for one in conditions):
        budgets = np.log([_positive(one["budget"]) for one in conditions])
        # Not by the standard deviation: that of equal numbers is a rounding error, and would be blown up to a column.
        if np.ptp(budgets) > 0:
            names, columns = {"log(budget)": "budget"}, [standardised(budgets)[0]]
    elif any("budget" in one for one in conditions):
        notes.append("The budget is not known of all lab runs, so the model does not control for it.")
    for factor, (pattern, usual) in _FACTORS.items():
        values = [str(one.get(factor, "")) for one in conditions]
        there = sorted(set(values))
        if factor == "task" and len(there) == 1 and there[0]:
            notes.append(f"One task only, {there[0]}: results may not hold for other tasks.")
        reference = usual if usual in there else there[0]
        for value in there:
            if value != reference:
                names[pattern.format(value or "not given")] = factor
                columns.append(np.array([one == value for one in values], dtype=float))
    minds = np.array([str(one.get("theory_of_mind", "")).lower() in _TRUE for one in conditions], dtype=float)
    if minds.std() > 0:
        names["theory of mind"] = "theory of mind"
        columns.append(minds)
    others = [name for name in dict.fromkeys(key for one in conditions for key in one) if name not in _NO_PART]
    differ = [name for name in others if len({json.dumps(one.get(name), default=str) for one in conditions}) > 1]
    if differ:
        notes.append(f"Lab runs also differ in {', '.join(differ)}, which the model does not control for.")
    return names, np.column_stack(columns) if columns else np.empty((n, 0))


def _positive(text: object) -> float:
    try:
        value = float(str(text))
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UsageError(f"the budget of a lab run must be a positive number of dollars, not '{text}'")
    return value
