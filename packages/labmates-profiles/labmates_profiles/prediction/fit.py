"""Fits of the model that predicts lab outcomes from game dispositions, by importance sampling.

See `labmates_profiles.prediction.density` for the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.bayes.importance import DRAWS, Target, climb, one_thread, sample
from labmates_profiles.bayes.posterior import Posterior
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
    modes: tuple[Mode, ...]
    warnings: tuple[str, ...]

    @property
    def reacting(self) -> Array:
        """Variance of the models' own reactions, by draw and term, shape (draws, t)."""
        names = [DEVIATION + self.reactions.factors[place] for place in self.reactions.factor]
        return np.asarray(self.posterior.columns(names) ** 2)

    def shifted(self, data: PredictionData) -> Array:
        """Contribution of conditions and data sets to each observation, by draw, shape (draws, n)."""
        conditions = self.posterior.columns(data.columns) @ data.conditions.T
        if data.runs is None or not self.shifts.shape[1]:
            return np.asarray(conditions)
        shares = data.runs.shares(len(data.outcome)) @ self.turn.T
        return np.asarray(conditions + self.shifts[: len(conditions)] @ shares.T)


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
        modes_found = find_modes(model, starts)
        target = Target(_inside(model), modes_found[0][0], _search(model)[1], model.nonnegative, batch=batch(model))
        points, diagnostics = sample(target, draws=draws, seed=seed)
        linear = model.coefficients(points, np.random.default_rng([seed, 1]))
    posterior = Posterior(names(model), arranged(model, points, linear), diagnostics)
    modes = tuple(
        Mode(tuple(map(float, point[: model.games])), modes_found[0][1] - height) for point, height in modes_found
    )
    warnings = (*posterior.diagnostics.warnings, *_competing(modes, data))
    shifts = linear[:, model.linear - model.shift_size :], model.shifts.turn
    return PredictionFit(form, data, posterior, model.correlation, model.reactions, *shifts, modes, warnings)


def _inside(model: Collapsed) -> Callable[[Array], Array]:
    """The log density, with a steep decline outside of `search_box`.

    It stays finite there: outcomes without noise have their mode on the edge of the box, where its curvature is needed.
    """
    (least, most), scale = search_box(model), _search(model)[1]

    def log_density(points: Array) -> Array:
        nearest = np.clip(points, least, most)
        beyond = (points - nearest) / (_FALL * scale)
        return np.asarray(model.log_density(nearest) - 0.5 * (beyond**2).sum(axis=1))

    return log_density


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
    values = np.where(model.logarithms, np.exp(np.where(model.logarithms, points, 0)), points)
    g, q = model.games, len(model.data.columns)
    end = g + 1 + q + len(model.data.controls)
    mu, intercept, columns, controls, _ = np.split(linear, [g, g + 1, g + 1 + q, end], axis=1)
    return np.column_stack([intercept, values[:, :g], controls, columns, values[:, 2 * g :], mu, values[:, g : 2 * g]])


def find_modes(model: Collapsed, starts: int = STARTS) -> list[tuple[Array, float]]:
    """The distinct modes of several starts, with their log densities, the highest first.

    The form `paper` has a second mode, hundreds of nats lower, in which two effects of about 5 and opposite sign cancel
    out. Chains that start near it stay there and agree with each other. So the starts are least squares, no effects,
    and on purpose a point near that mode; the density decides.
    """
    g, (start, scale) = model.games, _search(model)
    effects = [start[:g], np.zeros(g)]
    if g > 1:
        together = np.abs(np.corrcoef(model.data.levels.T)) - np.eye(g)
        far = start[:g].copy()
        far[list(np.unravel_index(int(together.argmax()), together.shape))] = FAR, -FAR
        effects += [far, start[:g] * 2 - far]
    modes: list[tuple[Array, float]] = []
    for own in effects[:starts]:
        point, height = _climb(model, np.concatenate([own, start[g:]]), scale)
        known = (np.abs(point[:g] - other[:g]) < _APART * scale[:g] for other, _ in modes)
        place = next((at for at, same in enumerate(known) if same.all()), None)
        if place is None:
            modes.append((point, height))
        elif height > modes[place][1]:
            modes[place] = (point, height)
    return sorted(modes, key=lambda mode: -mode[1])


def _search(model: Collapsed) -> tuple[Array, Array]:
    """The start of the search for modes by least squares, and the rough scale of the posterior, by coordinate."""
    m, g, n = len(model.data.models), model.games, len(model.data.outcome)
    effects, left, noise = _least_squares(model)
    error = max(left, noise / 10) / np.sqrt(max(m - g - 1, 1))
    pairs = [(effect, np.clip(error, 1e-4, 1.0)) for effect in effects]
    pairs += [(spread, 1 / np.sqrt(2 * m)) for spread in np.maximum(model.data.levels.std(axis=0), 0.1)]
    pairs += [(np.log(noise), 1 / np.sqrt(2 * max(n - m, 1)))]
    if model.tail:
        pairs += [(max(left, 0.2 * noise), max(left, 0.1 * noise) / np.sqrt(m) + 1e-4)]
        pairs += [(0.3 * noise, noise / np.sqrt(np.sqrt(max(n / m, 1)) * m))] * len(model.reactions.factors)
    if "shift" in model.tail:
        pairs += [(0.3 * noise, 0.2 * noise) if model.shifts.told else (_UNTOLD, _UNTOLD)]
    if model.shifts.freedom:
        pairs += [(np.log(model.shifts.noise), 1 / np.sqrt(2 * model.shifts.freedom))]
    start, scale = np.array(pairs, dtype=float).T
    return start, scale


def _least_squares(model: Collapsed) -> tuple[Array, float, float]:
    """Effects of games on adjusted means, the residual standard deviation between models, and τ."""
    data = model.data
    columns, left_within, _ = data.within
    freedom = max(len(data.outcome) - len(data.models), 1)
    noise = float(np.sqrt(max(left_within / freedom, 1e-8)))
    conditions, outcomes = data.means
    means = outcomes - conditions @ columns
    design = np.column_stack([np.ones(len(means)), data.levels, data.benchmarks])
    # A little ridge: there may be hardly more models than predictors.
    penalty = np.diag([0.0] + [1e-3] * (design.shape[1] - 1))
    solution = np.linalg.solve(design.T @ design + penalty, design.T @ means)
    left = float(np.std(means - design @ solution))
    return np.asarray(solution[1 : 1 + model.games]), left, noise


def search_box(model: Collapsed) -> tuple[Array, Array]:
    """The lower and upper bounds of the search for modes, by coordinate of the density.

    A step along a line may be long. Beyond this box the priors leave no mass, and numbers overflow.
    """
    least = np.where(model.logarithms, np.log(_LEAST_NOISE), -_FARTHEST)
    return least, np.where(model.logarithms, np.log(_FARTHEST), _FARTHEST)


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
