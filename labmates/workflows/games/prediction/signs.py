"""Sign-flip tests of what varies within models: whether their own effects, one each, are around 0."""

from __future__ import annotations

import numpy as np

from labmates.stats.arrays import Array
from labmates.stats.bayes.evidence import PERMUTATIONS, PermutationTest, sign_flips
from labmates.workflows.games.prediction.data import PredictionData


def sign_tests(data: PredictionData, *, permutations: int = PERMUTATIONS, seed: int = 0) -> dict[str, PermutationTest]:
    """Return a test of each column over the models whose own observations tell its effect.

    Each model counts once, whatever the number of its observations, and nothing is assumed of how models differ. What
    data sets do to all models alike is no part of it: it is for these data sets.
    """
    effects = own_effects(data)
    found = {}
    for name, own in zip(data.columns, effects.T, strict=True):
        known = own[~np.isnan(own)]
        if len(known) >= 2:
            found[name] = sign_flips(known, permutations=permutations, seed=seed)
    return found


def own_effects(data: PredictionData) -> Array:
    """Return the effects of columns by least squares in each model's own observations, shape (models, columns).

    NaN where these do not tell them apart from the other columns.
    """
    found = np.full((len(data.models), len(data.columns)), np.nan)
    for at in range(len(data.models)):
        mine = data.model_of == at
        design = np.column_stack([np.ones(int(mine.sum())), data.conditions[mine]])
        inverse = np.linalg.pinv(design)
        told = np.abs((inverse @ design) - np.eye(design.shape[1])).max(axis=1) < 1e-8
        found[at, told[1:]] = (inverse @ data.outcome[mine])[1:][told[1:]]
    return found
