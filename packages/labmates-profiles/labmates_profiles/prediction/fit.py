"""Fits of the model that predicts lab outcomes from game dispositions, by importance sampling.

See `labmates_profiles.prediction.density` for the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.bayes.importance import DRAWS, Target, climb, one_thread, sample
from labmates_profiles.bayes.posterior import Posterior, from_sample
from labmates_profiles.prediction import Form
from labmates_profiles.prediction.data import PredictionData
from labmates_profiles.prediction.density import Collapsed
from labmates_profiles.prediction.reactions import Reactions

INTERCEPT, NOISE, BETWEEN = "intercept", "tau", "omega"
DEVIATION, DATA_SET, RUN = "sd:", "data set", "run"
"""Prefix of the names of standard deviations of random terms, and the terms that are not factors."""
COMPETING = 10.0
"""Modes whose log densities differ by less (in nats) may both hold considerable mass."""
FAR = 5.0
"""Size of the effects at the spurious mode: two of them cancel out, and measurement errors of games mimic differences
between models."""
STARTS = 4
_LEAST_NOISE = 1e-6
_FALL = 0.1
"""Standard deviation of the density beyond the box, in units of each coordinate's scale."""
_FARTHEST = 50.0
"""Bound of the search for effects and standard deviations; the priors have scales of 0.5 to 2."""
_UNTOLD = 0.2
"""Scale of a standard deviation without information in the data, so its posterior is the prior."""
_BATCH = 300_000
_APART = 6.0
"""Two modes are distinct if an effect differs by this number of its standard errors."""


@dataclass(frozen=True)
class Mode:
    """A local maximum: the effects, and its distance in nats below the highest mode."""

    effects: tuple[float, ...]
    below: float


@dataclass(frozen=True)
class PredictionFit:
    """A fitted model of one outcome.

    Attributes
    ----------
    posterior
        Of the intercept, the effects of games, controls and columns by their names, ``tau``, and the population of
        dispositions, ``mu: GAME`` and ``sigma: GAME``. Except in the form `paper` also ``omega``, ``sd:FACTOR`` of the
        models' own reactions to conditions, and, if data sets are known, ``sd:data set`` and ``sd:run``.
    correlation
        Of dispositions, shape (g, g); None if they are independent.
    shifts, turn
        Draws of the effects of data sets on observations (c of
        `labmates_profiles.prediction.reactions.Shifts`), shape (draws, r), and the matrix from shifts to c,
        shape (r, data sets).
    average
        Contribution of the study's mix of conditions and data sets to a model's expected score, by draw.
    own_average, own_condition
        The variance between models from their own reactions, over this mix and under a single condition of it, by draw.
    modes
        The highest first.
    warnings
        Doubts about the fit, each with a remedy.
    """

    form: Form
    data: PredictionData
    posterior: Posterior
    correlation: Array | None
    reactions: Reactions
    shifts: Array
    turn: Array
    average: Array
    own_average: Array
    own_condition: Array
    modes: tuple[Mode, ...]
    warnings: tuple[str, ...]


def fit_prediction(
    data: PredictionData, form: Form = "robust", *, draws: int = DRAWS, seed: int = 0, starts: int = STARTS
) -> PredictionFit:
    """Fit one form of the model to one outcome.

    Parameters
    ----------
    form
        ``paper`` as published, ``robust`` with a random intercept per model, ``correlated`` also with correlated
        dispositions.
    draws
        Independent draws from the posterior.
    starts
        Number of starting points of the search for modes, see `find_modes`; 1 is enough for a unimodal posterior.
    """
    with one_thread():
        model = Collapsed(data, form)
        scale = reach(model)
        modes_found = find_modes(model, scale, starts)
        target = Target(_inside(model, scale), modes_found[0][0], scale, model.nonnegative, batch=batch(model))
        drawn = sample(target, draws=draws, seed=seed)
        linear = model.coefficients(drawn.points, np.random.default_rng([seed, 1]))
    posterior = from_sample(names(model), arranged(model, drawn.points, linear), drawn)
    g = model.games
    modes = tuple(Mode(tuple(map(float, point[:g])), modes_found[0][1] - height) for point, height in modes_found)
    warnings = (*posterior.diagnostics.warnings, *_competing(modes, data))
    mixed = mixture(model, drawn.points, linear)
    shifts = linear[:, model.linear - model.shift_size :]
    turn = model.shifts.turn if model.shifts else np.empty((0, 0))
    return PredictionFit(
        form, data, posterior, model.correlation, model.reactions, shifts, turn, *mixed, modes, warnings
    )


