"""The posterior density of the prediction model, with all linear coefficients integrated out.

The model, for model i, game g and observation k (cooperative-profiles paper, section 4.1.2):

    ȳ_ig ~ N(θ_ig, SE_ig²)                           observed metric of the game
    θ_i  ~ N(μ, Σ)                                   dispositions
    y_ik ~ N(α + β'θ_i + γ'x_ik + δ'b_i + u_i, τ²)   lab outcome
    u_i  ~ N(0, ω²)                                  residual difference between models

The forms other than `paper` add to the mean of y_ik the models' own reactions to the conditions and the shifts of
data sets that all models share (`labmates_profiles.prediction.reactions`), each with a standard deviation.

Given β, Σ, τ, ω and the other standard deviations, all else is jointly normal: θ, u and reactions are integrated out
model by model, then μ, α, γ, δ and shifts together. For six games, 13 dimensions remain in the form `paper`; the other
forms have one more for ω, one for each factor, and two for data sets and runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.prediction import Form
from labmates_profiles.prediction.data import PredictionData
from labmates_profiles.prediction.dispositions import correlations
from labmates_profiles.prediction.reactions import Reactions, Rows, Shifts, reactions

INTERCEPT: Final = (0.5, 0.5)
"""Mean and standard deviation of the prior of α (paper, section 4.1.2)."""
EFFECT, COVARIATE, CENTRE, SPREAD, NOISE = 1.0, 0.5, 2.0, 2.0, 0.5
"""Standard deviations of β, of γ and δ, of μ; scales of the half-normal priors of σ, and of τ and ω.

