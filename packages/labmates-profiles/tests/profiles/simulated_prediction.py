"""Simulated studies of the prediction of lab outcomes, with the published coefficients.

Assumptions where the paper gives no value: dispositions correlate at 0.2 with each other, those of the common pool with
and without sanctions more (a parameter); a fifth of their variance is related to the models' size; standard errors are
log-uniform over the paper's range; conditions are uniform, except team size and theory of mind, whose first value was
more frequent according to the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.prediction.data import Places, PredictionData, Runs, standardised
from labmates_profiles.prediction.design_matrix import CONTROLS, GAME_ORDER
from labmates_profiles.prediction.fit import INTERCEPT, NOISE
from labmates_profiles.prediction.published import PUBLISHED

COLUMNS: Final = (
    "log(budget)",
    "task: biomarker",
    "task: ecology",
    "task: geospatial",
    "visibility: team",
    "visibility: hidden",
    "team size = 3",
    "theory of mind",
)
FACTORS: Final = ("budget", *["task"] * 3, *["visibility"] * 2, "team_size", "theory of mind")
"""The factor of each column."""
CORRELATION_OF_CONTROLS: Final = (
    (1.0, 0.52, 0.42, 0.29),
    (0.52, 1.0, 0.79, 0.43),
    (0.42, 0.79, 1.0, 0.20),
    (0.29, 0.43, 0.20, 1.0),
)
"""Correlations of the paper's 34 models (Table 8)."""
MODELS: Final = 34
OBSERVATIONS: Final = 1462
SMALLEST_ERROR, LARGEST_ERROR = 0.001, 0.35
"""Standard errors of game metrics, in standard deviations between models (paper, section 4.1.2)."""
_BUDGETS = (0.5, 1.0, 2.5, 5.0, 10.0)
_SECOND = 0.12, 0.31
"""Proportions of teams of three, and of prompts with theory of mind."""
_WITH_SIZE = (-0.3, -1.0, 0.5, -1.0, -1.0, 0.5)
_BETWEEN_GAMES = 0.2


@dataclass(frozen=True)
class Coefficients:
    """True coefficients of one outcome, in the order of `GAME_ORDER`, `CONTROLS` and `COLUMNS`."""

    intercept: float
    games: tuple[float, ...]
    controls: tuple[float, ...]
    columns: tuple[float, ...]
    noise: float


def published(outcome: str) -> Coefficients:
    """The paper's coefficients; 0 for the visibility of the own team only, of which it gives none."""
    means = PUBLISHED[outcome]
    games, controls, columns = (
        tuple(means.get(name, 0.0) for name in names) for names in (GAME_ORDER, CONTROLS, COLUMNS)
    )
    return Coefficients(means[INTERCEPT], games, controls, columns, means[NOISE])


@dataclass(frozen=True)
class World:
    """Further features of a simulated study; by default none, as in the paper.

    Attributes
    ----------
    reactions
        Standard deviation of the models' own reactions, by factor: of each level of a factor with more than two levels,
        otherwise of the effect.
    shift
        Standard deviation of the shifts of data sets.
    data_sets
        Number of data sets per task; each observation is the mean of a run on each. 0: data sets are unknown.
    freedom
        Degrees of freedom of Student's t for all differences between models; by default they are normal.
    """

    reactions: Mapping[str, float] = field(default_factory=dict)
    shift: float = 0.0
    data_sets: int = 0
    freedom: float | None = None


@dataclass(frozen=True)
class Simulated:
    """A simulated study and its true parameters.

    Attributes
    ----------
    dispositions
        θ, shape (models, games).
    truth
        The simulated coefficients.
    between
        ω.
    expected
        α + β'θ + δ'b + u of each model, shape (models,).
    """

    data: PredictionData
    dispositions: Array
    truth: Coefficients
    between: float
    expected: Array


