"""The log density of a linear mixed model, with all parameters except its standard deviations integrated out.

For row *r* of model *m* (family *f*) in game *g* and cell *c*::

    y_r  =  x_c'β + u_f + v_m + s_m'(cot_c, tom_c, size_c) + w_mg + e_c + ε_r

with a normal prior on β and every other term normal around 0 with its own standard deviation. The random terms of a
model are columns Z of its cells. The moments of (Z, X, y) under the variance of cells are sums of products, in which Z
is integrated out by one Cholesky factor per model, then the family's level by the Sherman-Morrison formula, then β.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.bayes.importance import Target
from labmates_profiles.proximity.cells import PREDICTORS, Cells

RESIDUAL, FAMILY, MODEL, GAME, CELL = "residual", "family", "model", "game", "cell"
PAPER = (FAMILY,)
"""Components beside the residual in the paper's specification."""
SLOPES = tuple(name for name, predictor in PREDICTORS.items() if predictor.reaction)
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

    def centre(self, name: str) -> float:
        """The value of a predictor at which a model's reaction is 0 and its own level applies.

        0 for prompts, and the mean for group size.
        """
        if name != "group_size":
            return 0.0
        return float(self.cells.predictors[:, self.cells.names.index(name)].mean())

    def terms(self, cells: Cells) -> tuple[Array, tuple[str, ...]]:
        """The random terms of models, a column each, shape ``(cells, terms)``, and the component of each."""
        columns = [np.empty((len(cells.count), 0))]
        names: list[str] = []
        for name in self.components:
            if name in SLOPES:
                columns.append(cells.predictors[:, [cells.names.index(name)]] - self.centre(name))
            elif name == MODEL:
                columns.append(np.ones((len(cells.count), 1)))
            elif name == GAME:
                columns.append(np.eye(len(cells.games))[cells.block % len(cells.games)])
            else:
                continue
            names += [name] * columns[-1].shape[1]
        return np.hstack(columns), tuple(names)

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
        moments, more = self._without_level(families, points)
        return self._integrated(points, moments, log_size + more)

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
        factor, solved = self._solved(self._without_level(families, points)[0])
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
        """The variance of a component, shape ``(n,)``; 0 without it."""
        return points[:, self.deviations.index(name)] ** 2 if name in self.deviations else np.zeros(len(points))

    def _by_family(self, points: Array) -> tuple[Array, Array]:
        """Moments of each family without its own level, and the log determinant so far.

        Moments are of intercept, predictors and outcome: shape ``(n, families, width + 1, width + 1)``.
        """
        cells, n, k, wide = self.cells, len(points), len(self._terms[1]), self.width + 1
        weights = 1 / (points[:, :1] ** 2 / cells.count + self._variance(points, CELL)[:, None])
        scales = points[:, [self.deviations.index(name) for name in self._terms[1]]]
        moments, log_size = np.zeros((n, len(cells.families), wide, wide)), -np.log(weights).sum(axis=1)
        for family, where, products in self._pieces:
            sums = (weights[:, where] @ products).reshape(n, k + wide, k + wide)
            across = scales[:, :, None] * sums[:, :k, k:]
            factor = np.linalg.cholesky(np.eye(k) + scales[:, :, None] * sums[:, :k, :k] * scales[:, None, :])
            white = np.linalg.solve(factor, across)
            moments[:, family] += sums[:, k:, k:] - white.transpose(0, 2, 1) @ white
            log_size += 2 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        return moments, log_size

    def _without_level(self, families: Array, points: Array) -> tuple[Array, Array]:
        """Moments of all rows after integration over families' levels, and its log determinant."""
        variance, against = self._variance(points, FAMILY)[:, None], families[:, :, 0, :]
        size = 1 + variance * against[:, :, 0]
        shrunk = against * (variance / size)[:, :, None]
        return families.sum(axis=1) - shrunk.transpose(0, 2, 1) @ against, np.log(size).sum(axis=1)

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
    def _terms(self) -> tuple[Array, tuple[str, ...]]:
        return self.terms(self.cells)

    @cached_property
    def _pieces(self) -> list[tuple[int, slice, Array]]:
        """Per model: its family, its cells, and the matrix from their weights to moments."""
        pieces = []
        cells, values = self.cells, np.column_stack([self._terms[0], self.cells.design, self.cells.mean])
        for at in range(len(cells.models)):
            first, last = np.searchsorted(cells.model, [at, at + 1])
            mine = values[first:last]
            products = (mine[:, :, None] * mine[:, None, :]).reshape(len(mine), -1)
            pieces.append((int(cells.family[first]), slice(first, last), products))
        return pieces
