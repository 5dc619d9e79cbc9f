"""The posterior of the prediction model with all that is linear integrated out, in NumPy.

The model, for model i, game g and observation k (cooperative-profiles paper, section 4.1.2):

    ȳ_ig ~ N(θ_ig, SE_ig²)                        what was seen in the games
    θ_i  ~ N(μ, Σ)                                dispositions
    y_ik ~ N(α + β'θ_i + γ'x_ik + δ'b_i + u_i, τ²)   what came of the lab
    u_i  ~ N(0, ω²)                               what else models differ in

Given β, Σ, τ and ω all others are jointly normal: θ and u are integrated out model by model, then μ, α, γ and δ
together. What is left has 13 dimensions for six games in the form `paper`, and 14 in the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, get_args

import numpy as np

from labmates.analysis.bayes.prediction.data import PredictionData, summarise
from labmates.analysis.bayes.prediction.dispositions import correlations
from labmates.games.base import Array

Form = Literal["paper", "robust", "correlated"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)

INTERCEPT: Final = (0.5, 0.5)
"""Mean and standard deviation of the prior of α (paper, section 4.1.2); so are the others."""
EFFECT, COVARIATE, CENTRE, SPREAD, NOISE = 1.0, 0.5, 2.0, 2.0, 0.5
"""Standard deviations of β, of γ and δ, of μ; scales of the half-normal priors of σ, and of τ and ω."""


@dataclass(frozen=True)
class Hyper:
    """Points of the collapsed density, taken apart; n points, g games.

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
    """

    spread: Array
    effect: Array
    noise: Array
    between: Array


class Collapsed:
    """The density of β, σ, log τ and (but in the form `paper`) ω, in that order: a vector of `size` numbers.

    Attributes
    ----------
    correlation
        Of dispositions, shape (g, g); None where they are independent.
    """

    def __init__(self, data: PredictionData, form: Form) -> None:
        self.form = form
        self.data = data
        self.summary = summarise(data)
        self.games = len(data.games)
        self.correlation = correlations(data.levels, data.errors) if form == "correlated" else None
        g, triangle = self.games, self.summary.triangle
        across, along = triangle[:, :-1], triangle[:, -1]
        ones = np.ones((len(data.models), 1))
        self._fixed = np.hstack([ones, self.summary.condition_means, data.benchmarks])
        self._products = (self._fixed[:, :, None] * self._fixed[:, None, :]).reshape(len(data.models), -1)
        self._within = np.zeros((self.linear, self.linear))
        self._within_outcome = np.zeros(self.linear)
        place = slice(g + 1, g + 1 + len(data.columns))
        self._within[place, place] = across.T @ across
        self._within_outcome[place] = across.T @ along
        self._within_square = float(along @ along)
        self._freedom = self.summary.observations - len(data.models)
        deviations = np.array([CENTRE] * g + [INTERCEPT[1]] + [COVARIATE] * (self._fixed.shape[1] - 1))
        self._prior = 1 / deviations**2
        self._prior_mean = np.zeros(self.linear)
        self._prior_mean[g] = INTERCEPT[0]

    @property
    def linear(self) -> int:
        """How many coefficients are integrated out: μ, α, γ, δ."""
        return self.games + 1 + len(self.data.columns) + len(self.data.controls)

    @property
    def size(self) -> int:
        """The dimensions of the density."""
        return 2 * self.games + 1 + (self.form != "paper")

    @cached_property
    def nonnegative(self) -> Array:
        """Which coordinates can't be negative: σ and ω."""
        found = np.zeros(self.size, dtype=bool)
        found[self.games : 2 * self.games] = True
        if self.form != "paper":
            found[2 * self.games + 1] = True
        return found

    def parts(self, points: Array) -> Hyper:
        """Take points of shape (n, size) apart."""
        g = self.games
        robust = self.form != "paper"
        return Hyper(
            spread=points[:, g : 2 * g],
            effect=points[:, :g],
            noise=np.exp(points[:, 2 * g]),
            between=points[:, 2 * g + 1] if robust else np.zeros(len(points)),
        )

    def log_density(self, points: Array) -> Array:
        """Return the log density up to a constant, shape (n,), of points of shape (n, size)."""
        hyper = self.parts(points)
        return np.asarray(_log_prior(hyper) + self._integrated(hyper)[1])

    def coefficients(self, points: Array, rng: np.random.Generator) -> Array:
        """Draw μ, α, γ and δ at each point, shape (n, linear)."""
        factor, _ = self._integrated(self.parts(points))
        lower, half = factor[:, :-1, :-1], factor[:, -1, :-1]
        drawn = half + rng.standard_normal(half.shape)
        return np.asarray(np.linalg.solve(lower.transpose(0, 2, 1), drawn[..., None])[..., 0])

    def _integrated(self, hyper: Hyper) -> tuple[Array, Array]:
        """Integrate out what is linear; return the factor of its precision, and the log likelihood that is left.

        The precision of μ, α, γ and δ is bordered by the vector that their mean solves for and by the sum of squares:
        the last row of its Cholesky factor then holds all that is needed.
        """
        seen = _seen(hyper, self.correlation, self.data.levels, self.data.errors)
        variance = seen.left + (hyper.between**2)[:, None] + (hyper.noise**2)[:, None] / self.summary.counts
        precision, weight = hyper.noise**-2, 1 / variance
        response = self.summary.outcome_means - seen.predicted
        g, end = self.games, self.linear
        slope = hyper.effect[:, None, :] - seen.slope
        weighted = (slope * weight[:, :, None]).transpose(0, 2, 1)
        matrix = np.zeros((len(weight), end + 1, end + 1))  # the lower triangle is filled; what is above is not read
        matrix[:, :g, :g] = weighted @ slope + seen.precision
        matrix[:, g:end, :g] = (weighted @ self._fixed).transpose(0, 2, 1)
        matrix[:, g:end, g:end] = (weight @ self._products).reshape(-1, end - g, end - g)
        matrix[:, :end, :end] += self._within * precision[:, None, None]
        diagonal = np.arange(end)
        matrix[:, diagonal, diagonal] += self._prior
        matrix[:, end, :g] = (weighted @ response[:, :, None])[..., 0] + seen.weighted
        matrix[:, end, g:end] = (weight * response) @ self._fixed
        matrix[:, end, :end] += self._within_outcome * precision[:, None] + self._prior * self._prior_mean
        square = seen.square + self._within_square * precision + (weight * response**2).sum(axis=1)
        matrix[:, end, end] = square + float((self._prior * self._prior_mean**2).sum())
        factor = np.linalg.cholesky(matrix)
        density = -0.5 * (seen.log_size + np.log(variance).sum(axis=1) + factor[:, end, end] ** 2)
        density -= np.log(np.diagonal(factor, axis1=1, axis2=2)[:, :end]).sum(axis=1)
        return factor, density - self._freedom * np.log(hyper.noise)


