"""The log density of a linear mixed model, with all parameters except its standard deviations integrated out.

For row *r* of model *m* (family *f*) in game *g* and cell *c*::

    y_r  =  x_c'β + u_f + v_m + s_m'(cot_c, tom_c, size_c) + w_mg + e_c + ε_r

with a normal prior on β and every other term normal around 0 with its own standard deviation. Random terms are
integrated out in sequence: each adds a matrix of rank one within its group, so the Sherman-Morrison formula updates the
inverse covariance, and the determinant changes by one factor. The state is the moments of predictors and outcome under
the inverse covariance, a small matrix per group.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.bayes.importance import Target
from labmates_profiles.proximity.cells import COT, GROUP_SIZE, STANDARD, TOM, Cells

RESIDUAL, FAMILY, MODEL, GAME, CELL = "residual", "family", "model", "game", "cell"
PAPER = (FAMILY,)
"""Components beside the residual in the paper's specification."""
SLOPES = (COT, TOM, GROUP_SIZE, STANDARD)
"""Predictors with a reaction of each model; the last one only for the question of prompts.

Otherwise only games vary within a model, and each game has its own level."""


_BATCH = 350_000
"""Numbers per batch, to fit a processor's cache."""


@dataclass(frozen=True)
class Priors:
    """Normal priors of intercept and coefficients, half-normal ones of standard deviations, on the outcome's scale.

    The paper states them for its second experiment (section 4.1.2); the first has the same here.
    """

    intercept_mean: float = 0.5
    intercept_sd: float = 0.5
    coefficient_sd: float = 1.0
    component_sd: float = 0.5


