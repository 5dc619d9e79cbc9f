"""Mean estimates, and how often 95 % intervals hold the truth, over many simulated studies.

    make -C packages/labmates-profiles bench NAME=fits ARGS="--studies 100 --json coverage.json"
    make -C packages/labmates-profiles bench NAME=fits ARGS="--experiment prediction --setting all/0.8/0.5"
    make -C packages/labmates-profiles bench NAME=fits ARGS="--experiment intervals --studies 2000"

`intervals` is the engine of all other tables (`benchmarks.interval_coverage`); `verdict` is whether games predict
better than the models' mean (`benchmarks.verdicts`). Each study is simulated with the coefficients that the paper
published and with models that differ beyond their predictors. Studies run in processes beside each other; one takes
some seconds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import interval_coverage, verdicts
from labmates.games.base import Array
from labmates.models.roster import roster
from labmates_profiles.prediction import FORMS
from labmates_profiles.prediction.data import PredictionData
from labmates_profiles.prediction.design_matrix import CONTROLS, GAME_ORDER
from labmates_profiles.prediction.fit import NOISE, fit_prediction
from labmates_profiles.prediction.published import PUBLISHED
from labmates_profiles.proximity.cells import INTERCEPT
from labmates_profiles.proximity.fit import SPECIFICATIONS, fit
from tests.profiles.simulated_prediction import World, simulate_prediction
from tests.profiles.simulated_proximity import (
    CLUSTERED,
    HEAVY_TAILED,
    INDEPENDENT,
    MILD,
    REACTIVE,
    Truth,
    proximity_design,
    simulated_cells,
)

PROXIMITY: dict[str, tuple[Truth, int]] = {
    "clustered": (CLUSTERED, 35),
    "mild": (MILD, 35),
    "independent": (INDEPENDENT, 35),
    "reactive": (REACTIVE, 35),
    "reactive-14": (REACTIVE, 14),
    "heavy-tailed": (HEAVY_TAILED, 35),
    "few-9": (REACTIVE, 9),
    "few-5": (REACTIVE, 5),
}
"""The worlds of the first experiment, and how many models take part. But in the first three models also react
differently to group size (sd .012 a player)."""
_REACTIVE: Mapping[str, float] = {"task": 0.08, "theory of mind": 0.05}
PREDICTION: dict[str, tuple[World, int, int]] = {
    "assumed": (World(), 20, 3),
    "reactive": (World(_REACTIVE), 20, 3),
    "data-sets-1": (World(shift=0.06, data_sets=1), 20, 3),
    "data-sets-5": (World(shift=0.06, data_sets=5), 20, 3),
    "both": (World(_REACTIVE, 0.06, 3), 20, 3),
    "heavy-tailed": (World(_REACTIVE, freedom=2.1), 20, 3),
    "few-9": (World(_REACTIVE), 9, 3),
    "few-5": (World(_REACTIVE), 5, 1),
}
"""The worlds of the second experiment, and how many models and games take part: models differ by task (sd .08) and in
their reaction to theory of mind (.05), each task's data sets shift all scores alike (.06), or both."""
DRAWS = 1500
FEW = 600
LEFT_OUT = "qwen3.5-4b"
"""Of the paper's 35 models, the one that its prediction of lab outcomes leaves out."""
Rows = list[dict[str, Any]]


@cache
def _design(models: int) -> pd.DataFrame:
    """Return the design with models of all sizes and families, those of the roster in turn."""
    known = roster()
    return proximity_design([known[at] for at in np.linspace(0, len(known) - 1, models).round().astype(int)])


def proximity(setting: str, seed: int) -> Rows:
    """Simulate one study of proximity and fit all specifications to it."""
    world, models = PROXIMITY[setting]
    cells = simulated_cells(_design(models), world, seed=seed)
    truth = {name: world.coefficients[name] for name in (INTERCEPT, *cells.names)}
    fits = {name: partial(fit, cells, name, draws=DRAWS, seed=seed) for name in SPECIFICATIONS}
    return [row for name, fitted in fits.items() for row in _held(name, fitted, truth)]


def prediction(setting: str, seed: int) -> Rows:
    """Simulate one study of lab outcomes and fit all forms to it.

    A setting is one of `PREDICTION`; or effects, correlation of dispositions, and ω/τ: ``null/0.8/0.5``, or
    ``T7/0.95/1`` with the published effects of games, ``all/0.8/0`` with all published coefficients; a fourth part is
    an outcome other than quality.
    """
    if setting in PREDICTION:
        return _in_world(*PREDICTION[setting], seed)
    effects, correlation, between, *outcome = setting.split("/")
    study = simulate_prediction(
        np.random.default_rng([seed, 7]),
        *outcome,
        effects=[0.0] * len(GAME_ORDER) if effects == "null" else None,
        between=float(between),
        correlation=float(correlation),
        benchmarks=_controls(),
    )
    truth = dict(zip(GAME_ORDER, study.truth.games, strict=True))
    if effects == "all":
        truth = {name: value for name, value in PUBLISHED[(outcome or ["quality"])[0]].items() if name != NOISE}
    return _of_forms(study.data, truth, FEW, seed)


