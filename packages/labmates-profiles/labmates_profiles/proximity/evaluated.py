"""Predictions of fits of proximity for each cell and model, for checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.bayes.blocks import Block, Evaluated
from labmates_profiles.bayes.blocks import evaluated as blocks_evaluated
from labmates_profiles.proximity.cells import INTERCEPT, Cells, cells_of
from labmates_profiles.proximity.fit import DEVIATION, FAMILY_PREFIX, Fit
from labmates_profiles.proximity.mixed import CELL, FAMILY, RESIDUAL


def evaluated(fit: Fit, outcome: str, *, draws: int, seed: int = 0) -> Evaluated:
    """Evaluate the first draws of a fit."""
    fit = replace(fit, posterior=fit.posterior.first(draws))
    cells = fit.cells
    named = _labels(cells), cells.model, cells.count
    blocks = [block(fit, cells, at) for at in range(len(cells.models))]
    noise = fit.posterior[DEVIATION + RESIDUAL]
    return blocks_evaluated((fit.specification, outcome), fit.posterior, blocks, named, noise, _priors(fit), seed=seed)


def block(fit: Fit, cells: Cells, at: int) -> Block:
    """The prediction of a model's cells, which need not be part of the fit; the level of an unknown family is redrawn.

    Parameters
    ----------
    cells
        Cells that include the model, with the predictors of the fit.
    at
        The model's index.
    """
    posterior, model = fit.posterior, fit.model
    mine = cells.model == at
    kept = [cells.names.index(name) for name in model.cells.names]
    design = np.column_stack([np.ones(int(mine.sum())), cells.predictors[mine][:, kept]])
    fixed = posterior.columns((INTERCEPT, *model.cells.names)) @ design.T
    columns, names = model.terms(cells)
    terms = columns[mine]
    if FAMILY in model.components:
        family = FAMILY_PREFIX + cells.families[int(cells.family[mine][0])]
        if family in posterior.names:
            fixed = fixed + posterior[family][:, None]
        else:
            terms, names = np.column_stack([terms, np.ones(len(terms))]), (*names, FAMILY)
    noise = (_deviation(fit, RESIDUAL) ** 2)[:, None] / cells.count[mine]
    noise = noise + (_deviation(fit, CELL) ** 2)[:, None]
    variance = posterior.columns([DEVIATION + name for name in names]) ** 2
    return Block(cells.mean[mine], fixed, terms, variance, noise)


def without(cells: Cells, at: int) -> Cells:
    """Cells without those of a model, given by its index."""
    return cells_of(cells.frame[cells.frame["model"] != cells.models[at]], cells.names)


def _deviation(fit: Fit, name: str) -> Array:
    known = name in fit.model.deviations
    return fit.posterior[DEVIATION + name] if known else np.zeros(len(fit.posterior.draws))


def _labels(cells: Cells) -> tuple[str, ...]:
    labels = []
    for at, model in enumerate(cells.model):
        game = cells.games[int(cells.block[at] % len(cells.games))]
        values = [
            f"{name}={value:g}"
            for name, value in zip(cells.names, cells.predictors[at], strict=True)
            if name in ("cot", "tom", "group_size", "standard") and value
        ]
        labels.append(", ".join([cells.models[model], game, *values]))
    return tuple(labels)


def _priors(fit: Fit) -> Iterable[tuple[Sequence[str], float, float]]:
    model, priors = fit.model, fit.model.priors
    yield [INTERCEPT], priors.intercept_mean, priors.intercept_sd
    yield model.cells.names, 0.0, priors.coefficient_sd
    yield [DEVIATION + name for name in model.deviations], 0.0, priors.component_sd
