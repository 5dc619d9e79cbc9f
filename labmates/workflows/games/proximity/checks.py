"""Checks beside a regression of proximity: tests over models, and their power."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from labmates.stats.arrays import Array
from labmates.stats.bayes.evidence import (
    PERMUTATIONS,
    PermutationTest,
    freedman_lane,
    leave_one_out_r2,
    leverage,
    sign_flips,
    variance_inflation,
)
from labmates.stats.multiplicity import holm
from labmates.workflows.games.proximity.cells import Cells
from labmates.workflows.games.proximity.predictors import GAME_PREFIX, about_models

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Checks:
    """Tests over models, each of which counts once.

    Attributes
    ----------
    tests
        By predictor. Of size, thinking and covariates: permutations of models' adjusted means (Freedman and Lane), each
        given the others. Of all that varies within models: sign flips of the models' own effects.
    left_out_r2
        How well these predict the adjusted mean of a model that was left out; None if it can't be said.
    inflation
        Variance inflation of the predictors of models.
    leverage
        By model, the largest first: how much the fit over models rests on it.
    """

    tests: dict[str, PermutationTest]
    left_out_r2: float | None
    inflation: dict[str, float]
    leverage: dict[str, float]

    @cached_property
    def p_holm(self) -> dict[str, float]:
        """Of all tests, adjusted for their number by Holm's method."""
        adjusted = holm([one.p for one in self.tests.values()])
        return {name: p for name, p in zip(self.tests, adjusted, strict=True) if p is not None}


def checks(cells: Cells, *, permutations: int = PERMUTATIONS, seed: int = 0) -> Checks:
    """Tests over the models of cells."""
    names = about_models(cells.names)
    places = [cells.names.index(name) for name in names]
    firsts = np.unique(cells.model, return_index=True)[1]
    traits = cells.predictors[firsts][:, places]
    means = adjusted_means(cells)
    tests: dict[str, PermutationTest] = {}
    for at, name in enumerate(names):
        others = np.delete(traits, at, axis=1)
        try:
            tests[name] = freedman_lane(means, traits[:, at], others, permutations=permutations, seed=seed)
        except ValueError:
            continue  # too few models, or one predictor determines the other: there is no such test
    for name in cells.names:
        if name not in names and len(effects := own_effects(cells, name)) >= 2:
            tests[name] = sign_flips(effects, permutations=permutations, seed=seed)
    left_out = leave_one_out_r2(means, traits) if names else None
    by_model = dict(zip(cells.models, leverage(traits).tolist(), strict=True))
    return Checks(
        tests,
        left_out.value if left_out else None,
        dict(zip(names, variance_inflation(traits).tolist(), strict=True)),
        dict(sorted(by_model.items(), key=lambda item: -item[1])),
    )


def adjusted_means(cells: Cells) -> Array:
    """The mean of each model, over cells, had all been played alike: shape ``(models,)``.

    Least squares of the means of cells on models and on all that varies within them.
    """
    about = about_models(cells.names)
    within = [at for at, name in enumerate(cells.names) if name not in about]
    others = cells.predictors[:, within]
    design = np.column_stack([np.eye(len(cells.models))[cells.model], others - others.mean(axis=0)])
    return np.asarray(np.linalg.lstsq(design, cells.mean, rcond=None)[0][: len(cells.models)])


def own_effects(cells: Cells, name: str) -> Array:
    """The effect of what varies within models, such as a prompt or a game, on each model's proximity.

    Cells are compared with those of the same model, game and otherwise equal predictors; of group size it is the slope
    within these. A game is compared with the reference, under equal conditions.

    Returns
    -------
    effects
        Shape ``(models,)``, for the models that have it; empty if the predictor is not in the model.
    """
    import pandas as pd

    if name not in cells.names:
        return np.empty(0)
    games = [one for one in cells.names if one.startswith(GAME_PREFIX)]
    frame: pd.DataFrame = pd.DataFrame(cells.predictors, columns=list(cells.names)).assign(
        model=cells.model, block=cells.block, mean=cells.mean
    )
    alike = ["model", *(one for one in cells.names if one != name and one not in games)]
    if name in games:
        frame = frame[(frame[[one for one in games if one != name]] == 0).all(axis=1)]
    else:
        alike.append("block")
    frame = frame.groupby([*alike, name])["mean"].mean().reset_index()
    away = frame[[name, "mean"]] - frame.groupby(alike)[[name, "mean"]].transform("mean")
    own = frame["model"].to_numpy(dtype=int)
    cross = np.bincount(own, (away[name] * away["mean"]).to_numpy())
    square = np.bincount(own, (away[name] ** 2).to_numpy())
    return np.asarray(cross[square > 0] / square[square > 0])