def simulate_prediction(
    rng: np.random.Generator,
    outcome: str = "quality",
    *,
    effects: Sequence[float] | None = None,
    controls: Sequence[float] | None = None,
    between: float = 0.0,
    correlation: float = 0.8,
    models: int = MODELS,
    observations: int | Sequence[int] = OBSERVATIONS,
    benchmarks: Array | None = None,
    world: World | None = None,
) -> Simulated:
    """Simulate one study with six games (cooperative-profiles paper, section 4.1.2 and Table 7).

    Parameters
    ----------
    outcome
        One of `PUBLISHED`.
    effects
        Effects of the games instead of the published ones; zeros simulate the null hypothesis.
    controls
        Effects of the controls instead of the published ones.
    between
        ω over τ: residual differences between models, in standard deviations of the noise.
    correlation
        Of the dispositions in the common pool with and without sanctions, at least -0.2 and below 1.
    models
        Number of models; the length of `benchmarks` if given.
    observations
        In total, or of each model.
    benchmarks
        Controls as in `CONTROLS`, shape (models, 4); by default drawn with the correlations of the paper's models.
    world
        Further features.

    Returns
    -------
    Simulated
        Outcomes are not limited to between 0 and 1, as in the model.
    """
    world = world or World()
    truth = published(outcome)
    truth = truth if effects is None else replace(truth, games=tuple(map(float, effects)))
    truth = truth if controls is None else replace(truth, controls=tuple(map(float, controls)))
    drawn = rng.multivariate_normal(np.zeros(4), CORRELATION_OF_CONTROLS, models) if benchmarks is None else benchmarks
    traits, _ = standardised(np.asarray(drawn, dtype=float))
    dispositions = _dispositions(rng, traits, correlation)
    errors = np.exp(rng.uniform(np.log(SMALLEST_ERROR), np.log(LARGEST_ERROR), dispositions.shape))
    counts = _counts(rng, models, observations)
    columns = _columns(rng, int(counts.sum()))
    model_of = np.repeat(np.arange(models), counts)
    omega = between * truth.noise
    expected = truth.intercept + dispositions @ truth.games + traits @ truth.controls
    expected += omega * _between(rng, world, models)
    levels = dispositions + rng.standard_normal(dispositions.shape) * errors
    means = expected[model_of] + columns @ truth.columns + _reactions(rng, world, columns, model_of)
    means += rng.normal(0, truth.noise, len(model_of))
    outcomes, runs = _on_data_sets(rng, world, truth.noise, columns, means)
    data = PredictionData(
        models=tuple(f"model-{place + 1}" for place in range(models)),
        games=GAME_ORDER,
        controls=CONTROLS,
        columns=COLUMNS,
        levels=levels,
        errors=errors,
        benchmarks=traits,
        model_of=model_of,
        conditions=columns,
        outcome=outcomes,
        factors=FACTORS,
        runs=runs,
    )
    return Simulated(data, dispositions, truth, omega, expected)


def _between(rng: np.random.Generator, world: World, *shape: int) -> Array:
    """Standardised differences between models."""
    return rng.standard_normal(shape) if world.freedom is None else rng.standard_t(world.freedom, shape)


def _reactions(rng: np.random.Generator, world: World, columns: Array, model_of: Places) -> Array:
    reactions = np.zeros(len(columns))
    for factor, deviation in world.reactions.items():
        values = columns[:, [at for at, name in enumerate(FACTORS) if name == factor]]
        if values.shape[1] > 1:
            values = np.column_stack([1 - values.sum(axis=1), values])
        own = deviation * _between(rng, world, model_of.max() + 1, values.shape[1])
        reactions += (values * own[model_of]).sum(axis=1)
    return reactions


def _on_data_sets(
    rng: np.random.Generator, world: World, noise: float, columns: Array, means: Array
) -> tuple[Array, Runs | None]:
    """Outcomes of observations, and of a run on each data set of the task."""
    each = world.data_sets
    if not each:
        return means, None
    tasks = [at for at, name in enumerate(FACTORS) if name == "task"]
    task = columns[:, tasks] @ np.arange(1, len(tasks) + 1)
    names = tuple(f"{at}/{seed}" for at in range(len(tasks) + 1) for seed in range(each))
    observation = np.repeat(np.arange(len(means)), each)
    data_set = (task.astype(int)[:, None] * each + np.arange(each)).ravel()
    # The noise of an observation is already in its mean; the runs deviate around it.
    around = rng.normal(0, noise, (len(means), each))
    around -= around.mean(axis=1, keepdims=True)
    shifts = rng.normal(0, world.shift, len(names))
    values = means[observation] + around.ravel() + shifts[data_set]
    return values.reshape(-1, each).mean(axis=1), Runs(names, observation, data_set, values)


def _dispositions(rng: np.random.Generator, controls: Array, correlation: float) -> Array:
    matrix = np.full((6, 6), _BETWEEN_GAMES)
    np.fill_diagonal(matrix, 1)
    matrix[3, 4] = matrix[4, 3] = correlation
    own = rng.multivariate_normal(np.zeros(6), matrix, len(controls))
    size = controls[:, [CONTROLS.index("log(size)")]]
    return standardised(own * np.sqrt(0.8) + np.sqrt(0.2) * size * np.array(_WITH_SIZE))[0]


def _counts(rng: np.random.Generator, models: int, observations: int | Sequence[int]) -> Array:
    if not isinstance(observations, int):
        return np.asarray(observations, dtype=int)
    # Models of the paper have between 11 and 145 conditions each (Table 10).
    shares = rng.uniform(11, 145, models)
    counts = np.asarray(np.maximum(1, np.floor(shares / shares.sum() * observations).astype(int)))
    counts[: max(0, observations - int(counts.sum()))] += 1
    return counts


def _columns(rng: np.random.Generator, n: int) -> Array:
    budget, _ = standardised(np.log(rng.choice(_BUDGETS, n)))
    task, visibility = rng.integers(4, size=n), rng.integers(3, size=n)
    larger, mind = (rng.random(n) < share for share in _SECOND)
    tasks = [task == place for place in (1, 2, 3)]
    return np.column_stack([budget, *tasks, visibility == 1, visibility == 2, larger, mind]).astype(float)
