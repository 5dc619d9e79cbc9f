"""``labmates analyze convergence``: how many simulations a game's metric needs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from labmates.cli.common import json_option, store_option
from labmates.cli.console import print_json
from labmates.cli.figures import draw, plot_option
from labmates.cli.tables import out_option, print_tables, write_files
from labmates.errors import UsageError


@click.command("convergence", epilog="Example: labmates analyze convergence --game public-goods --plot convergence.png")
@click.option("--game", "games", multiple=True, metavar="NAME", help="Simulations of this game; repeatable.")
@click.option("--model", "models", multiple=True, metavar="MODEL", help="Simulations by this model; repeatable.")
@click.option("--study", metavar="NAME", help="Simulations of this study.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="A metric, for instance cooperation; repeatable. By default level, the primary one of each game.",
)
@click.option(
    "--size", "sizes", multiple=True, type=click.IntRange(1, 100_000), help="A number of simulations; repeatable."
)
@click.option(
    "--resamples", type=click.IntRange(10, 100_000), default=200, show_default=True, help="Bootstrap samples."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the bootstrap.")
@plot_option()
@json_option("per game")
@out_option
@store_option
def convergence(
    games: tuple[str, ...],
    models: tuple[str, ...],
    study: str | None,
    metrics: tuple[str, ...],
    sizes: tuple[int, ...],
    resamples: int,
    seed: int,
    plot: Path | None,
    as_json: bool,
    files: tuple[Path, ...],
    store: str | None,
) -> int:
    """Tell the error of a game's metrics against the number of simulations.

    The mean absolute error of a mean of n simulations, by bootstrap with replacement and by the formula s·√(2/(πn)): in
    units of the standard deviation that is 0.18 at n = 20 for any data, so it can't tell that 20 are enough. The
    reliability can: the share of the variance between means that is between models. Out of the runs of the store with
    one model each.
    """
    from labmates.records.selection import select_runs
    from labmates.records.store import Store
    from labmates.workflows.games.convergence import METRICS, SIZES, convergence_table
    from labmates.workflows.games.convergence import convergence as compute
    from labmates.workflows.games.profile_figures import convergence_figure

    with Store(store, must_exist=True) as database:
        runs = [
            run
            for run in select_runs(database, kind="game", study=study)
            if (not games or run.condition["game"] in games) and (not models or set(run.models) <= set(models))
        ]
    found = compute(
        runs,
        metrics=tuple(dict.fromkeys(metrics)) or METRICS,
        sizes=sorted(set(sizes)) or SIZES,
        resamples=resamples,
        seed=seed,
    )
    if not found:
        known = sorted({name for run in runs for name in run.metrics})
        raise UsageError(
            f"none of these {len(runs)} runs is one of at least two simulations of a game by one model"
            + (f" with these metrics; metrics: {', '.join(known)}" if metrics else "")
        )
    table = convergence_table(found)
    if as_json:
        for one in found:
            print_json(asdict(one))
    else:
        print_tables([table])
    write_files([table], files)
    if plot is not None:
        draw(convergence_figure(found), plot)
    return 0
