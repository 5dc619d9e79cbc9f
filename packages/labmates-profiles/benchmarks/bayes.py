"""What the Bayesian models cost at the size of the cooperative-profiles paper, in CPU seconds.

make -C packages/labmates-profiles bench NAME=bayes
make -C packages/labmates-profiles bench NAME=bayes ARGS="--experiment prediction"
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from labmates.models.roster import roster
from labmates_profiles.prediction import FORMS
from labmates_profiles.prediction.fit import fit_prediction
from labmates_profiles.prediction.simulation import simulate_prediction
from labmates_profiles.proximity.cells import REFERENCE_GAME, collapse, with_predictors
from labmates_profiles.proximity.fit import SPECIFICATIONS, fit
from labmates_profiles.proximity.simulation import CLUSTERED, ROWS, proximity_design, simulated_rows, true_names


def proximity() -> None:
    """Print what the regression of cooperation costs (experiment 1)."""
    design = proximity_design(roster())
    rows = with_predictors(simulated_rows(design, CLUSTERED, seed=1), REFERENCE_GAME)
    cells, seconds = _timed(lambda: collapse(rows, "pareto_proximity", true_names(design)))
    print(f"{cells.rows:,} of {ROWS:,} rows collapsed to {len(cells.count):,} cells in {seconds:.2f} CPU s")
    for specification in SPECIFICATIONS:
        _line(specification, *_timed(partial(fit, cells, specification)))


def prediction() -> None:
    """Print what the prediction of one lab outcome costs (experiment 2)."""
    study = simulate_prediction(np.random.default_rng(1), "quality", between=0.5)
    print(f"{len(study.data.outcome):,} rows of {len(study.data.models)} models")
    for form in FORMS:
        _line(form, *_timed(partial(fit_prediction, study.data, form)))


def _timed(function: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = function()
    return found, time.process_time() - start


def _line(form: str, fitted: Any, seconds: float) -> None:
    quality = fitted.posterior.diagnostics
    draws = f"{quality.effective:9,.0f} effective draws  k-hat {quality.k_hat:.2f}"
    print(f"{form:12}{seconds:7.2f} CPU s  {draws}", flush=True)


KINDS: dict[str, Callable[[], None]] = {"proximity": proximity, "prediction": prediction}


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", choices=KINDS, default="proximity")
    KINDS[parser.parse_args().experiment]()


if __name__ == "__main__":
    main()