def _inside(model: Collapsed, scale: Array) -> Callable[[Array], Array]:
    """The log density, with a steep decline outside of `search_box`.

    It stays finite there: outcomes without noise have their mode on the edge of the box, where its curvature is needed.
    """
    least, most = search_box(model)

    def log_density(points: Array) -> Array:
        nearest = np.clip(points, least, most)
        beyond = (points - nearest) / (_FALL * scale)
        return np.asarray(model.log_density(nearest) - 0.5 * (beyond**2).sum(axis=1))

    return log_density


def mixture(model: Collapsed, points: Array, linear: Array) -> tuple[Array, Array, Array]:
    """`average`, `own_average` and `own_condition` of a fit, each of shape (n,)."""
    data, reactions = model.data, model.reactions
    columns = np.hstack([data.conditions, *([model.shifts.columns] if model.shifts else [])])
    first = model.games + 1
    places = np.r_[first : first + len(data.columns), len(linear.T) - model.shift_size : len(linear.T)]
    terms = (
        np.column_stack([np.ones(len(columns)), data.conditions]) @ reactions.terms.reshape(-1, 1 + len(data.columns)).T
    )
    variances = model.parts(points).reactions[:, list(reactions.factor)] ** 2
    own = (variances @ terms.mean(axis=0) ** 2, variances @ (terms**2).mean(axis=0))
    return linear[:, places] @ columns.mean(axis=0), *own


