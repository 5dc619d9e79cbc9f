"""The analyses of behavioural games: models' profiles, and the number of simulations that a metric needs."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Annotated

from pydantic import Field

from labmates.stats.figures import paged
from labmates.workflows.protocol.analysis import Analysis, Drawing, Params, Result, Runs, TooFewRunsError


def profiles(runs: Runs, _params: Params) -> Result:
    """Show models' play in the behavioural games: their cooperative profiles.

    The first table shows each game's primary metric, and cooperation by actions and by resulting welfare (0 at the
    equilibrium, 1 at the social optimum), with 95 % intervals. Runs with players of several models do not count. To
    play missing simulations too, use labmates profile. The second table shows, by game, the share of simulations and of
    models near the social optimum, compared with people.
    """
    from labmates.workflows.games.profile_figures import profile_figure, profile_pages
    from labmates.workflows.games.profiles import games_of, games_table, profiles_table
    from labmates.workflows.games.profiles import profiles as profiles_of

    records = runs.records("game")
    played = profiles_of(records, {})
    if not played:
        raise TooFewRunsError(f"none of these {len(records)} runs is an ended game by one model")
    alt = "Each model's primary metric, a panel for each game with its reference plays; the numbers are in the table."
    games = games_of(records)
    draws = [partial(profile_figure, played, [], games, page) for page in profile_pages(played, games)]
    figures = paged("profiles", "Cooperative profiles", alt, draws)
    return Result([profiles_table(played), games_table(played)], figures)


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
    from labmates.workflows.games.convergence import METRICS, SIZES, convergence_table
    from labmates.workflows.games.convergence import convergence as curves_of
    from labmates.workflows.games.profile_figures import convergence_figure

    records = [
        run
        for run in runs.records("game")
        if (not params.games or run.condition["game"] in params.games)
        and (not params.models or set(run.models) <= set(params.models))
    ]
    metrics = tuple(dict.fromkeys(params.metrics)) or METRICS
    sizes = sorted(set(params.sizes)) or SIZES
    curves = curves_of(records, metrics=metrics, sizes=sizes, resamples=params.resamples, seed=params.seed)
    if not curves:
        known = sorted({name for run in records for name in run.metrics})
        raise TooFewRunsError(
            f"none of these {len(records)} runs is one of at least two simulations of a game by one model"
            + (f" with these metrics; metrics: {', '.join(known)}" if params.metrics else "")
        )
    alt = "Error of a mean against the number of simulations, over all and by game, and the reliability; see the table."
    figure = Drawing("convergence", "How many simulations a metric needs", alt, lambda: convergence_figure(curves))
    return Result([convergence_table(curves)], [figure], objects=[asdict(curve) for curve in curves])


PROFILES = Analysis(
    "profiles",
    "Cooperative profiles",
    Params,
    profiles,
    example="labmates analyze profiles --out profiles.tex --plot profiles.png",
    kind="game",
    has_figures=True,
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
