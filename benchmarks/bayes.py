"""What the Bayesian models cost: ours beside NUTS on the same cells and NUTS on plain rows, in CPU seconds.

    python -m benchmarks.bayes --nuts --rows 0.05
    python -m benchmarks.bayes --experiment prediction --nuts --rows 0.05

Rows are simulated at the size of the cooperative-profiles paper. NUTS on all rows would take hours: it runs on a share
of the rows (`--rows`), the cost of one gradient on all of them is measured, and the whole is projected as gradients
times that cost, with the number of gradients that the share took for each effective draw. The prediction of lab
outcomes has 1,462 rows; there `--rows` is the share of the paper's draws that NUTS on rows is run for, projected
linearly.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.plain_models import plain, prediction_rows, proximity_rows
from labmates.models.roster import roster
from labmates.stats.bayes.posterior import furthest
from labmates.workflows.games.prediction import FORMS
from labmates.workflows.games.prediction import nuts as prediction_nuts
from labmates.workflows.games.prediction.fit import fit_prediction
from labmates.workflows.games.prediction.simulation import simulate_prediction
from labmates.workflows.games.proximity import nuts as proximity_nuts
from labmates.workflows.games.proximity.cells import REFERENCE_GAME, collapse, with_predictors
from labmates.workflows.games.proximity.fit import SPECIFICATIONS, Fit, fit
from labmates.workflows.games.proximity.simulation import CLUSTERED, ROWS, proximity_design, simulated_rows, true_names

OUTCOME = "pareto_proximity"


def proximity(*, with_nuts: bool, share: float, specifications: tuple[str, ...]) -> None:
    """Print what the regression of proximity costs (experiment 1)."""
    design = proximity_design(roster())
    names = true_names(design)
    rows = with_predictors(simulated_rows(design, CLUSTERED, seed=1), REFERENCE_GAME)
    cells, seconds = _timed(lambda: collapse(rows, OUTCOME, names))
    print(
        f"\nProximity: {cells.rows:,} of {ROWS:,} rows collapsed to {len(cells.count):,} cells in {seconds:.2f} CPU s"
    )
    print("specification  method                  CPU s  effective  per CPU s  quality")
    for specification in SPECIFICATIONS:
        if specification not in specifications:
            continue
        ours, seconds_of_ours = _timed(partial(fit, cells, specification))
        _line(specification, "importance sampling", seconds_of_ours, ours.posterior.diagnostics)
        if with_nuts:
            theirs, seconds = _timed(partial(proximity_nuts.fit_cells, ours))
            most, name = furthest(ours.posterior, theirs)
            said = f"means within {most:.3f} sd ({name})"
            _line(specification, "NUTS on cells", seconds, theirs.diagnostics, said)
        if share > 0:
            _on_rows(rows, ours, share, seconds_of_ours)


def _on_rows(rows: Any, ours: Fit, share: float, seconds_of_ours: float) -> None:
    """Print what NUTS takes on some of the rows, and what it would take on all of them."""
    some = rows.groupby(["model", "game", "condition"]).sample(frac=share, random_state=0)
    draws = 200
    (found, gradients), seconds = _timed(
        lambda: proximity_rows(some, OUTCOME, ours.model, draws=draws, warm_up=draws, chains=1)
    )
    _line(
        ours.specification,
        f"NUTS on {share:.0%} of rows",
        seconds,
        found.diagnostics,
        f"1 chain, {gradients:,} gradients",
    )
    each = _gradient_seconds(rows, ours)
    # Four chains of 2,000 + 2,000 as in the paper, of trajectories as long as those that were measured.
    whole = gradients / draws * 4 * 4000
    print(
        f"{'':15}one gradient on all rows takes {each * 1e3:.2f} CPU ms; four chains of 2,000 + 2,000 are projected at "
        f"{whole * each:,.0f} CPU s, {whole * each / seconds_of_ours:,.0f} times ours"
    )


def _gradient_seconds(rows: Any, ours: Fit) -> float:
    import jax
    from numpyro.infer.util import initialize_model

    with jax.enable_x64(True):
        model, given = plain(rows, OUTCOME, ours.model)
        start = initialize_model(jax.random.PRNGKey(0), model, model_args=(given,))
        gradient = jax.jit(jax.value_and_grad(start.potential_fn))
        np.asarray(gradient(start.param_info.z)[0])  # compiled here
        _, seconds = _timed(lambda: [np.asarray(gradient(start.param_info.z)[0]) for _ in range(30)])
    return seconds / 30


def prediction(*, with_nuts: bool, share: float, specifications: tuple[str, ...]) -> None:
    """Print what the prediction of one lab outcome costs (experiment 2)."""
    study = simulate_prediction(np.random.default_rng(1), "quality", between=0.5)
    print(f"\nPrediction of quality: {len(study.data.outcome):,} rows of {len(study.data.models)} models")
    print("specification  method                  CPU s  effective  per CPU s  quality")
    for form in FORMS:
        if form != "correlated" and form not in specifications:
            continue
        ours, seconds = _timed(partial(fit_prediction, study.data, form))
        _line(form, "importance sampling", seconds, ours.posterior.diagnostics)
        if with_nuts:
            theirs, taken = _timed(partial(prediction_nuts.fit_nuts, study.data, form))
            most, name = furthest(ours.posterior, theirs)
            _line(form, "NUTS, collapsed", taken, theirs.diagnostics, f"means within {most:.3f} sd ({name})")
        if share > 0 and form != "correlated":
            draws = max(20, round(2000 * share))
            on_rows = partial(prediction_rows, study.data, form, chains=1)
            rows, taken = _timed(partial(on_rows, warm_up=draws, draws=draws))
            _line(form, f"NUTS on rows, {draws}+{draws}", taken, rows.diagnostics, "1 chain")
            half = draws // 2
            _, shorter = _timed(partial(on_rows, warm_up=half, draws=half))
            # Both runs compile, so that their difference is that of draws alone.
            whole = max(0.0, taken - shorter) / (draws - half) * 2 * 2000
            print(
                f"{'':15}two chains of 2,000 + 2,000 as in the paper are projected at {whole:,.0f} CPU s without "
                f"compilation, {whole / seconds:,.0f} times ours"
            )


def _timed(function: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = function()
    return found, time.process_time() - start


def _line(specification: str, method: str, seconds: float, found: Any, said: str = "") -> None:
    quality = f"k-hat {found.k_hat:.2f}" if found.k_hat is not None else f"R-hat {found.r_hat:.3f}"
    rate = found.effective / seconds
    print(
        f"{specification:13}  {method:22}{seconds:7.2f}  {found.effective:9,.0f}  {rate:9,.1f}  {quality}"
        f"{', ' * bool(said)}{said}",
        flush=True,
    )


KINDS: dict[str, Callable[..., None]] = {"proximity": proximity, "prediction": prediction}


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", choices=KINDS, default="proximity")
    parser.add_argument("--nuts", action="store_true", help="also NUTS on cells, or on the collapsed density")
    parser.add_argument("--rows", type=float, default=0.0, help="also NUTS on this share of the rows, or of the draws")
    parser.add_argument("--spec", action="append", choices=SPECIFICATIONS, help="default: both")
    options = parser.parse_args()
    print("simulated at the size of the paper's data; CPU seconds include compilation")
    KINDS[options.experiment](
        with_nuts=options.nuts, share=options.rows, specifications=tuple(options.spec or SPECIFICATIONS)
    )


if __name__ == "__main__":
    main()
