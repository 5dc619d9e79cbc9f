"""Fitting the model that predicts lab outcomes from game dispositions, by importance sampling or by NUTS.

See `labmates.workflows.games.prediction.density` for the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labmates.stats.arrays import Array
from labmates.stats.bayes.importance import DRAWS, Target, climb, one_thread, sample
from labmates.stats.bayes.posterior import Posterior, from_sample
from labmates.workflows.games.prediction import Form
from labmates.workflows.games.prediction.data import PredictionData
from labmates.workflows.games.prediction.density import Collapsed
from labmates.workflows.games.prediction.reactions import Reactions

INTERCEPT, NOISE, BETWEEN = "intercept", "tau", "omega"
DEVIATION, DATA_SET, RUN = "sd:", "data set", "run"
"""What stands before the names of standard deviations of random terms, and how those that are no factor are called."""
COMPETING = 10.0
"""Modes whose densities differ by fewer nats than this may both hold mass that matters."""
FAR = 5.0
"""Size of the effects at the mode that is no solution: two of them cancel out, and errors of games pass for differences
between models."""
STARTS = 4
_LEAST_NOISE = 1e-6
_FALL = 0.1
"""Standard deviation of the density beyond the box, in units of the reach of each coordinate."""
_FARTHEST = 50.0
"""No effect or standard deviation is looked for beyond; the priors have scales of 0.5 to 2."""
_UNTOLD = 0.2
"""Reach of a standard deviation of which the data say nothing, so that its prior stands."""
_BATCH = 300_000
_APART = 6.0
"""Two modes differ if an effect does by this number of its standard errors."""


@dataclass(frozen=True)
class Mode:
    """A local maximum: where, and how many nats below the highest one."""

    effects: tuple[float, ...]
    below: float


@dataclass(frozen=True)
class PredictionFit:
    """A fitted model of one outcome.

    Attributes
    ----------
    posterior
        Of the intercept, the effects of games, controls and columns by their names, ``tau``, and of the population of
        dispositions, ``mu: GAME`` and ``sigma: GAME``. But in the form `paper` also ``omega``, ``sd:FACTOR`` of the
        models' own reactions to what varies within them, and ``sd:data set`` and ``sd:run`` where data sets are known.
    correlation
        Of dispositions, shape (g, g); None where they are independent.
    reactions
        The models' own reactions.
    shifts, turn
        Draws of what data sets add to observations (c of `labmates.workflows.games.prediction.reactions.Shifts`), shape
        (draws, r), and what makes c of the shifts, shape (r, data sets).
    average
        What the study's mix of conditions and data sets adds to a model's expected score, a draw each.
    own_average, own_condition
        The variance between models that their own reactions add to a score: over that mix, and under a single condition
        of it, a draw each.
    modes
        All that were found, the highest first.
    warnings
        What is doubtful about the fit, and what to do.
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
        From how many points to look for modes, see `find_modes`; 1 is enough where it is known that there is one.
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
    """The log density, which falls off steeply outside of `search_box`.

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
    """The number of points the density gets at once, few enough for a processor's cache."""
    return max(20, _BATCH // (len(model.data.models) * (2 + len(model.reactions.terms)) ** 2))


def names(model: Collapsed) -> tuple[str, ...]:
    """The names of all parameters, in the order of `arranged`."""
    data = model.data
    called = {"between": BETWEEN, "shift": DEVIATION + DATA_SET, "run": DEVIATION + RUN}
    hyper = (NOISE, *(called.get(name, DEVIATION + name) for name in model.tail))
    population = (*(f"mu: {game}" for game in data.games), *(f"sigma: {game}" for game in data.games))
    return (INTERCEPT, *data.games, *data.controls, *data.columns, *hyper, *population)


def arranged(model: Collapsed, points: Array, linear: Array) -> Array:
    """Parameters in the order of `names`, out of points of the density and what was integrated out there."""
    hyper = model.parts(points)
    g, q = model.games, len(model.data.columns)
    end = g + 1 + q + len(model.data.controls)
    mu, intercept, columns, controls, _ = np.split(linear, [g, g + 1, g + 1 + q, end], axis=1)
    tail = points[:, 2 * g + 1 :].copy()
    if "run" in model.tail:
        tail[:, -1] = hyper.run
    return np.column_stack([intercept, hyper.effect, controls, columns, hyper.noise, tail, mu, hyper.spread])


def find_modes(model: Collapsed, scale: Array, starts: int = STARTS) -> list[tuple[Array, float]]:
    """The distinct modes that several starts lead to, with their log densities, the highest first.

    Notes
    -----
    The form `paper` has a second mode, hundreds of nats lower, in which two effects of about 5 and opposite sign cancel
    out. Chains that start near it stay there and agree with each other. So one starts at least squares, at no effects,
    and on purpose near that mode, and the density says which is right.
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
    return sorted(modes, key=lambda one: -one[1])


def reach(model: Collapsed) -> Array:
    """The approximate reach of the posterior in each coordinate of the density."""
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
    """Effects of games on adjusted means, the standard deviation that they leave between models, and τ."""
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
    return [np.concatenate([one, spread, [np.log(noise)], tail]) for one in usual]


def search_box(model: Collapsed) -> tuple[Array, Array]:
    """The least and the largest of each coordinate of the density between which modes are looked for.

    A step along a line may be long. Beyond this box the priors leave nothing, and numbers overflow.
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
        f"{len(near) + 1} modes compete, the second only {near[0].below:.1f} nats below the first, and draws come from "
        f"around the highest alone ({effects}). These data do not identify the right solution: use the form robust, "
        "more models, or fewer games."
    ]
