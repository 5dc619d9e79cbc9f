"""What the models themselves say beside a regression of proximity: tests over models, and how well they can tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labmates.analysis.bayes.evidence import (
    PERMUTATIONS,
    PermutationTest,
    freedman_lane,
    leave_one_out_r2,
    leverage,
    sign_flips,
    variance_inflation,
)
from labmates.analysis.bayes.proximity.cells import Cells
from labmates.analysis.bayes.proximity.predictors import ABOUT_MODELS, ABOUT_PROMPTS, STANDARD
from labmates.games.base import Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Checks:
    """Tests over models, each of which counts once.

    Attributes
    ----------
    tests
        By predictor. Of size and thinking: permutations of models' adjusted means (Freedman and Lane), each given the
        other. Of prompts: sign flips of models' own differences.
    left_out_r2
        How well size and thinking predict the adjusted mean of a model that was left out; None if it can't be said.
    inflation
        Variance inflation of the predictors of models.
    leverage
        By model, the largest first: how much the fit over models rests on it.
    """

    tests: dict[str, PermutationTest]
    left_out_r2: float | None
    inflation: dict[str, float]
    leverage: dict[str, float]


def checks(cells: Cells, *, permutations: int = PERMUTATIONS, seed: int = 0) -> Checks:
    """Return tests over the models of cells."""
    names = [name for name in ABOUT_MODELS if name in cells.names]
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
    for name in (*ABOUT_PROMPTS, STANDARD):
        if len(found := own_differences(cells, name)) >= 2:
            tests[name] = sign_flips(found, permutations=permutations, seed=seed)
    try:
        left_out_r2 = leave_one_out_r2(means, traits) if names else None
    except ValueError:
        left_out_r2 = None
    by_model = dict(zip(cells.models, leverage(traits).tolist(), strict=True))
    return Checks(
        tests,
        left_out_r2,
        dict(zip(names, variance_inflation(traits).tolist(), strict=True)),
        dict(sorted(by_model.items(), key=lambda item: -item[1])),
    )


def adjusted_means(cells: Cells) -> Array:
    """Return the mean of each model, over cells, had all been played alike: shape ``(models,)``.

    Least squares of the means of cells on models and on all that varies within them.
    """
    within = [at for at, name in enumerate(cells.names) if name not in ABOUT_MODELS]
    others = cells.predictors[:, within]
    design = np.column_stack([np.eye(len(cells.models))[cells.model], others - others.mean(axis=0)])
    return np.asarray(np.linalg.lstsq(design, cells.mean, rcond=None)[0][: len(cells.models)])


def own_differences(cells: Cells, name: str) -> Array:
    """Return by how much each model's proximity differs with a prompt, the mean over games.

    Cells with the prompt are compared with those of the same game and otherwise equal predictors without.

    Returns
    -------
    differences
        Shape ``(models,)``, for the models that have both; empty if the predictor is not in the model.
    """
    import pandas as pd

    if name not in cells.names:
        return np.empty(0)
    frame: pd.DataFrame = pd.DataFrame(cells.predictors, columns=list(cells.names)).assign(
        model=cells.model, block=cells.block, mean=cells.mean
    )
    prompts = [one for one in ABOUT_PROMPTS if one in cells.names and one != name]
    frame = frame[(frame[prompts] == 0).all(axis=1)]
    alike = ["model", "block", *(one for one in cells.names if one != name)]
    by_prompt = frame.groupby([*alike, name])["mean"].mean().unstack(name).dropna()
    if by_prompt.shape[1] < 2:
        return np.empty(0)
    differences = by_prompt[1.0] - by_prompt[0.0]
    return differences.groupby("model").mean().to_numpy(dtype=float)
