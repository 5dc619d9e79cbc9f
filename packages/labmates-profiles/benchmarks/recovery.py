"""Do our fits give back the coefficients that the cooperative-profiles paper printed, from data simulated with them?

    make -C packages/labmates-profiles bench NAME=recovery ARGS="--studies 100"
    make -C packages/labmates-profiles bench NAME=recovery ARGS="--studies 20 --table 7 --json recovery.json"

Each study is simulated with the coefficients of Table 6 (Pareto proximity) or Table 7 (accuracy, quality and
completeness), at the paper's size, and fitted in all forms. Two worlds: ``paper``, in which models differ by what the
tables name alone, as the paper's regressions assume; and ``differ``, in which they differ beyond that.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from labmates.models.roster import roster
from labmates_profiles.bayes.posterior import Posterior
from labmates_profiles.prediction import FORMS
from labmates_profiles.prediction.fit import NOISE, fit_prediction
from labmates_profiles.prediction.published import PUBLISHED as TABLE_7
from labmates_profiles.prediction.published import printed
from labmates_profiles.proximity.fit import SPECIFICATIONS, fit
from labmates_profiles.proximity.report import PUBLISHED
from tests.profiles.simulated_prediction import simulate_prediction
from tests.profiles.simulated_proximity import (
    CLUSTERED,
    INDEPENDENT,
    proximity_design,
    simulated_cells,
)

WORLDS = ("paper", "differ")
DRAWS = 1000


@dataclass(frozen=True)
class Found:
    """One coefficient of one fit: what it is by the posterior, and whether the 95 % interval holds what was printed."""

    table: str
    world: str
    form: str
    name: str
    printed: float
    mean: float
    held: bool


def study(task: tuple[str, str, int]) -> list[Found]:
    """Simulate one study of a table in a world, and return what each form says of each printed coefficient."""
    table, world, seed = task
    fits: dict[str, Posterior] = {}
    if table == "6":
        truth: Mapping[str, float] = PUBLISHED
        world_of = INDEPENDENT if world == "paper" else CLUSTERED
        cells = simulated_cells(proximity_design(roster()), world_of, seed=seed)
        fits |= {one: fit(cells, one, draws=DRAWS, seed=seed).posterior for one in SPECIFICATIONS}
    else:
        outcome = table.removeprefix("7 ")
        truth = {name: value for name, value in printed(outcome).items() if name != NOISE}
        between = 0.0 if world == "paper" else 0.5
        data = simulate_prediction(np.random.default_rng([seed, 7]), outcome, between=between).data
        fits |= {one: fit_prediction(data, one, draws=DRAWS, starts=1, seed=seed).posterior for one in FORMS}
    return [
        Found(table, world, form, name, value, one.mean, one.low <= value <= one.high)
        for form, posterior in fits.items()
        for name, value in truth.items()
        for one in [posterior.summaries[name]]
    ]


def main() -> None:
    """Simulate, fit, and print what was given back, a row for each coefficient."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=20, help="studies of each table and world (default 20)")
    parser.add_argument("--table", choices=["6", "7"], action="append", help="one table; repeatable")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    asked = parser.parse_args()
    wanted = asked.table or ["6", "7"]
    tables = [name for name in ("6", *(f"7 {outcome}" for outcome in TABLE_7)) if name[0] in wanted]
    tasks = list(product(tables, WORLDS, range(asked.studies)))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = [one for some in pool.map(study, tasks) for one in some]
    groups: dict[tuple[str, str], dict[str, dict[str, list[Found]]]] = defaultdict(lambda: defaultdict(dict))
    for one in found:
        groups[one.table, one.world][one.name].setdefault(one.form, []).append(one)
    for (table, world), names in groups.items():
        forms = list(next(iter(names.values())))
        print(f"\nTable {table}, {world}: {asked.studies} studies; mean of estimates, share of intervals that hold it")
        print(f"{'':26}{'printed':>9}" + "".join(f"{form:>20}" for form in forms))
        for name, by_form in names.items():
            cells = [(np.mean([x.mean for x in some]), np.mean([x.held for x in some])) for some in by_form.values()]
            first = next(iter(by_form.values()))[0].printed
            print(f"{name:26}{first:+9.3f}" + "".join(f"{mean:+13.3f}  {held:.2f}" for mean, held in cells))
        shares = [np.mean([x.held for some in names.values() for x in some[form]]) for form in forms]
        print(f"{'all':35}" + "".join(f"{'':13}  {share:.2f}" for share in shares), flush=True)
    if asked.json:
        asked.json.write_text(json.dumps([vars(one) for one in found]))


if __name__ == "__main__":
    main()