Reactions, data sets and runs have the prior of ω."""
_NO_REACTIONS: Final = Reactions((), np.empty((0, 0)), ())


@dataclass(frozen=True)
class Hyper:
    """The coordinates of points of the collapsed density by name; n points, g games.

    Attributes
    ----------
    spread
        Standard deviations of dispositions, shape (n, g).
    effect
        β, shape (n, g).
    noise
        τ, shape (n,).
    between
        ω, shape (n,); 0 in the form `paper`.
    reactions
        Standard deviations of the models' own reactions to each factor, shape (n, factors).
    shift
        Standard deviation of data sets, shape (n,); 0 without this term.
    run
        Standard deviation of runs within an observation, shape (n,); 0 without this term.
    """

    spread: Array
    effect: Array
    noise: Array
    between: Array
    reactions: Array
    shift: Array
    run: Array


class Collapsed:
    """The density of β, σ, log τ, and (except in the form `paper`) ω and the standard deviations of reactions, data
    sets and runs (the last as a logarithm), in this order: a vector of `size` numbers.

    Attributes
    ----------
    correlation
        Of dispositions, shape (g, g); None if they are independent.
    reactions, shifts
        The random terms besides the models' levels.
    """

    def __init__(self, data: PredictionData, form: Form) -> None:
        self.form = form
        self.data = data
        self.games = len(data.games)
        self.correlation = correlations(data.levels, data.errors) if form == "correlated" else None
        paper = form == "paper"
        self.reactions = _NO_REACTIONS if paper else reactions(data)
        self.shifts = Shifts(replace(data, runs=None) if paper else data)
        n, m, g, q = len(data.outcome), len(data.models), self.games, len(data.columns)
        own = np.column_stack([np.ones(n), self.reactions.of(data.conditions)])
        self._rows = Rows(own, np.column_stack([data.conditions, self.shifts.columns, data.outcome]), data.model_of, m)
        self._fixed = np.hstack([np.ones((m, 1)), data.benchmarks])
        shifts = np.arange(self.linear - self.shift_size, self.linear)
        self._of_models = np.r_[: g + 1, g + 1 + q : g + 1 + q + len(data.controls)]
        """Indices of the terms that are constant within a model: μ, α and δ."""
        self._of_rows = np.r_[g + 1 : g + 1 + q, shifts, self.linear]
        """Indices of all other terms, and of the outcome."""
        deviations = [CENTRE] * g + [INTERCEPT[1]] + [COVARIATE] * (q + len(data.controls)) + [1.0] * self.shift_size
        self._prior = 1 / np.array(deviations) ** 2
        self._prior_mean = np.zeros(self.linear)
        self._prior_mean[g] = INTERCEPT[0]

    @property
    def linear(self) -> int:
        """The number of coefficients that are integrated out: μ, α, γ, δ, and the coefficients of data sets."""
        return self.games + 1 + len(self.data.columns) + len(self.data.controls) + self.shift_size

    @property
    def shift_size(self) -> int:
        """The number of coefficients of data sets; they are the last."""
        return self.shifts.size

    @cached_property
    def tail(self) -> tuple[str, ...]:
        """Names of the coordinates after log τ: `between`, factors, `shift`, `run`."""
        if self.form == "paper":
            return ()
        shifts, runs = ("shift",) * (self.data.runs is not None), ("run",) * (self.shifts.freedom > 0)
        return ("between", *self.reactions.factors, *shifts, *runs)

    @property
    def size(self) -> int:
        """The dimensions of the density."""
        return 2 * self.games + 1 + len(self.tail)

    @cached_property
    def logarithms(self) -> Array:
        """Mask of the coordinates that are logarithms: of τ, and of the standard deviation of runs."""
        named = ("noise", *self.tail)
        return np.array([False] * (2 * self.games) + [name in ("noise", "run") for name in named])

    @cached_property
    def nonnegative(self) -> Array:
        """Mask of the nonnegative coordinates: σ, ω and the standard deviations of reactions and data sets."""
        return (np.arange(self.size) >= self.games) & ~self.logarithms

    def parts(self, points: Array) -> Hyper:
        """The coordinates by name, of points of shape (n, size)."""
        g, none = self.games, np.zeros(len(points))
        tail = dict(zip(self.tail, points[:, 2 * g + 1 :].T, strict=True))
        first = 2 * g + 2
        return Hyper(
            spread=points[:, g : 2 * g],
            effect=points[:, :g],
            noise=np.exp(points[:, 2 * g]),
            between=tail.get("between", none),
            reactions=points[:, first : first + len(self.reactions.factors)],
            shift=tail.get("shift", none),
            run=np.exp(tail["run"]) if "run" in tail else none,
        )

    def log_density(self, points: Array) -> Array:
        """The log density up to a constant, shape (n,), of points of shape (n, size)."""
        hyper = self.parts(points)
        return np.asarray(_log_prior(hyper) + self._integrated(hyper)[1])

    def coefficients(self, points: Array, rng: np.random.Generator) -> Array:
        """Draws of μ, α, γ, δ and the effects of data sets (c of `Shifts`) at each point, shape (n, linear)."""
        hyper = self.parts(points)
        factor, _ = self._integrated(hyper)
        lower, half = factor[:, :-1, :-1], factor[:, -1, :-1]
        standard = half + rng.standard_normal(half.shape)
        drawn = np.asarray(np.linalg.solve(lower.transpose(0, 2, 1), standard[..., None])[..., 0])
        mean, root, _ = self.shifts.given(hyper.shift, hyper.run)
        first = self.linear - self.shift_size
        drawn[:, first:] = mean + (root @ drawn[:, first:, None])[..., 0]
        return drawn

    def _integrated(self, hyper: Hyper) -> tuple[Array, Array]:
        """The Cholesky factor of the precision of the linear coefficients, and the log likelihood without them.

        The precision is bordered by the right-hand side for the mean and by the sum of squares, so the last row of its
        Cholesky factor yields mean and likelihood.
        """
        correlation = np.eye(self.games) if self.correlation is None else self.correlation
        seen = _seen(hyper, correlation, self.data.levels, self.data.errors)
        own = seen.left + (hyper.between**2)[:, None]
        rows = self._rows.moments(hyper.noise, own, hyper.reactions[:, list(self.reactions.factor)])
        among, with_level, log_runs = self._shifted(rows.all_rows, rows.with_level, hyper)
        # Outcomes minus the prediction from the model's play.
        mean = with_level[:, :, -1] - rows.level * seen.predicted
        crossed = (with_level[:, :, :-1] * seen.predicted[:, :, None]).sum(axis=1)
        among[:, :-1, -1] -= crossed
        among[:, -1, :-1] -= crossed
        among[:, -1, -1] -= ((mean + with_level[:, :, -1]) * seen.predicted).sum(axis=1)
        with_level = np.concatenate([with_level[:, :, :-1], mean[:, :, None]], axis=2)
        g, end = self.games, self.linear
        slope = hyper.effect[:, None, :] - seen.slope
        design = np.concatenate([slope, np.broadcast_to(self._fixed, (*slope.shape[:2], self._fixed.shape[1]))], axis=2)
        turned = design.transpose(0, 2, 1)
        matrix = np.zeros((len(own), end + 1, end + 1))
        models, others = self._of_models, self._of_rows
        matrix[:, models[:, None], models] = turned @ (design * rows.level[:, :, None])
        across = turned @ with_level
        matrix[:, models[:, None], others] = across
        matrix[:, others[:, None], models] = across.transpose(0, 2, 1)
        matrix[:, others[:, None], others] = among
        matrix[:, :g, :g] += seen.precision
        diagonal = np.arange(end)
        matrix[:, diagonal, diagonal] += self._prior
        matrix[:, end, :g] += seen.weighted
        matrix[:, end, :end] += self._prior * self._prior_mean
        matrix[:, end, end] += seen.square + float((self._prior * self._prior_mean**2).sum())
        factor = np.linalg.cholesky(matrix)  # the upper triangle is ignored
        density = -0.5 * (seen.log_size + rows.log_size + factor[:, end, end] ** 2)
        density -= np.log(np.diagonal(factor, axis1=1, axis2=2)[:, :end]).sum(axis=1)
        return factor, density + log_runs

    def _shifted(self, among: Array, with_level: Array, hyper: Hyper) -> tuple[Array, Array, Array]:
        """Moments in standardised, centred shifts of data sets, and the log likelihood of the runs."""
        mean, root, log_runs = self.shifts.given(hyper.shift, hyper.run)
        q = len(self.data.columns)
        turn = np.broadcast_to(np.eye(among.shape[1]), among.shape).copy()
        turn[:, q:-1, q:-1] = root
        turn[:, q:-1, -1] = -mean
        return turn.transpose(0, 2, 1) @ among @ turn, with_level @ turn, log_runs


def _log_prior(hyper: Hyper) -> Array:
    squares = ((hyper.effect / EFFECT) ** 2).sum(axis=1) + ((hyper.spread / SPREAD) ** 2).sum(axis=1)
    others = [hyper.noise[:, None], hyper.between[:, None], hyper.reactions, hyper.shift[:, None], hyper.run[:, None]]
    squares += (np.hstack(others) ** 2).sum(axis=1) / NOISE**2
    return np.asarray(np.log(hyper.noise) + np.log(np.where(hyper.run > 0, hyper.run, 1)) - 0.5 * squares)


@dataclass(frozen=True)
class _Seen:
    """The evidence of the games; n points, m models, g games, V_i = Σ + SE_i².

    Attributes
    ----------
    slope
        V_i⁻¹Σβ, shape (n, m, g).
    predicted
        Its product with the observed metrics, shape (n, m).
    left
        Variance of β'θ_i given the games, β'Σβ − (Σβ)'V_i⁻¹Σβ, shape (n, m).
    precision, weighted, square
        Sums over models of V_i⁻¹, V_i⁻¹ȳ_i, ȳ_i'V_i⁻¹ȳ_i.
    log_size
        Sum over models of log |V_i|.
    """

    slope: Array
    predicted: Array
    left: Array
    precision: Array
    weighted: Array
    square: Array
    log_size: Array


def _seen(hyper: Hyper, correlation: Array, levels: Array, errors: Array) -> _Seen:
    """The evidence of the games, element by element: LAPACK calls on matrices this small are slow."""
    n, g = hyper.effect.shape
    covariance = hyper.spread[:, :, None] * correlation * hyper.spread[:, None, :]
    common = (covariance @ hyper.effect[:, :, None])[..., 0]
    factor = _factor(covariance, errors)
    # Rows of the inverse of the factor, each of shape (n, m).
    inverse: list[list[Array]] = []
    for row in range(g):
        entries: list[Array] = []
        for column in range(row):
            total = sum((factor[row][k] * inverse[k][column] for k in range(column, row)), np.zeros(1))
            entries.append(-total / factor[row][row])
        inverse.append([*entries, 1 / factor[row][row]])
    whitened = [sum((inverse[r][c] * common[:, c, None] for c in range(r + 1)), np.zeros(1)) for r in range(g)]
    seen = [sum((inverse[r][c] * levels[:, c] for c in range(r + 1)), np.zeros(1)) for r in range(g)]
    slope = np.stack([sum(inverse[r][c] * whitened[r] for r in range(c, g)) for c in range(g)], axis=2)
    precision = np.empty((n, g, g))
    for i in range(g):
        for j in range(i + 1):
            precision[:, i, j] = precision[:, j, i] = sum(
                np.einsum("nm,nm->n", inverse[r][i], inverse[r][j]) for r in range(i, g)
            )
    weighted = np.stack(
        [sum(np.einsum("nm,nm->n", inverse[r][c], seen[r]) for r in range(c, g)) for c in range(g)], axis=1
    )
    whole = (common * hyper.effect).sum(axis=1)[:, None]
    return _Seen(
        slope,
        (slope * levels).sum(axis=2),
        np.maximum(whole - sum(value**2 for value in whitened), 0),
        precision,
        weighted,
        sum((np.einsum("nm,nm->n", value, value) for value in seen), np.zeros(n)),
        2 * sum((np.log(factor[r][r]).sum(axis=1) for r in range(g)), np.zeros(n)),
    )


def _factor(covariance: Array, errors: Array) -> list[list[Array]]:
    """The lower Cholesky factor of Σ + SE_i², element by element, each of shape (n, m)."""
    factor: list[list[Array]] = []
    for row in range(covariance.shape[1]):
        entries: list[Array] = []
        for column in range(row + 1):
            value = np.broadcast_to(covariance[:, row, column, None], (len(covariance), len(errors)))
            if row == column:
                value = value + errors[:, row] ** 2
            above = entries if row == column else factor[column]
            value = value - sum((entries[k] * above[k] for k in range(column)), np.zeros(1))
            entries.append(np.sqrt(value) if row == column else value / factor[column][column])
        factor.append(entries)
    return factor
