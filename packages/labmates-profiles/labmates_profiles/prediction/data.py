"""The data of the prediction of lab outcomes: values of models, and a row per observation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from labmates.errors import UsageError
from labmates_profiles.arrays import Array

Places = NDArray[np.intp]
FACTORS: Final[Mapping[str, tuple[str, str]]] = {
    "task": ("task: {}", "anomaly"),
    "difficulty": ("difficulty: {}", "medium"),
    "visibility": ("visibility: {}", "full"),
    "team_size": ("team size = {}", "2"),
}
"""The name of the column of each value of a factor, and the reference value."""
_NO_PART: Final = frozenset({"budget", "theory_of_mind", *FACTORS})
_TRUE: Final = ("true", "1", "yes")


@dataclass(frozen=True)
class Scale:
    """The standardisation of a column: (value - centre) / spread."""

    centre: Array
    spread: Array

    def __call__(self, values: Array) -> Array:
        """The standardised values."""
        return np.asarray((values - self.centre) / self.spread)


def standardised(values: Array) -> tuple[Array, Scale]:
    """Columns with mean 0 and standard deviation 1 (of the sample itself), and the scale, for other values."""
    scale = Scale(values.mean(axis=0), values.std(axis=0))
    return scale(values), scale


@dataclass(frozen=True)
class Runs:
    """The runs behind the observations, each on the data set of its seed; r runs, d data sets.

    Attributes
    ----------
    data_sets
        Labels of the data sets that several models share, such as task and seed; length d.
    observation
        Index of the observation of each run, shape (r,).
    data_set
        Index of its data set, shape (r,); d if no other model worked on it.
    outcome
        Shape (r,); the outcome of an observation is the mean over its runs.
    """

    data_sets: tuple[str, ...]
    observation: Places
    data_set: Places
    outcome: Array

    @property
    def member(self) -> Array:
        """Indicator of the data set of each run, shape (r, d); a row of zeros if no other model worked on it."""
        return np.asarray(np.eye(len(self.data_sets) + 1)[self.data_set][:, :-1])

    def shares(self, observations: int) -> Array:
        """Each observation's proportions of data sets, shape (observations, d)."""
        counts = np.bincount(self.observation, minlength=observations).astype(float)
        return group_means(self.member, self.observation, counts)


@dataclass(frozen=True)
class PredictionData:
    """The models with a profile and lab runs, and their results on one outcome.

    There are m models, n observations, g games, c controls, q columns.

    Attributes
    ----------
    models
        Names, length m.
    games
        Names, length g.
    controls
        Covariates of models, such as benchmark scores; names, length c.
    columns
        Covariates that vary within a model, such as the task; names, length q.
    levels
        Observed primary metrics in standard deviations between models, shape (m, g).
    errors
        Their standard errors, in the same unit, shape (m, g).
    benchmarks
        Controls in standard deviations, shape (m, c).
    model_of
        Index of the model of each observation, shape (n,).
    conditions
        Shape (n, q).
    outcome
        Shape (n,).
    factors
        The factor of each column, such as task for all columns of tasks; by default each column is its own factor.
    runs
        None if data sets are unknown or not shared between models.
    families
        The share of each family in each model, or team of several, shape (m, families); by default each model is its
        own family.
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
    families: Array = field(default_factory=lambda: np.empty((0, 0)))

    def __post_init__(self) -> None:
        if not self.factors:
            object.__setattr__(self, "factors", self.columns)
        if not len(self.families):
            object.__setattr__(self, "families", np.eye(len(self.models)))

    @cached_property
    def counts(self) -> Array:
        """Observations of each model, shape (m,)."""
        return np.bincount(self.model_of, minlength=len(self.models)).astype(float)

    @cached_property
    def means(self) -> tuple[Array, Array]:
        """Each model's mean conditions, shape (m, q), and mean outcome, shape (m,)."""
        means = group_means(np.column_stack([self.conditions, self.outcome]), self.model_of, self.counts)
        return means[:, :-1], means[:, -1]

    @cached_property
    def within(self) -> tuple[Array, float, int]:
        """Least squares within models: the coefficients of conditions, the residual sum of squares, and the rank."""
        conditions, outcome = self.means
        away = np.column_stack([self.conditions - conditions[self.model_of], self.outcome - outcome[self.model_of]])
        triangle = np.asarray(np.linalg.qr(away, mode="r"))
        across, along = triangle[:, :-1], triangle[:, -1]
        columns, _, rank, _ = np.linalg.lstsq(across, along, rcond=None)
        return columns, float(((along - across @ columns) ** 2).sum()), int(rank)

    def without(self, model: int) -> PredictionData:
        """The data without the model of this index, on unchanged scales."""
        remaining = np.arange(len(self.models)) != model
        rows = remaining[self.model_of]
        runs = self.runs
        if runs is not None:
            selected = rows[runs.observation]
            place = np.cumsum(rows) - 1
            runs = Runs(
                runs.data_sets, place[runs.observation[selected]], runs.data_set[selected], runs.outcome[selected]
            )
        return replace(
            self,
            models=tuple(np.array(self.models)[remaining].tolist()),
            families=self.families[remaining][:, self.families[remaining].any(axis=0)],
            levels=self.levels[remaining],
            errors=self.errors[remaining],
            benchmarks=self.benchmarks[remaining],
            model_of=(np.cumsum(remaining) - 1)[self.model_of[rows]],
            conditions=self.conditions[rows],
            outcome=self.outcome[rows],
            runs=runs,
        )


