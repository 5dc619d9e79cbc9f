"""How often "better than the models' mean" is answered yes, no and can't tell, in worlds where the answer is known.

    make -C packages/labmates-profiles bench NAME=fits ARGS="--experiment verdict --studies 500"

A share of the variance between models is due to the games. Whether the fit of a study truly predicts better is known:
it is compared with the mean by the expected squared error for another model. In worlds of families, a share of what
models play and of the rest of their results is common to a family, and the games tell nothing.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from labmates.games.base import Array
from labmates_profiles.bayes.evidence import indicators
from labmates_profiles.prediction.data import PredictionData
from labmates_profiles.prediction.evidence import evidence
from labmates_profiles.prediction.usefulness import usefulness

SIZES = ((8, 1), (8, 3), (14, 1), (14, 3), (14, 6), (24, 3), (24, 6), (34, 6))
"""Models and games."""
SHARES = (0.0, 0.2, 0.5, 0.8)
FAMILIES = ((4,) * 5, (5,) * 7, (10, 6, 5, 4, 3, 2, 2, 1, 1, 1))
"""Models of each family."""
ALIKE = (0.5, 0.8)
RUNS, NOISE, BETWEEN = 8, 0.1, 0.1


def run(studies: int, path: Path | None = None) -> None:
    """Simulate studies and print the share of each answer, and how often the mean's interval holds a new model."""
    rows = [
        {"models": m, "games": g, "share": share, **answered(m, g, share, [seed, m, g, int(share * 10)])}
        for m, g in SIZES
        for share in SHARES
        for seed in range(studies)
    ]
    table = pd.DataFrame(rows).groupby(["models", "games", "share"]).mean().reset_index()
    print(table.round(3).to_string(index=False))
    alikes = [
        {"families": sizes, "games": g, "alike": alike, **in_families(sizes, g, alike, [seed, len(sizes), g])}
        for sizes in FAMILIES
        for g in (1, 6)
        for alike in ALIKE
        for seed in range(studies)
    ]
    families = pd.DataFrame(alikes).groupby(["families", "games", "alike"]).mean().reset_index()
    print(families.round(3).to_string(index=False))
    if path:
        path.write_text(json.dumps(table.to_dict("records"), indent=1), "utf-8")


def answered(m: int, g: int, share: float, seed: list[int], *, permutations: int = 999) -> dict[str, float]:
    """Simulate a study and return which answer it gets, and whether that is right."""
    rng = np.random.default_rng(seed)
    true = rng.standard_normal((m + 1, g))
    effects = rng.standard_normal(g)
    effects *= BETWEEN * np.sqrt(share) / np.linalg.norm(effects)
    expected = 0.5 + true @ effects + rng.normal(0, BETWEEN * np.sqrt(1 - share), m + 1)
    data = _data(true[:m], expected[:m], rng)
    found = usefulness({"quality": (data, evidence(data, permutations=permutations))})["quality"]
    slope, centre = _least_squares(data)
    better = ((slope - effects) @ (slope - effects)) + (centre - 0.5) ** 2 < effects @ effects + (
        data.outcome.mean() - 0.5
    ) ** 2
    answers = {answer: float(found.answer == answer) for answer in ("yes", "no", "can't tell")}
    return {
        **answers,
        "truly better": float(better),
        "false yes": float(found.answer == "yes" and not better),
        "false no": float(found.answer == "no" and better),
        "mean holds": float(found.models_mean.low <= expected[m] <= found.models_mean.high),
    }


def in_families(
    sizes: tuple[int, ...], g: int, alike: float, seed: list[int], *, permutations: int = 999
) -> dict[str, float]:
    """Simulate a study whose games tell nothing; return its answer, with families known and taken for unrelated."""
    rng, family = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    shared, own = rng.standard_normal((len(sizes), g + 1)), rng.standard_normal((len(family), g + 1))
    true = np.sqrt(alike) * shared[family] + np.sqrt(1 - alike) * own
    data = _data(true[:, 1:], 0.5 + BETWEEN * true[:, 0], rng)
    known = replace(data, families=indicators(family))
    answers: dict[str, float] = {}
    for name, each in (("known", known), ("unknown", data)):
        found = usefulness({"quality": (each, evidence(each, permutations=permutations))})["quality"]
        answers |= {f"{name}, {answer}": float(found.answer == answer) for answer in ("yes", "no")}
    return answers


def _least_squares(data: PredictionData) -> tuple[Array, float]:
    means = np.array([data.outcome[data.model_of == at].mean() for at in range(len(data.models))])
    design = np.column_stack([np.ones(len(means)), data.levels])
    found = np.linalg.lstsq(design, means, rcond=None)[0]
    return found[1:], float(found[0])


def _data(levels: Array, expected: Array, rng: np.random.Generator) -> PredictionData:
    m, g = levels.shape
    model_of = np.repeat(np.arange(m), RUNS)
    return PredictionData(
        models=tuple(map(str, range(m))),
        games=tuple(f"game-{at}" for at in range(g)),
        controls=(),
        columns=(),
        levels=levels,
        errors=np.full((m, g), 0.05),
        benchmarks=np.empty((m, 0)),
        model_of=model_of,
        conditions=np.empty((m * RUNS, 0)),
        outcome=expected[model_of] + rng.normal(0, NOISE, m * RUNS),
    )
