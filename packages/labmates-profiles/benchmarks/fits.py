"""Mean estimates, and how often 95 % intervals hold the truth, over many simulated studies.

The experiment `intervals` is the engine of all other tables (`benchmarks.interval_coverage`); `verdict` is whether
games predict better than the models' mean (`benchmarks.verdicts`).

    make -C packages/labmates-profiles bench NAME=fits ARGS="--studies 100 --json coverage.json"
    make -C packages/labmates-profiles bench NAME=fits ARGS="--experiment prediction --setting all/0.8/0.5"
    make -C packages/labmates-profiles bench NAME=fits ARGS="--experiment intervals --studies 2000"

Each study is simulated with the coefficients that the paper published and with models that differ beyond their
predictors. Studies run in processes beside each other; one takes some seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
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
from labmates_profiles.prediction.published import PUBLISHED, printed
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


@dataclass(frozen=True)
class Held:
    """What one fit of one simulated study said of one true number.

    Attributes
    ----------
    credible
        Whether the interval leaves 0 out.
    """

    specification: str
    name: str
    truth: float
    estimate: float
    held: bool
    credible: bool
    width: float
    k_hat: float
    seconds: float


@cache
def _design(models: int) -> pd.DataFrame:
    """Return the design with models of all sizes and families, those of the roster in turn."""
    known = roster()
    return proximity_design([known[at] for at in np.linspace(0, len(known) - 1, models).round().astype(int)])


def proximity(setting: str, seed: int) -> list[Held]:
    """Simulate one study of proximity and fit all specifications to it."""
    world, models = PROXIMITY[setting]
    cells = simulated_cells(_design(models), world, seed=seed)
    truth = {name: world.coefficients[name] for name in (INTERCEPT, *cells.names)}
    return [
        held
        for specification in SPECIFICATIONS
        for held in _held(specification, partial(fit, cells, specification, draws=DRAWS, seed=seed), truth)
    ]


def prediction(setting: str, seed: int) -> list[Held]:
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
        truth = {name: value for name, value in printed(*outcome or ["quality"]).items() if name != NOISE}
    return _of_forms(study.data, truth, FEW, seed)


def _in_world(world: World, models: int, games: int, seed: int) -> list[Held]:
    """Simulate 24 conditions of each model, of which few games and no controls tell, and fit all forms to it."""
    study = simulate_prediction(
        np.random.default_rng([seed, 8]),
        effects=[*PUBLISHED["quality"].games[:games], *[0.0] * (len(GAME_ORDER) - games)],
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


def _of_forms(data: PredictionData, truth: Mapping[str, float], draws: int, seed: int) -> list[Held]:
    fits = {form: partial(fit_prediction, data, form, draws=draws, starts=1, seed=seed) for form in FORMS}
    return [held for form, fitted in fits.items() for held in _held(form, fitted, truth)]


def _held(specification: str, fitted: Callable[[], Any], truth: Mapping[str, float]) -> Iterator[Held]:
    start = time.process_time()
    posterior = fitted().posterior
    seconds = time.process_time() - start
    k_hat = posterior.diagnostics.k_hat or 0.0
    for name, value in truth.items():
        one = posterior.summaries[name]
        held, width = one.low <= value <= one.high, one.high - one.low
        yield Held(specification, name, value, one.mean, held, one.credible, width, k_hat, seconds)


@cache
def _controls() -> Array:
    """Return IFEval, MMLU-Pro, log10 of the size and whether it thinks, of the paper's 34 models."""
    kept = [one for one in roster() if one.name != LEFT_OUT]
    return np.array([[one.ifeval, one.mmlu_pro, np.log10(one.size), one.thinking] for one in kept], dtype=float)


KINDS: dict[str, tuple[Callable[[str, int], list[Held]], tuple[str, ...]]] = {
    "proximity": (proximity, tuple(PROXIMITY)),
    "prediction": (
        prediction,
        (
            *PREDICTION,
            *(
                f"{true}/{corr}/{omega}"
                for omega in (0, 0.25, 0.5, 1)
                for corr in (0.8, 0.95)
                for true in ("null", "T7")
            ),
        ),
    ),
}
"""What simulates and fits one study, and its settings by default."""


def _study(job: tuple[str, str, int]) -> tuple[str, list[Held]]:
    experiment, setting, seed = job
    return setting, KINDS[experiment][0](setting, seed)


def coverage(experiment: str, settings: tuple[str, ...], studies: int, processes: int) -> pd.DataFrame:
    """Return one row per setting, specification and number: the share of studies whose interval held it, and more."""
    jobs = [(experiment, setting, seed) for seed in range(studies) for setting in settings]
    rows = []
    with ProcessPoolExecutor(processes) as pool:
        for done, (setting, held) in enumerate(pool.map(_study, jobs, chunksize=1), 1):
            rows += [{"setting": setting, **vars(one)} for one in held]
            if done % 20 == 0:
                print(f"{done} of {len(jobs)} simulated studies", flush=True)
    frame = pd.DataFrame(rows)
    grouped = frame.groupby(["setting", "specification", "name"], sort=False)
    return grouped.agg(
        studies=("held", "size"),
        truth=("truth", "first"),
        estimate=("estimate", "mean"),
        coverage=("held", "mean"),
        credible=("credible", "mean"),
        width=("width", "mean"),
        worst_k_hat=("k_hat", "max"),
        seconds=("seconds", "mean"),
    ).reset_index()


def show(table: pd.DataFrame) -> None:
    """Print the mean estimate and the coverage of each number, and over all numbers."""
    for setting in table["setting"].unique():
        mine = table[table["setting"] == setting]
        studies = int(mine["studies"].iloc[0])
        print(f"\n{setting}: mean estimates in {studies} studies, and the share of 95 % intervals that hold the truth")
        columns = [mine.set_index("name").groupby(level=0, sort=False)["truth"].first()]
        for specification, fits in mine.groupby("specification", sort=False):
            named = fits.set_index("name")[["estimate", "coverage"]]
            columns.append(named.rename(columns={"estimate": specification, "coverage": "held"}))
        print(pd.concat(columns, axis=1).round(3).to_string())
        whole = {name: (name, "mean") for name in ("coverage", "credible", "seconds")}
        print(mine.groupby("specification", sort=False).agg(**whole, k_hat=("worst_k_hat", "max")).round(2).to_string())


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", choices=[*KINDS, "intervals", "verdict"], default="proximity")
    parser.add_argument("--setting", action="append", help="default: those of the docs")
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, help="write the table to this file")
    options = parser.parse_args()
    if options.experiment == "intervals":
        interval_coverage.run(options.studies, options.json)
        return
    if options.experiment == "verdict":
        verdicts.run(options.studies, options.json)
        return
    settings = tuple(options.setting or KINDS[options.experiment][1])
    table = coverage(options.experiment, settings, options.studies, options.processes)
    show(table)
    if options.json:
        options.json.write_text(json.dumps(table.to_dict("records"), indent=1), "utf-8")
    off = table[(table["specification"] == "robust") & ~table["coverage"].between(0.92, 0.98)]
    noise = np.sqrt(0.95 * 0.05 / options.studies)
    print(f"\nOne standard error of a share is {noise:.3f}; single numbers outside 92-98 %: {len(off)}")


if __name__ == "__main__":
    main()
