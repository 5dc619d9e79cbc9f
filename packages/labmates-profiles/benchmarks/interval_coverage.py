"""How often 95 % intervals of means hold the truth: the engine of every table, beside plain t.

    make -C packages/labmates-profiles bench NAME=fits ARGS="--experiment intervals --studies 2000"

Where values are all equal there is no interval, which counts in *none* and not as a miss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from labmates.stats import intervals
from labmates.stats.coefficients import Floats
from labmates.stats.domains import ANY, AT_MOST_ONE, COUNT, SHARE, Domain
from labmates.stats.intervals import Estimate

RUNS = (2, 3, 5, 10, 20)
CELLS = 24
Draw = Callable[[np.random.Generator, int], Floats]

ONE_CELL: dict[str, tuple[Draw, float, Domain]] = {
    "normal": (lambda rng, n: rng.normal(size=n), 0.0, ANY),
    "skewed (exponential), counts": (lambda rng, n: rng.exponential(size=n), 1.0, COUNT),
    "skewed (exponential), bounds unknown": (lambda rng, n: rng.exponential(size=n), 1.0, ANY),
    "very skewed (log-normal, sd 1), counts": (lambda rng, n: rng.lognormal(size=n), math.exp(0.5), COUNT),
    "whole numbers (Poisson 2)": (lambda rng, n: rng.poisson(2, size=n).astype(float), 2.0, COUNT),
    "skill (1 - exponential)": (lambda rng, n: 1 - rng.exponential(0.5, size=n), 0.5, AT_MOST_ONE),
    "shares, beta(2, 2)": (lambda rng, n: rng.beta(2, 2, size=n), 0.5, SHARE),
    "shares, beta(8, 1)": (lambda rng, n: rng.beta(8, 1, size=n), 8 / 9, SHARE),
    "shares, beta(.5, .5)": (lambda rng, n: rng.beta(0.5, 0.5, size=n), 0.5, SHARE),
    "shares at an end, beta(.95, .05)": (lambda rng, n: rng.beta(0.95, 0.05, size=n), 0.95, SHARE),
    "shares at an end, beta(2, .2)": (lambda rng, n: rng.beta(2, 0.2, size=n), 10 / 11, SHARE),
    "yes or no (.8)": (lambda rng, n: (rng.random(n) < 0.8).astype(float), 0.8, SHARE),
}
WORLDS = ("equal variances", "variances differ (sd of log sd 1)", "skewed, sd like mean, counts", "shares")


def _cells(rng: np.random.Generator, n: int, world: str) -> tuple[Floats, Floats, Domain]:
    """Return values of many cells, shape (cells, n), and their true means."""
    normal, ones = rng.normal(size=(CELLS, n)), np.ones((CELLS, 1))
    if world == "equal variances":
        return normal, np.zeros(CELLS), ANY
    if world == "variances differ (sd of log sd 1)":
        return normal * np.exp(rng.normal(size=(CELLS, 1))), np.zeros(CELLS), ANY
    if world == "skewed, sd like mean, counts":
        means = np.exp(rng.normal(0, 0.5, CELLS))
        return rng.exponential(means[:, None] * ones, size=(CELLS, n)), means, COUNT
    means, precision = rng.uniform(0.1, 0.95, CELLS), 5 * np.exp(rng.normal(size=CELLS))
    values = rng.beta((precision * means)[:, None], (precision * (1 - means))[:, None], size=(CELLS, n))
    return values, means, SHARE


def tables(studies: int, seed: int = 0) -> pd.DataFrame:
    """Simulate means of n runs, alone and in many cells whose variances are pooled."""
    return pd.DataFrame([*_of_means(studies, seed), *_of_cells(studies, seed)]).set_index(["outcome", "n"])


def _of_means(studies: int, seed: int) -> Iterator[dict[str, Any]]:
    for outcome, (draw, truth, domain) in ONE_CELL.items():
        for n in RUNS:
            rng = np.random.default_rng([seed, n])
            values = [draw(rng, n) for _ in range(studies)]
            found = [intervals.mean(each.tolist(), domain) for each in values]
            yield {"outcome": outcome, "n": n, **_held(values, found, [truth] * studies)}


def _of_cells(studies: int, seed: int) -> Iterator[dict[str, Any]]:
    for world in WORLDS:
        for n in RUNS[:3]:
            rng = np.random.default_rng([seed, n])
            drawn = [_cells(rng, n, world) for _ in range(max(1, studies // CELLS))]
            found = [each for values, _, domain in drawn for each in intervals.means(values.tolist(), domain)]
            values, truths = (np.concatenate([each[part] for each in drawn]) for part in (0, 1))
            yield {"outcome": f"{CELLS} cells: {world}", "n": n, **_held(list(values), found, truths.tolist())}


def _held(values: Sequence[Floats], found: Sequence[Estimate], truths: Sequence[float]) -> dict[str, float]:
    """Return shares of plain t and of our intervals that hold the truth, of missing ones, and the ratio of widths."""
    frame = pd.DataFrame({"truth": truths, "low": [each.low for each in found], "high": [each.high for each in found]})
    frame = frame.astype(float)
    means, spreads = (np.array([how(each) for each in values]) for how in (np.mean, lambda each: np.std(each, ddof=1)))
    n = len(values[0])
    half = stats.t.ppf(0.975, n - 1) * spreads / math.sqrt(n)
    plain, ours = half > 0, frame["low"] < frame["high"]
    return {
        "t": float((np.abs(means - frame["truth"]) <= half)[plain].mean()),
        "now": float(frame["truth"].between(frame["low"], frame["high"])[ours].mean()),
        "none": float(frame["low"].isna().mean()),
        "width": float(((frame["high"] - frame["low"]) / (2 * half))[plain & ours].median()),
    }
