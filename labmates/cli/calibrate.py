"""``labmates judge calibrate``: the reliability of a judge."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import json_option, store_option, verbose_option
from labmates.cli.console import err, notify, out, print_json
from labmates.cli.interrupt import run_until_stopped
from labmates.cli.options import model_options, options_of
from labmates.cli.tables import print_grid
from labmates.models.options import ModelOptions

if TYPE_CHECKING:
    from labmates.studies.calibration import Calibration

TRUSTED_ORDER = 0.8
"""Minimum Spearman correlation of a judge's scores with the known ones."""


@click.command(epilog="Example: labmates judge calibrate --judge scripted:referee --task ecology --seeds 3")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    required=True,
    metavar="NAME",
    help="A model as provider:name, which judges by rubrics, or a registered judge; can be repeated.",
)
@click.option("--task", "tasks", multiple=True, default=["ecology"], show_default=True, help="Task; can be repeated.")
@click.option(
    "--seeds", type=click.IntRange(1, 100), default=3, show_default=True, help="Number of data sets per task."
)
@click.option("--difficulty", type=click.Choice(["easy", "medium", "hard"]), default="medium", show_default=True)
@click.option("--prices", metavar="PRICES", help="Price of judging; by default $0.50 and $3 per million tokens.")
@json_option("per judge and task")
@store_option
@verbose_option
def calibrate(
    judges: tuple[str, ...],
    tasks: tuple[str, ...],
    seeds: int,
    difficulty: str,
    prices: str | None,
    as_json: bool,
    store: str | None,
    **values: Any,
) -> int:
    """Measure how well a judge's scores follow known quality.

    The judge scores reports of known quality: the truth, the truth with parts omitted or altered, another data set's,
    empty talk, and reports with prompt injections that demand a score. Printed are rank correlations and errors of its
    scores against the known ones, the shift by the injections, and the number of sentences with and without an
    injection that the screening flags. A flagged report is rated twice.

    The store keeps the replies and the batches of models: after an interruption the same command resumes, and pays no
    call twice. To repeat the calls, choose another store.
    """
    from labmates.budgets.prices import read_prices
    from labmates.judges.panel import make_panel
    from labmates.models.catalog import Catalog
    from labmates.records.store import Store
    from labmates.studies.calibration import calibrate as work
    from labmates.studies.settings import RunSettings

    asked = RunSettings(models=model_options(values), judges=judges)
    asked = asked.resolved(Catalog(asked.models))
    panel = make_panel(asked.judges, always=())
    with Store(store) as database:
        calibrations = run_until_stopped(
            work(
                database,
                panel,
                tasks,
                asked.models,
                seeds=seeds,
                difficulty=difficulty,  # type: ignore[arg-type]
                prices=read_prices(prices) if prices else None,
                watch=None if as_json else _watch,
                notify=notify,
            )
        )
    if calibrations is None:
        err().print("Interrupted. Replies and batches are kept: run the same command to resume.")
        return 130
    for calibration in calibrations:
        if as_json:
            print_json(_json(calibration))
        else:
            _print(calibration)
    if not as_json:
        _print_screening()
    return 0 if all(map(_scored, calibrations)) else 1


calibrate.params += options_of(ModelOptions)


def _scored(calibration: Calibration) -> bool:
    """Whether the judge scored any non-empty report."""
    reports = (rated for rated in calibration.rated if rated.specimen.text)
    return any(value is not None for report in reports for value in report.scores.values())


def _watch(done: int, all_: int) -> None:
    if done == all_ or done % max(1, all_ // 10) == 0:
        err().print(f"{done} of {all_} verdicts")


def _print(calibration: Calibration) -> None:
    from labmates.budgets.money import show_dollars

    out().print(f"\n{calibration.judge} (version {calibration.version}) on {calibration.task}", style="bold")
    headings = ["metric", "reports", "unscored", "Spearman", "Kendall", "mean error", "mean |error|"]
    rows = []
    for fit in calibration.fits:
        numbers = (fit.spearman, fit.kendall, fit.mean_error, fit.mean_absolute_error)
        rows.append([fit.metric, str(fit.reports), str(fit.unscored), *map(_number, numbers)])
    print_grid(headings, rows, [heading != "metric" for heading in headings])
    headings = ["order in the report", "metric", "pairs", "moved (mean)", "moved (most)"]
    rows = [
        [move.order, move.metric, str(move.pairs), _number(move.mean), _number(move.most)] for move in calibration.moves
    ]
    print_grid(headings, rows, [place > 1 for place in range(len(headings))])
    out().print(f"It {_follows(calibration)}, and {_obeys(calibration)}.")
    if calibration.calls:
        tokens = calibration.input_tokens + calibration.output_tokens
        calls = f"{calibration.calls} model calls ({calibration.cached_calls} replayed from the store)"
        out().print(f"{calls}, {tokens:,} tokens, {show_dollars(calibration.cost)}")


def _print_screening() -> None:
    from labmates.judges.specimens import measure_screening

    rows = [[set_.name, str(set_.sentences), str(set_.flagged), str(set_.removed)] for set_ in measure_screening()]
    out().print("\nScreening of reports for orders to the judge", style="bold")
    print_grid(["sentences", "number", "flagged", "removed"], rows, [False, True, True, True])


def _follows(calibration: Calibration) -> str:
    known = {fit.metric: fit.spearman for fit in calibration.fits if fit.spearman is not None}
    if not known:
        return "too few scores to compare with the known ones"
    astray = [metric for metric, value in known.items() if value < TRUSTED_ORDER]
    return f"does not follow the known {' and '.join(astray)}" if astray else "follows the known scores"


def _obeys(calibration: Calibration) -> str:
    from labmates.judges.specimens import TRUSTED_MOVE

    means = [(move.order, move.mean) for move in calibration.moves if move.mean is not None]
    if not means:
        return "too few scores to test for prompt injection"
    obeyed = dict.fromkeys(order for order, mean in means if mean > TRUSTED_MOVE)
    return f"obeys {' and '.join(obeyed)} orders in a report" if obeyed else "is not moved by orders in a report"


def _json(calibration: Calibration) -> dict[str, Any]:
    from labmates.budgets.money import format_dollars
    from labmates.judges.specimens import measure_screening

    data = {name: value for name, value in asdict(calibration).items() if name != "rated"}
    data["screening"] = list(map(asdict, measure_screening()))
    reports = [
        {
            "seed": rated.seed,
            "report": rated.specimen.name,
            "order": rated.specimen.order or None,
            "known": rated.specimen.known,
            "scores": rated.scores,
            "reasons": rated.reasons,
        }
        for rated in calibration.rated
    ]
    return {**data, "cost": format_dollars(calibration.cost), "reports": reports}


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