@dataclass(frozen=True)
class MixedModel:
    """A linear mixed model of cells.

    Attributes
    ----------
    components
        Some of ``family``, ``model``, `SLOPES`, ``game`` and ``cell``, in addition to the residual.
    """

    cells: Cells
    components: Sequence[str]
    priors: Priors = Priors()

    def reaction(self, name: str) -> Array:
        """The multiplier of a random term of `SLOPES`, shape ``(cells,)``."""
        return np.asarray(self.cells.predictors[:, self.cells.names.index(name)] - self.centre(name))

    def centre(self, name: str) -> float:
        """The value of a predictor at which a model's reaction is 0 and its own level applies.

        0 for prompts, and the mean for group size.
        """
        if name != GROUP_SIZE:
            return 0.0
        return float(self.cells.predictors[:, self.cells.names.index(name)].mean())

    @property
    def deviations(self) -> tuple[str, ...]:
        """Names of the standard deviations, in the order of points."""
        return (RESIDUAL, *self.components)

    @cached_property
    def target(self) -> Target:
        """The posterior of the standard deviations."""
        cells = self.cells
        within = cells.rows - len(cells.count)
        # Residuals, since games may differ a hundred times as much as models and would inflate the scale.
        left = cells.mean - cells.design @ np.linalg.lstsq(cells.design, cells.mean, rcond=None)[0]
        spread = max(float(np.std(left)), 1e-3 * float(np.std(cells.mean)), 1e-6)
        residual = math.sqrt(cells.squares.sum() / within) if within and cells.squares.sum() > 0 else spread
        others = len(self.components)
        start = np.r_[max(residual, 1e-6), np.full(others, 0.3 * spread)]
        scale = np.r_[start[0] / math.sqrt(2 * max(within, 8)), np.full(others, 0.15 * spread)]
        batch = max(20, int(_BATCH // (len(cells.models) * (self.width + 1) ** 2)))
        return Target(self.log_density, start, scale, np.ones(1 + others, dtype=bool), batch=batch)

    @property
    def width(self) -> int:
        """Number of coefficients, including the intercept."""
        return 1 + len(self.cells.names)

    def log_density(self, points: Array) -> Array:
        """Log prior and marginal likelihood of the rows, including constants, given standard deviations.

        Parameters
        ----------
        points
            Shape ``(n, 1 + components)``.
        """
        families, log_size = self._by_family(points)
        moments, more = self._without(families, points, FAMILY)
        return self._integrated(points, moments.sum(axis=1), log_size + more)

    def draw(self, points: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Coefficients and family intercepts, one draw of each for each point of standard deviations.

        Returns
        -------
        coefficients
            Shape ``(n, width)``.
        families
            Shape ``(n, families)``; without columns if the component is missing.
        """
        batch = self.target.batch
        parts = [self._draw(points[at : at + batch], rng) for at in range(0, len(points), batch)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _draw(self, points: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        families, _ = self._by_family(points)
        moments, _ = self._without(families, points, FAMILY)
        factor, solved = self._solved(moments.sum(axis=1))
        noise = solved + rng.standard_normal(solved.shape)
        coefficients = np.linalg.solve(np.swapaxes(factor, 1, 2), noise[..., None])[..., 0]
        if FAMILY not in self.components:
            return coefficients, np.empty((len(points), 0))
        variance = self._variance(points, FAMILY)[:, None]
        precision = families[:, :, 0, 0]
        residual = families[:, :, 0, -1] - np.einsum("nfj,nj->nf", families[:, :, 0, :-1], coefficients)
        conditional = variance / (1 + variance * precision)
        return coefficients, conditional * residual + np.sqrt(conditional) * rng.standard_normal(conditional.shape)

    def _variance(self, points: Array, name: str) -> Array:
        return np.asarray(points[:, self.deviations.index(name)] ** 2)

    def _by_family(self, points: Array) -> tuple[Array, Array]:
        """Moments of each family without its own intercept, and the log determinant so far.

        Moments are of intercept, predictors and outcome: shape ``(n, families, width + 1, width + 1)``.
        """
        moments, log_size = self._by_model(points)
        for name in (*SLOPES, MODEL):
            moments, more = self._without(moments, points, name)
            log_size = log_size + more
        ordered = np.take(moments, self._model_order, axis=1)
        return np.asarray(np.add.reduceat(ordered, self._first_models, axis=1)), log_size

    def _by_model(self, points: Array) -> tuple[Array, Array]:
        """Moments of each model under the variance within model × game, and its log determinant."""
        cells, n, wide = self.cells, len(points), self.width + 1
        residual = self._variance(points, RESIDUAL)
        extra = self._variance(points, CELL)[:, None] if CELL in self.components else 0.0
        weights = 1 / (residual[:, None] / cells.count + extra)
        log_size = -np.log(weights).sum(axis=1)
        moments = np.empty((n, len(cells.models), wide, wide))
        between = self._variance(points, GAME)[:, None] if GAME in self.components else None
        for at, (where, products, sums) in enumerate(self._pieces):
            mine = weights[:, where]
            moments[:, at] = (mine @ products).reshape(n, wide, wide)
            if between is not None:
                blocks = (mine @ sums).reshape(n, -1, wide)
                shrunk = between / (1 + between * blocks[:, :, 0])
                log_size = log_size + np.log1p(between * blocks[:, :, 0]).sum(axis=1)
                moments[:, at] -= np.swapaxes(blocks * shrunk[:, :, None], 1, 2) @ blocks
        return moments, log_size

    def _without(self, moments: Array, points: Array, name: str) -> tuple[Array, Array]:
        """Moments of groups after integration over one of their random terms, and its log determinant."""
        if name not in self.components:
            return moments, np.zeros(len(points))
        variance = self._variance(points, name)[:, None]
        if name in SLOPES:
            column, centre = 1 + self.cells.names.index(name), self.centre(name)
            against = moments[:, :, column, :] - centre * moments[:, :, 0, :] if centre else moments[:, :, column, :]
            size = 1 + variance * (against[:, :, column] - centre * against[:, :, 0])
        else:
            against = moments[:, :, 0, :]
            size = 1 + variance * against[:, :, 0]
        shrunk = against * (variance / size)[:, :, None]
        return moments - shrunk[:, :, :, None] * against[:, :, None, :], np.log(size).sum(axis=1)

    def _integrated(self, points: Array, moments: Array, log_size: Array) -> Array:
        cells, priors = self.cells, self.priors
        factor, solved = self._solved(moments)
        mean, precision = self._prior
        log_factor = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        quadratic = moments[:, -1, -1] + (precision * mean**2).sum() - (solved**2).sum(axis=1)
        within = cells.rows - len(cells.count)
        likelihood = -0.5 * (log_size + quadratic) + 0.5 * np.log(precision).sum() - log_factor
        likelihood += -within * np.log(points[:, 0]) - 0.5 * cells.squares.sum() / points[:, 0] ** 2
        likelihood += -0.5 * np.log(cells.count).sum() - 0.5 * cells.rows * math.log(2 * math.pi)
        half_normal = 0.5 * math.log(2 / math.pi) - math.log(priors.component_sd)
        prior = half_normal * points.shape[1] - 0.5 * ((points / priors.component_sd) ** 2).sum(axis=1)
        return np.asarray(likelihood + prior)

    def _solved(self, moments: Array) -> tuple[Array, Array]:
        """The Cholesky factor L of the coefficients' precision, and L⁻¹ of precision times mean."""
        mean, precision = self._prior
        factor = np.linalg.cholesky(moments[:, :-1, :-1] + np.diag(precision))
        solved = np.linalg.solve(factor, (moments[:, :-1, -1] + precision * mean)[..., None])[..., 0]
        return factor, solved

    @cached_property
    def _prior(self) -> tuple[Array, Array]:
        priors = self.priors
        mean, precision = np.zeros(self.width), np.full(self.width, priors.coefficient_sd**-2)
        mean[0], precision[0] = priors.intercept_mean, priors.intercept_sd**-2
        return mean, precision

    @cached_property
    def _values(self) -> Array:
        return np.column_stack([self.cells.design, self.cells.mean])

    @cached_property
    def _pieces(self) -> list[tuple[slice, Array, Array]]:
        """Per model: its cells, and the matrices from weights to moments and to sums per game."""
        pieces = []
        wide = self.width + 1
        for at in range(len(self.cells.models)):
            first, last = np.searchsorted(self.cells.model, [at, at + 1])
            mine = self._values[first:last]
            products = (mine[:, :, None] * mine[:, None, :]).reshape(len(mine), wide**2)
            blocks = np.unique(self.cells.block[first:last], return_inverse=True)[1]
            member = np.eye(blocks.max() + 1)[blocks]
            sums = (member[:, :, None] * mine[:, None, :]).reshape(len(mine), -1)
            pieces.append((slice(first, last), products, sums))
        return pieces

    @cached_property
    def _family_of(self) -> Mapping[int, int]:
        return dict(zip(self.cells.model.tolist(), self.cells.family.tolist(), strict=True))

    @cached_property
    def _model_order(self) -> Array:
        """Models ordered by family."""
        return np.array(sorted(self._family_of, key=lambda model: (self._family_of[model], model)))

    @cached_property
    def _first_models(self) -> Array:
        families = [self._family_of[int(model)] for model in self._model_order]
        return np.searchsorted(families, np.arange(len(self.cells.families)))
