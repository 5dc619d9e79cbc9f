"""How often "better than the models' mean" is answered yes, no and can't tell, in worlds where the answer is known.

    make -C packages/labmates-profiles bench NAME=fits ARGS="--experiment verdict --studies 500"

A share of the variance between models is due to the games. Whether the fit of a study truly predicts better is known:
it is compared with the mean by the expected squared error for another model. In worlds of families, a share of what
models play and of the rest of their results is common to a family, and the games tell nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labmates.games.base import Array
from labmates_profiles.bayes.evidence import indicators
from labmates_profiles.prediction.data import PredictionData
from labmates_profiles.prediction.evidence import evidence
from labmates_profiles.prediction.usefulness import Usefulness, usefulness

SIZES = ((8, 1), (8, 3), (14, 1), (14, 3), (14, 6), (24, 3), (24, 6), (34, 6))
"""Models and games."""
FAMILIES = {"4x5": (4,) * 5, "5x7": (5,) * 7, "unequal": (10, 6, 5, 4, 3, 2, 2, 1, 1, 1)}
"""Models of each family."""
SETTINGS = (
    *(f"{models}/{games}/{share}" for models, games in SIZES for share in (0.0, 0.2, 0.5, 0.8)),
    *(f"{families}/{games}/{alike}" for families in FAMILIES for games in (1, 6) for alike in (0.5, 0.8)),
)
"""Models or families, games, and the share of variance due to games, or common to a family."""
RUNS, NOISE, BETWEEN = 8, 0.1, 0.1


def verdict(setting: str, seed: int) -> list[dict[str, float]]:
    """Simulate one study of a setting."""
    first, games, third = setting.split("/")
    g, share = int(games), float(third)
    if first in FAMILIES:
        sizes = FAMILIES[first]
        return [in_families(sizes, g, share, [seed, len(sizes), g])]
    return [answered(int(first), g, share, [seed, int(first), g, int(share * 10)])]


def answered(m: int, g: int, share: float, seed: list[int], *, permutations: int = 999) -> dict[str, float]:
    """Simulate a study and return which answer it gets, and whether that is right."""
    rng = np.random.default_rng(seed)
    true = rng.standard_normal((m + 1, g))
    effects = rng.standard_normal(g)
    effects *= BETWEEN * np.sqrt(share) / np.linalg.norm(effects)
    expected = 0.5 + true @ effects + rng.normal(0, BETWEEN * np.sqrt(1 - share), m + 1)
    data = _data(true[:m], expected[:m], rng)
    found = _answer(data, permutations)
    means = np.array([data.outcome[data.model_of == at].mean() for at in range(m)])
    centre, *slope = np.linalg.lstsq(np.column_stack([np.ones(m), data.levels]), means, rcond=None)[0]
    missed, mean_missed = np.square(slope - effects).sum() + (centre - 0.5) ** 2, (data.outcome.mean() - 0.5) ** 2
    better = missed < effects @ effects + mean_missed
    return {
        **{answer: float(found.answer == answer) for answer in ("yes", "no", "can't tell")},
        "truly better": float(better),
        "false yes": float(found.answer == "yes" and not better),
        "false no": float(found.answer == "no" and better),
        "mean holds": float(found.models_mean.low <= expected[m] <= found.models_mean.high),
    }


def in_families(sizes: tuple[int, ...], g: int, alike: float, seed: list[int]) -> dict[str, float]:
    """Simulate a study whose games tell nothing; return its answer, with families known and taken for unrelated."""
    rng, family = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    shared, own = rng.standard_normal((len(sizes), g + 1)), rng.standard_normal((len(family), g + 1))
    true = np.sqrt(alike) * shared[family] + np.sqrt(1 - alike) * own
    data = _data(true[:, 1:], 0.5 + BETWEEN * true[:, 0], rng)
    worlds = {"known": replace(data, families=indicators(family)), "unknown": data}
    found = {name: _answer(each, 999).answer for name, each in worlds.items()}
    return {f"{name}, {answer}": float(found[name] == answer) for name in found for answer in ("yes", "no")}


def _answer(data: PredictionData, permutations: int) -> Usefulness:
    return usefulness({"quality": (data, evidence(data, permutations=permutations))})["quality"]


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