def _in_world(world: World, models: int, games: int, seed: int) -> Rows:
    """Simulate 24 conditions of each model, of which few games and no controls tell, and fit all forms to it."""
    study = simulate_prediction(
        np.random.default_rng([seed, 8]),
        effects=[PUBLISHED["quality"][game] * (at < games) for at, game in enumerate(GAME_ORDER)],
        controls=[0.0] * len(CONTROLS),
        between=0.5,
        models=models,
        observations=[24] * models,
        world=world,
    )
    data = study.data
    data = replace(
        data,
        games=data.games[:games],
        levels=data.levels[:, :games],
        errors=data.errors[:, :games],
        controls=(),
        benchmarks=data.benchmarks[:, :0],
    )
    truth = dict(zip((*data.games, *data.columns), (*study.truth.games[:games], *study.truth.columns), strict=True))
    return _of_forms(data, truth, DRAWS, seed)


def _of_forms(data: PredictionData, truth: Mapping[str, float], draws: int, seed: int) -> Rows:
    fits = {form: partial(fit_prediction, data, form, draws=draws, starts=1, seed=seed) for form in FORMS}
    return [row for form, fitted in fits.items() for row in _held(form, fitted, truth)]


def _held(specification: str, fitted: Callable[[], Any], truth: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """Yield what one fit of one simulated study said of each true number."""
    start = time.process_time()
    posterior = fitted().posterior
    seconds = time.process_time() - start
    for name, value in truth.items():
        found = posterior.summaries[name]
        yield {
            "specification": specification,
            "name": name,
            "truth": value,
            "estimate": found.mean,
            "coverage": found.low <= value <= found.high,
            "credible": found.credible,
            "width": found.high - found.low,
            "k_hat": posterior.diagnostics.k_hat,
            "seconds": seconds,
        }


@cache
def _controls() -> Array:
    """Return IFEval, MMLU-Pro, log10 of the size and whether it thinks, of the paper's 34 models."""
    kept = [one for one in roster() if one.name != LEFT_OUT]
    return np.array([[one.ifeval, one.mmlu_pro, np.log10(one.size), one.thinking] for one in kept], dtype=float)


_GRID = [f"{true}/{corr}/{omega}" for omega in (0, 0.25, 0.5, 1) for corr in (0.8, 0.95) for true in ("null", "T7")]
KINDS: dict[str, tuple[Callable[[str, int], Rows], tuple[str, ...], tuple[str, ...]]] = {
    "proximity": (proximity, tuple(PROXIMITY), ("specification", "name")),
    "prediction": (prediction, (*PREDICTION, *_GRID), ("specification", "name")),
    "verdict": (verdicts.verdict, verdicts.SETTINGS, ()),
}
"""What simulates one study and gives its rows, its settings by default, and what tells rows of a setting apart."""


def _study(job: tuple[str, str, int]) -> Rows:
    experiment, setting, seed = job
    return [{"setting": setting, **row} for row in KINDS[experiment][0](setting, seed)]


def means(experiment: str, settings: tuple[str, ...], studies: int, processes: int) -> pd.DataFrame:
    """Return the mean of all that the simulated studies of each setting said."""
    jobs = [(experiment, setting, seed) for seed in range(studies) for setting in settings]
    rows: Rows = []
    with ProcessPoolExecutor(processes) as pool:
        for done, found in enumerate(pool.map(_study, jobs, chunksize=1), 1):
            rows += found
            if done % 20 == 0:
                print(f"{done} of {len(jobs)} simulated studies", flush=True)
    return pd.DataFrame(rows).groupby(["setting", *KINDS[experiment][2]], sort=False).mean().dropna(axis=1, how="all")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", choices=[*KINDS, "intervals"], default="proximity")
    parser.add_argument("--setting", action="append", help="default: those of the docs")
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, help="write the table to this file")
    options = parser.parse_args()
    if options.experiment == "intervals":
        table = interval_coverage.tables(options.studies)
    else:
        settings = tuple(options.setting or KINDS[options.experiment][1])
        table = means(options.experiment, settings, options.studies, options.processes)
    print(table.round(3).to_string())
    if "specification" in table.index.names:
        print(table.groupby(level=["setting", "specification"], sort=False).mean().round(3).to_string())
    print(f"One standard error of a share near .95 is {np.sqrt(0.95 * 0.05 / options.studies):.3f}.")
    if options.json:
        table.reset_index().to_json(options.json, orient="records", indent=1)


if __name__ == "__main__":
    main()
