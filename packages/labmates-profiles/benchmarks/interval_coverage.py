"""How often 95 % intervals of means and of agreement hold the truth: the engine of every table, beside plain t.

    make -C packages/labmates-profiles bench NAME=fits ARGS="--experiment intervals --studies 2000"

Where values are all equal there is no interval, which counts in *none* and not as a miss.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from labmates.stats import intervals
from labmates.stats.coefficients import Floats, concordance
from labmates.stats.domains import ANY, AT_MOST_ONE, COUNT, SHARE, Domain
from labmates.stats.intervals import Estimate
from labmates_credit.agreement import coefficients_over_models
from labmates_credit.coefficients import mean_difference, pearson

RUNS = (2, 3, 5, 10, 20)
MODELS = (3, 4, 9, 10, 20, 34)
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


WORLDS = ("equal variances", "variances differ (sd of log sd 1)", "skewed, sd like mean, counts", "shares")

JUDGES = {
    "models differ": (0.12, 0.08, 0.10, 0.08),
    "judges differ from model to model": (0.06, 0.15, 0.10, 0.05),
    "models are alike": (0.0, 0.0, 0.15, 0.10),
}
"""Standard deviations: of models' quality, of each judge's lenience by model, of runs' quality, of judging."""
RUNS_EACH = 8


def of_means(studies: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the coverage of intervals of a mean of few and many runs."""
    for outcome, (draw, truth, domain) in ONE_CELL.items():
        for n in RUNS:
            rng = np.random.default_rng([seed, n])
            values = [draw(rng, n) for _ in range(studies)]
            found = [intervals.mean(one.tolist(), domain) for one in values]
            yield {
                "outcome": outcome,
                "n": n,
                "t": _share([_plain(one) for one in values], truth),
                "now": _share([(one.low, one.high) for one in found], truth),
                "none": sum(one.low is None for one in found) / studies,
                "width": _width(found, values),
            }


def _width(found: Sequence[Estimate], values: Sequence[Floats]) -> float:
    """Return the median ratio of the widths of intervals to those of plain t."""
    plain = [high - low for low, high in map(_plain, values)]
    ends = [(one.low, one.high, width) for one, width in zip(found, plain, strict=True)]
    return float(
        np.median([(high - low) / width for low, high, width in ends if low is not None and high is not None and width])
    )


def of_cells(studies: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the coverage of intervals whose variances are pooled over the cells of a design."""
    for world in WORLDS:
        for n in RUNS[:3]:
            rng = np.random.default_rng([seed, n])
            held: list[bool] = []
            plain: list[bool] = []
            widths: list[float] = []
            for _ in range(max(1, studies // CELLS)):
                values, truths, domain = _cells(rng, n, world)
                for own, one, truth in zip(values, intervals.means(values.tolist(), domain), truths, strict=True):
                    if one.low is None or one.high is None:
                        continue
                    low, high = _plain(own)
                    held.append(one.low <= truth <= one.high)
                    plain.append(low <= truth <= high)
                    widths.append((one.high - one.low) / (high - low))
            yield {
                "outcome": f"{CELLS} cells: {world}",
                "n": n,
                "t": sum(plain) / len(plain),
                "now": sum(held) / len(held),
                "width": float(np.median(widths)),
            }


def of_agreement(studies: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the coverage of intervals of r, concordance and the mean difference of two judges, for new models."""
    for world, spreads in JUDGES.items():
        many = [_judged(np.random.default_rng([seed, part]), 1500, spreads) for part in range(20)]
        truths = np.mean([[_value(name, a, b) for name in _COEFFICIENTS] for a, b, _ in many], axis=0)
        for models in MODELS:
            rng = np.random.default_rng([seed, models])
            held, given = np.zeros(len(_COEFFICIENTS)), np.zeros(len(_COEFFICIENTS))
            for _ in range(studies):
                a, b, names = _judged(rng, models, spreads)
                found = coefficients_over_models(a, b, names)
                for place, (name, truth) in enumerate(zip(_COEFFICIENTS, truths, strict=True)):
                    low, high = found[name].low, found[name].high
                    if low is not None and high is not None:
                        given[place] += 1
                        held[place] += low <= truth <= high
            for place, name in enumerate(_COEFFICIENTS):
                yield {
                    "outcome": f"{name}, {world}",
                    "n": models,
                    "now": held[place] / max(1.0, given[place]),
                    "none": 1 - given[place] / studies,
                }


_COEFFICIENTS = ("pearson", "concordance", "mean_difference")


def _judged(
    rng: np.random.Generator, models: int, spreads: tuple[float, float, float, float]
) -> tuple[Floats, Floats, Any]:
    """Return what two judges make of the runs of some models, on five levels, and the runs' models."""
    of_models, lenience, of_runs, error = spreads
    shape = (models, RUNS_EACH)
    quality = rng.normal(0.55, of_models, (models, 1)) + rng.normal(0, of_runs, shape)
    scores = [
        np.clip(quality + shift + rng.normal(0, lenience, (models, 1)) + rng.normal(0, error, shape), 0, 1)
        for shift in (0.0, 0.05)
    ]
    first, second = (np.round(4 * one).ravel() / 4 for one in scores)
    return first, second, np.repeat([f"m{model}" for model in range(models)], RUNS_EACH)


def _value(name: str, a: Floats, b: Floats) -> float:
    return {"pearson": pearson, "concordance": concordance, "mean_difference": mean_difference}[name](a, b)


def _plain(values: Floats) -> tuple[float, float]:
    half = float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
    return float(values.mean()) - half, float(values.mean()) + half


def _share(found: Sequence[tuple[float | None, float | None]], truth: float) -> float:
    given = [low <= truth <= high for low, high in found if low is not None and high is not None and low < high]
    return sum(given) / len(given) if given else math.nan


def show(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print coverage, a row for each outcome and number of runs or models."""
    names = list(dict.fromkeys(name for row in rows for name in row if name not in ("outcome", "n")))
    print(f"\n{title}\n{'':58s}   n  {'  '.join(f'{name:>9s}' for name in names)}")
    for row in rows:
        print(f"{row['outcome']:58s} {row['n']:3d}  {'  '.join(f'{row[name]:9.3f}' for name in names)}", flush=True)


def run(studies: int, path: Path | None, seed: int = 0) -> None:
    """Print all tables and what is below .93; write the rows to a file."""
    parts = {
        "Means of n runs": of_means(studies, seed),
        f"Means of n runs in each of {CELLS} cells, variances pooled": of_cells(studies, seed),
        f"Agreement of two judges, n models with {RUNS_EACH} runs each": of_agreement(studies, seed),
    }
    rows: list[dict[str, Any]] = []
    for title, part in parts.items():
        mine = list(part)
        show(title, mine)
        rows += mine
    if path is not None:
        path.write_text(json.dumps(rows, indent=1), "utf-8")
    low = [row for row in rows if row["now"] < 0.93]
    error = math.sqrt(0.95 * 0.05 / studies)
    print(f"\nOne standard error of a share is {error:.3f}. Below .93: {len(low)}")
    for row in low:
        print(f"  {row['outcome']}, n = {row['n']}: {row['now']:.3f}")
