"""Fit of the regression of proximity: identified terms, draws of all parameters, and R²."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from labmates.errors import UsageError
from labmates_profiles.arrays import Array
from labmates_profiles.bayes.importance import DRAWS, one_thread, sample
from labmates_profiles.bayes.posterior import Posterior
from labmates_profiles.proximity.cells import INTERCEPT, Cells, label
from labmates_profiles.proximity.mixed import CELL, FAMILY, GAME, MODEL, PAPER, RESIDUAL, SLOPES, MixedModel, Priors

Specification = Literal["paper", "robust"]
SPECIFICATIONS: Final[tuple[Specification, ...]] = ("paper", "robust")
DEVIATION, FAMILY_PREFIX, R_SQUARED = "sd:", "family:", "r2"
_NO_NOISE: Final = 1e-6
"""Maximum residual standard deviation that is treated as rounding; means of whole numbers differ by more."""
_NAMED: Final = {
    FAMILY: "family intercepts",
    MODEL: "model intercepts",
    **{name: f"the models' own reactions to '{label(name)}'" for name in SLOPES},
    GAME: "model × game",
    CELL: "cells",
}


@dataclass(frozen=True)
class Fit:
    """A fitted regression.

    Attributes
    ----------
    posterior
        Parameters: ``intercept``, the predictors, ``family:NAME`` of each family, ``sd:NAME`` of each standard
        deviation, and ``r2``.
    notes
        Terms of the specification that the data do not identify, and so were left out.
    """

    specification: Specification
    posterior: Posterior
    model: MixedModel
    notes: tuple[str, ...]

    @property
    def cells(self) -> Cells:
        """The fitted cells."""
        return self.model.cells


def fit(
    cells: Cells,
    specification: Specification,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    priors: Priors | None = None,
) -> Fit:
    """Fit a specification to cells, by importance sampling of its standard deviations.

    Coefficients and family intercepts are drawn exactly given these, so the paper's specification has two numbers to
    sample.

    Raises
    ------
    UsageError
        If the predictors and random terms determine the outcome, so that no posterior exists.
    """
    components, notes = allowed(cells, specification)
    if without_noise(cells, components):
        raise _no_noise(specification)
    model = MixedModel(cells, components, priors or Priors())
    try:
        with one_thread():
            points, diagnostics = sample(model.target, draws=draws, seed=seed)
            coefficients, families = model.draw(points, np.random.default_rng([seed, 1]))
    except ValueError as error:  # almost no noise: variances differ by more than the range of floats
        raise _no_noise(specification) from error
    explained = r_squared(model, coefficients, families, points)
    everything = np.column_stack([coefficients, families, points, explained])
    return Fit(specification, Posterior(parameters(model), everything, diagnostics), model, notes)


def parameters(model: MixedModel) -> tuple[str, ...]:
    """Names of the parameters of a fit, in order."""
    families = model.cells.families if FAMILY in model.components else ()
    return (
        INTERCEPT,
        *model.cells.names,
        *(FAMILY_PREFIX + name for name in families),
        *(DEVIATION + name for name in model.deviations),
        R_SQUARED,
    )


def allowed(cells: Cells, specification: Specification) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The components of a specification that the data identify, and notes on the others."""
    block = np.unique(cells.block, return_inverse=True)[1]
    per_block = np.bincount(block)
    reasons = {
        FAMILY: "there is one family only" if len(cells.families) < 2 else "",
        MODEL: "each family has one model only, whose level is that of the family"
        if len(cells.families) == len(cells.models)
        else "each model has one simulation only"
        if np.bincount(cells.model, cells.count).max() < 2
        else "",
        **{name: _no_slope(cells, name) for name in SLOPES},
        GAME: "there is one game only"
        if len(cells.games) < 2
        else "each model has one simulation of a game only"
        if np.bincount(block, cells.count).max() < 2
        else "",
        CELL: "no model has two conditions of the same game"
        if per_block.max() < 2
        else "each cell has one simulation only"
        if cells.count.max() < 2
        else "simulations of the same cell never differ"
        if cells.repeats
        else "",
    }
    slopes = [name for name in SLOPES if name in cells.names]
    wanted = PAPER if specification == "paper" else (FAMILY, MODEL, *slopes, GAME, CELL)
    notes = [f"without {_NAMED[name]}: {reasons[name]}" for name in wanted if reasons[name]]
    return tuple(name for name in wanted if not reasons[name]), tuple(notes)


def _no_noise(specification: Specification) -> UsageError:
    simpler = "" if specification == "paper" else "; the paper's specification claims less of models, and may still do"
    return UsageError(
        f"{specification}: predictors and the levels of families and models determine every outcome exactly; effects "
        f"can't be measured without noise. Players or games that vary more are needed{simpler}"
    )


def without_noise(cells: Cells, components: Sequence[str]) -> bool:
    """Whether outcomes are without noise, so that the density has no upper bound.

    That is so if terms with fewer coefficients than cells determine all means, and simulations of a cell are equal.
    """
    if not cells.repeats:
        return False
    model = MixedModel(cells, components)
    columns, names = model.terms(cells)
    fixed = [cells.design, *([np.eye(len(cells.families))[cells.family]] if FAMILY in components else [])]
    of_models = np.eye(len(cells.models))[cells.model]
    own = [of_models * column[:, None] for column in columns.T]
    without_games = [each for each, name in zip(own, names, strict=True) if name != GAME]
    return any(_determined(cells.mean, np.hstack([*fixed, *terms])) for terms in (without_games, own))


def _determined(values: Array, columns: Array) -> bool:
    solution, _, rank, _ = np.linalg.lstsq(columns, values, rcond=None)
    left = values - columns @ solution
    return bool(rank < len(values) and (left**2).sum() <= _NO_NOISE**2 * len(values))


def _no_slope(cells: Cells, name: str) -> str:
    if name not in cells.names:
        return ""
    values = cells.predictors[:, cells.names.index(name)]
    varying = sum(np.ptp(values[cells.model == model]) > 0 for model in range(len(cells.models)))
    return "it does not vary within two models or more" if varying < 2 else ""


def r_squared(model: MixedModel, coefficients: Array, families: Array, points: Array) -> Array:
    """The share of the variance of rows explained by predictors and families, for each draw.

    Explained over explained and other variance (Gelman, Goodrich, Gabry and Vehtari, The American Statistician 2019).
    In the paper's specification the other variance is the residual variance.
    """
    cells = model.cells
    fitted = coefficients @ cells.design.T
    if families.shape[1]:
        fitted += families[:, cells.family]
    share = cells.count / cells.rows
    explained = ((fitted - (fitted @ share)[:, None]) ** 2) @ share
    columns, names = model.terms(cells)
    sizes = dict.fromkeys((RESIDUAL, CELL), 1.0) | dict.fromkeys(names, 0.0)
    for name, column in zip(names, columns.T, strict=True):
        sizes[name] += float(share @ column**2)
    other = points**2 @ [sizes.get(name, 0.0) for name in model.deviations]
    return np.asarray(explained / (explained + other))
