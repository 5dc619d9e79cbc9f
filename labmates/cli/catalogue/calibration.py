"""``labmates judges calibrate``: the reliability of a judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from labmates.budgets.money import format_dollars, show_dollars
from labmates.judges.specimens import TRUSTED_MOVE
from labmates.stats.tables import Table
from labmates.tasks.base import Difficulty
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command
from labmates.workflows.protocol.verb import InterruptedWorkError

if TYPE_CHECKING:
    from labmates.studies.calibration import Calibration
    from labmates.workflows.protocol.command import Lab

TRUSTED_ORDER: Final = 0.8
"""Minimum Spearman correlation of a judge's scores with the known ones."""


class CalibrateParams(Params):
    """The judges, and the reports that they score."""

    judges: tuple[str, ...] = Field(
        description="A model as provider:name, which judges by rubrics, or a registered judge; repeatable."
    )
    tasks: tuple[str, ...] = Field((), description="Task; repeatable. [default: ecology]")
    seeds: int = Field(3, ge=1, le=100, description="Number of data sets per task.")
    difficulty: Difficulty = Field("medium", description="Difficulty of the data sets.")
    prices: str | None = Field(
        None, description="Price of judging. [default: 0.50 and 3 dollars per million input and output tokens]"
    )


def calibrate(lab: Lab, params: CalibrateParams) -> Iterator[Result]:
    """Measure how well a judge's scores follow known quality.

    The judge scores reports of known quality: the truth, the truth with parts omitted or altered, another data set's,
    empty talk, and reports with prompt injections that demand a score. Printed are rank correlations and errors of its
    scores against the known ones, and the shift by the injections. A flagged report is rated twice.

    The store keeps the replies and the batches of models: after an interruption the same command resumes, and pays no
    call twice. To repeat the calls, choose another store.
    """
    from labmates.budgets.prices import read_prices
    from labmates.judges.panel import make_panel
    from labmates.studies.calibration import calibrate as work
    from labmates.studies.settings import RunSettings

    asked = RunSettings(models=lab.catalog.options(), judges=params.judges).resolved(lab.catalog)
    calibrating = work(
        lab.store,
        make_panel(asked.judges, always=()),
        params.tasks or ("ecology",),
        asked.models,
        seeds=params.seeds,
        difficulty=params.difficulty,
        prices=read_prices(params.prices) if params.prices else None,
        watch=lambda done, total: lab.step(f"{done} of {total} verdicts"),
        notify=lab.notify,
    )
    try:
        calibrations = lab.finish(calibrating)
    except InterruptedWorkError:
        lab.notify("Interrupted. Replies and batches are kept: run the same command to resume.")
        raise
    yield from map(_result, calibrations)


def _result(calibration: Calibration) -> Result:
    name = f"{calibration.judge} (version {calibration.version}) on {calibration.task}"
    fits = Table("fits", f"Agreement of {name} with known scores", None, map(asdict, calibration.fits))
    moves = Table("moves", f"Effect of orders on {name}", None, map(asdict, calibration.moves))
    lines = [f"{name}: it {_follows(calibration)}, and {_obeys(calibration)}."]
    if calibration.calls:
        tokens = calibration.input_tokens + calibration.output_tokens
        calls = f"{calibration.calls} model calls ({calibration.cached_calls} replayed from the store)"
        lines.append(f"{calls}, {tokens:,} tokens, {show_dollars(calibration.cost)}")
    reports = (rated for rated in calibration.rated if rated.specimen.text)
    is_scored = any(value is not None for report in reports for value in report.scores.values())
    fault = None if is_scored else f"{name} scored no report"
    return Result([fits, moves], verdict=lines, objects=[_json(calibration)], fault=fault)


def _follows(calibration: Calibration) -> str:
    known = {fit.metric: fit.spearman for fit in calibration.fits if fit.spearman is not None}
    if not known:
        return "has too few scores to compare with the known ones"
    astray = [metric for metric, value in known.items() if value < TRUSTED_ORDER]
    return f"does not follow the known {' and '.join(astray)}" if astray else "follows the known scores"


def _obeys(calibration: Calibration) -> str:
    means = [(move.order, move.mean) for move in calibration.moves if move.mean is not None]
    if not means:
        return "has too few scores to test for prompt injection"
    obeyed = dict.fromkeys(order for order, mean in means if mean > TRUSTED_MOVE)
    return f"obeys {' and '.join(obeyed)} orders in a report" if obeyed else "is not moved by orders in a report"


def _json(calibration: Calibration) -> dict[str, Any]:
    data = {name: value for name, value in asdict(calibration).items() if name != "rated"}
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


CALIBRATE = Command(
    calibrate,
    CalibrateParams,
    example="labmates judges calibrate --judge scripted:referee --task ecology --seeds 3",
    asks_models=True,
    has_store=True,
    objects="per judge and task",
)
