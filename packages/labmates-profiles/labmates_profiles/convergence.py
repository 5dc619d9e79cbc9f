"""The analysis of convergence: the number of simulations that a metric needs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from pydantic import Field

from labmates.workflows.protocol.analysis import Analysis, Drawing, Params, Result, Runs, TooFewRunsError


class ConvergenceParams(Params):
    """Parameters of the analysis of convergence."""

    games: tuple[str, ...] = Field((), description="Simulations of this game; repeatable.")
    models: tuple[str, ...] = Field((), description="Simulations by this model; repeatable.")
    metrics: tuple[str, ...] = Field(
        (),
        description="A metric such as cooperation; repeatable. Default: level, the primary metric of each game.",
    )
    sizes: tuple[Annotated[int, Field(ge=1, le=100_000)], ...] = Field(
        (), description="A number of simulations; repeatable."
    )
    resamples: int = Field(200, ge=10, le=100_000, description="Bootstrap samples.")
    seed: int = Field(0, ge=0, description="Seed of the bootstrap.")


def convergence(runs: Runs, params: ConvergenceParams) -> Result:
    """Show how the error of a game's metrics falls with the number of simulations.

    The table shows the mean absolute error of a mean of n simulations, by bootstrap with replacement and by the formula
    s·√(2/(πn)). In units of the standard deviation this is 0.18 at n = 20 for any data, so it can't show that 20
    simulations are enough. The reliability can: the share of the variance between means that is due to models. Only
    runs with one model count.
    """
    from labmates_profiles import curves

    records = [
        run
        for run in runs.records("game")
        if (not params.games or run.condition["game"] in params.games)
        and (not params.models or set(run.models) <= set(params.models))
    ]
    metrics = tuple(dict.fromkeys(params.metrics)) or curves.METRICS
    sizes = sorted(set(params.sizes)) or curves.SIZES
    found = curves.convergence(records, metrics=metrics, sizes=sizes, resamples=params.resamples, seed=params.seed)
    if not found:
        known = sorted({name for run in records for name in run.metrics})
        raise TooFewRunsError(
            f"none of these {len(records)} runs is one of at least two simulations of a game by one model"
            + (f" with these metrics; metrics: {', '.join(known)}" if params.metrics else "")
        )
    alt = "Error of a mean against the number of simulations, over all and by game, and the reliability; see the table."
    figure = Drawing(
        "convergence", "How many simulations a metric needs", alt, lambda: curves.convergence_figure(found)
    )
    return Result(
        [curves.convergence_table(found)],
        [figure],
        [curves.answer(found)],
        objects=[asdict(curve) for curve in found],
    )


CONVERGENCE = Analysis(
    "convergence",
    "Convergence of the games' metrics",
    ConvergenceParams,
    convergence,
    example="labmates analyze convergence --game public-goods --plot convergence.png",
    choices=("study",),
    kind="game",
    objects="per game",
    has_figures=True,
)