def _log_prior(hyper: Hyper) -> Array:
    found = ((hyper.effect / EFFECT) ** 2).sum(axis=1) + ((hyper.spread / SPREAD) ** 2).sum(axis=1)
    found += (hyper.noise / NOISE) ** 2 + (hyper.between / NOISE) ** 2
    return np.asarray(np.log(hyper.noise) - 0.5 * found)


@dataclass(frozen=True)
class _Seen:
    """What the games say; n points, m models, g games, V_i = Σ + SE_i².

    Attributes
    ----------
    slope
        V_i⁻¹Σβ, shape (n, m, g).
    predicted
        Its product with what was seen, shape (n, m).
    left
        Variance of β'θ_i that the games leave, β'Σβ − (Σβ)'V_i⁻¹Σβ, shape (n, m).
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


def _seen(hyper: Hyper, correlation: Array | None, levels: Array, errors: Array) -> _Seen:
    if correlation is None:
        return _independent(hyper, levels, errors)
    return _joint(hyper, correlation, levels, errors)


def _independent(hyper: Hyper, levels: Array, errors: Array) -> _Seen:
    own = (hyper.spread**2)[:, None, :]
    variance = own + errors**2
    inverse = 1 / variance
    kept = own * inverse
    slope = hyper.effect[:, None, :] * kept
    left = (hyper.effect[:, None, :] ** 2 * kept * errors**2).sum(axis=2)
    precision = np.zeros((len(own), levels.shape[1], levels.shape[1]))
    diagonal = np.arange(levels.shape[1])
    precision[:, diagonal, diagonal] = inverse.sum(axis=1)
    return _Seen(
        slope,
        (slope * levels).sum(axis=2),
        left,
        precision,
        (inverse * levels).sum(axis=1),
        (inverse * levels**2).sum(axis=(1, 2)),
        np.log(variance).sum(axis=(1, 2)),
    )


def _joint(hyper: Hyper, correlation: Array, levels: Array, errors: Array) -> _Seen:
    """Do the same with correlated dispositions, element by element: so small matrices are too slow one by one."""
    n, g = hyper.effect.shape
    covariance = hyper.spread[:, :, None] * correlation * hyper.spread[:, None, :]
    common = (covariance @ hyper.effect[:, :, None])[..., 0]
    factor = _factor(covariance, errors)
    # Rows of the inverse of the factor, each of shape (n, m).
    inverse: list[list[Array]] = []
    for row in range(g):
        mine: list[Array] = []
        for column in range(row):
            total = sum((factor[row][k] * inverse[k][column] for k in range(column, row)), np.zeros(1))
            mine.append(-total / factor[row][row])
        inverse.append([*mine, 1 / factor[row][row]])
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
        np.maximum(whole - sum(one**2 for one in whitened), 0),
        precision,
        weighted,
        sum((np.einsum("nm,nm->n", one, one) for one in seen), np.zeros(n)),
        2 * sum((np.log(factor[r][r]).sum(axis=1) for r in range(g)), np.zeros(n)),
    )


def _factor(covariance: Array, errors: Array) -> list[list[Array]]:
    """Return the lower Cholesky factor of Σ + SE_i², element by element, each of shape (n, m)."""
    factor: list[list[Array]] = []
    for row in range(covariance.shape[1]):
        mine: list[Array] = []
        for column in range(row + 1):
            value = np.broadcast_to(covariance[:, row, column, None], (len(covariance), len(errors)))
            if row == column:
                value = value + errors[:, row] ** 2
            over = mine if row == column else factor[column]
            value = value - sum((mine[k] * over[k] for k in range(column)), np.zeros(1))
            mine.append(np.sqrt(value) if row == column else value / factor[column][column])
        factor.append(mine)
    return factor