def batch(model: Collapsed) -> int:
    """The number of points per evaluation of the density, few enough for a processor's cache."""
    return max(20, _BATCH // (len(model.data.models) * (2 + len(model.reactions.terms)) ** 2))


def names(model: Collapsed) -> tuple[str, ...]:
    """The names of all parameters, in the order of `arranged`."""
    data = model.data
    called = {"between": BETWEEN, "shift": DEVIATION + DATA_SET, "run": DEVIATION + RUN}
    hyper = (NOISE, *(called.get(name, DEVIATION + name) for name in model.tail))
    population = (*(f"mu: {game}" for game in data.games), *(f"sigma: {game}" for game in data.games))
    return (INTERCEPT, *data.games, *data.controls, *data.columns, *hyper, *population)


def arranged(model: Collapsed, points: Array, linear: Array) -> Array:
    """Parameters in the order of `names`, from points of the density and draws of the linear coefficients."""
    hyper = model.parts(points)
    g, q = model.games, len(model.data.columns)
    end = g + 1 + q + len(model.data.controls)
    mu, intercept, columns, controls, _ = np.split(linear, [g, g + 1, g + 1 + q, end], axis=1)
    tail = points[:, 2 * g + 1 :].copy()
    if "run" in model.tail:
        tail[:, -1] = hyper.run
    return np.column_stack([intercept, hyper.effect, controls, columns, hyper.noise, tail, mu, hyper.spread])


def find_modes(model: Collapsed, scale: Array, starts: int = STARTS) -> list[tuple[Array, float]]:
    """The distinct modes of several starts, with their log densities, the highest first.

    The form `paper` has a second mode, hundreds of nats lower, in which two effects of about 5 and opposite sign cancel
    out. Chains that start near it stay there and agree with each other. So the starts are least squares, no effects,
    and on purpose a point near that mode; the density decides.
    """
    modes: list[tuple[Array, float]] = []
    for start in _starts(model)[:starts]:
        point, height = _climb(model, start, scale)
        g = model.games
        known = (np.abs(point[:g] - other[:g]) < _APART * scale[:g] for other, _ in modes)
        place = next((at for at, same in enumerate(known) if same.all()), None)
        if place is None:
            modes.append((point, height))
        elif height > modes[place][1]:
            modes[place] = (point, height)
    return sorted(modes, key=lambda mode: -mode[1])


def reach(model: Collapsed) -> Array:
    """The approximate scale of the posterior in each coordinate of the density."""
    m, g = len(model.data.models), model.games
    effects, left, noise = _least_squares(model)
    spread = np.full(g, 1 / np.sqrt(2 * m))
    error = np.full(g, max(left, noise / 10) / np.sqrt(max(m - len(effects) - 1, 1)))
    freedom = max(model.summary.observations - m, 1)
    each = np.sqrt(max(model.summary.observations / m, 1))
    tail = [max(left, 0.1 * noise) / np.sqrt(m) + 1e-4] if model.tail else []
    tail += [noise / np.sqrt(each * m)] * len(model.reactions.factors)
    if model.shifts is not None:
        tail += [0.2 * noise if model.shifts.told else _UNTOLD]
        tail += [1 / np.sqrt(2 * model.shifts.freedom)] if model.shifts.freedom else []
    return np.concatenate([np.clip(error, 1e-4, 1.0), spread, [1 / np.sqrt(2 * freedom)], tail])


def _least_squares(model: Collapsed) -> tuple[Array, float, float]:
    """Effects of games on adjusted means, the residual standard deviation between models, and τ."""
    data, summary = model.data, model.summary
    columns, left_within, _ = summary.within
    freedom = max(summary.observations - len(data.models), 1)
    noise = float(np.sqrt(max(left_within / freedom, 1e-8)))
    means = summary.outcome_means - summary.condition_means @ columns
    design = np.column_stack([np.ones(len(means)), data.levels, data.benchmarks])
    # A little ridge: there may be hardly more models than predictors.
    penalty = np.diag([0.0] + [1e-3] * (design.shape[1] - 1))
    solution = np.linalg.solve(design.T @ design + penalty, design.T @ means)
    left = float(np.std(means - design @ solution))
    return np.asarray(solution[1 : 1 + model.games]), left, noise


def _starts(model: Collapsed) -> list[Array]:
    g = model.games
    effects, left, noise = _least_squares(model)
    spread = np.maximum(model.data.levels.std(axis=0), 0.1)
    tail = [max(left, 0.2 * noise)] if model.tail else []
    tail += [0.3 * noise] * len(model.reactions.factors)
    if model.shifts is not None:
        tail += [0.3 * noise if model.shifts.told else _UNTOLD]
        tail += [np.log(model.shifts.noise)] if model.shifts.freedom else []
    usual = [effects, np.zeros(g)]
    if g > 1:
        together = np.abs(np.corrcoef(model.data.levels.T)) - np.eye(g)
        first, second = np.unravel_index(int(together.argmax()), together.shape)
        far = effects.copy()
        far[first], far[second] = FAR, -FAR
        usual += [far, effects * 2 - far]
    return [np.concatenate([start, spread, [np.log(noise)], tail]) for start in usual]


def search_box(model: Collapsed) -> tuple[Array, Array]:
    """The lower and upper bounds of the search for modes, by coordinate of the density.

    A step along a line may be long. Beyond this box the priors leave no mass, and numbers overflow.
    """
    most = np.full(model.size, _FARTHEST)
    most[2 * model.games] = np.log(_FARTHEST)
    least = -most
    least[2 * model.games] = np.log(_LEAST_NOISE)
    if "run" in model.tail:
        most[-1], least[-1] = np.log(_FARTHEST), np.log(_LEAST_NOISE)
    return least, most


def _climb(model: Collapsed, start: Array, scale: Array) -> tuple[Array, float]:
    def log_density(points: Array) -> Array:
        return model.log_density(np.where(model.nonnegative, np.abs(points), points))

    least, most = search_box(model)
    bounds = list(zip(least / scale, most / scale, strict=True))
    unit, height = climb(log_density, start, scale, most_steps=300, bounds=bounds)
    return np.where(model.nonnegative, np.abs(unit * scale), unit * scale), height


def _competing(modes: tuple[Mode, ...], data: PredictionData) -> list[str]:
    near = [mode for mode in modes[1:] if mode.below < COMPETING]
    if not near:
        return []
    effects = "; ".join(
        ", ".join(f"{game} {effect:+.2f}" for game, effect in zip(data.games, mode.effects, strict=True))
        for mode in (modes[0], *near)
    )
    return [
        f"{len(near) + 1} modes compete, the second only {near[0].below:.1f} nats below the first; draws are from the "
        f"highest only ({effects}). These data do not identify the right solution: use the form robust, "
        "more models, or fewer games."
    ]