def group_means(values: Array, group: Places, counts: Array) -> Array:
    """The mean of each column in each group, shape (groups, columns)."""
    sums = np.zeros((len(counts), values.shape[1]))
    np.add.at(sums, group, values)
    return np.asarray(sums / counts[:, None])


def condition_columns(conditions: Sequence[Mapping[str, Any]], notes: list[str]) -> tuple[dict[str, str], Array]:
    """The columns of observations, each with its factor, and their values, shape (n, columns).

    The columns are the standardised logarithm of the budget, an indicator of each value of task, difficulty, visibility
    and team size except the reference value, and theory of mind (cooperative-profiles paper, section 4.1.2). Constant
    columns are omitted, gaps are added to the notes. A budget that is not a positive number is a UsageError.
    """
    n = len(conditions)
    names: dict[str, str] = {}
    columns: list[Array] = []
    if all("budget" in condition for condition in conditions):
        budgets = np.log([_positive(condition["budget"]) for condition in conditions])
        # Not by the standard deviation: for equal numbers it is a rounding error, which standardising would blow up.
        if np.ptp(budgets) > 0:
            names, columns = {"log(budget)": "budget"}, [standardised(budgets)[0]]
    elif any("budget" in condition for condition in conditions):
        notes.append("The budget of some lab runs is unknown, so the model does not control for it.")
    for factor, (pattern, usual) in FACTORS.items():
        values = [str(condition.get(factor, "")) for condition in conditions]
        present = sorted(set(values))
        if factor == "task" and len(present) == 1 and present[0]:
            notes.append(f"One task only, {present[0]}: results may not hold for other tasks.")
        reference = usual if usual in present else present[0]
        for level in present:
            if level != reference:
                names[pattern.format(level or "not given")] = factor
                columns.append(np.array([value == level for value in values], dtype=float))
    minds = np.array(
        [str(condition.get("theory_of_mind", "")).lower() in _TRUE for condition in conditions], dtype=float
    )
    if minds.std() > 0:
        names["theory of mind"] = "theory of mind"
        columns.append(minds)
    others = [
        name for name in dict.fromkeys(key for condition in conditions for key in condition) if name not in _NO_PART
    ]
    differ = [
        name for name in others if len({json.dumps(condition.get(name), default=str) for condition in conditions}) > 1
    ]
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
