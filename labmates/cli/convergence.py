"""``labmates analyze convergence``: how many simulations a game's metric needs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import store_option
from labmates.cli.console import err, out, print_json
from labmates.errors import UsageError

if TYPE_CHECKING:
    from labmates.analysis.convergence import Convergence


@click.command("convergence", epilog="Example: labmates analyze convergence --game public-goods --plot convergence.png")
@click.option("--game", "games", multiple=True, metavar="NAME", help="Simulations of this game; repeatable.")
@click.option("--model", "models", multiple=True, metavar="MODEL", help="Simulations by this model; repeatable.")
@click.option("--study", metavar="NAME", help="Simulations of this study.")
@click.option(
    "--size", "sizes", multiple=True, type=click.IntRange(1, 100_000), help="A number of simulations; repeatable."
)
@click.option(
    "--resamples", type=click.IntRange(10, 100_000), default=200, show_default=True, help="Bootstrap samples."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the bootstrap.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw it to a file: png, svg or pdf.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per game and nothing else.")
@store_option
def convergence(
    games: tuple[str, ...],
    models: tuple[str, ...],
    study: str | None,
    sizes: tuple[int, ...],
    resamples: int,
    seed: int,
    plot: Path | None,
    as_json: bool,
    store: str | None,
) -> int:
    """Tell the error of a game's primary metric against the number of simulations.

    The mean absolute error of a mean of n simulations, by bootstrap and by the formula s·√(2/(πn)), which holds for any
    data; and the reliability, the share of the variance between means that is between models, which tells whether n
    are enough to tell these models apart. Out of the runs of the store with one model each.
    """
    from labmates.analysis.convergence import SIZES
    from labmates.analysis.convergence import convergence as compute
    from labmates.analysis.figures import check_figure, save_figure
    from labmates.analysis.profile_figures import convergence_figure
    from labmates.records.database import store_url
    from labmates.records.store import Store
    from labmates.studies.select import select_runs

    if plot is not None:
        check_figure(plot)
    database = Store(store_url(store), must_exist=True)
    try:
        runs = [
            run
            for run in select_runs(database, kind="game", study=study)
            if (not games or run.condition["game"] in games) and (not models or set(run.models) <= set(models))
        ]
    finally:
        database.close()
    found = compute(runs, sizes=sorted(set(sizes)) or SIZES, resamples=resamples, seed=seed)
    if not found:
        raise UsageError(f"none of these {len(runs)} runs is one of at least two simulations of a game by one model")
    for one in found:
        if as_json:
            print_json(asdict(one))
        else:
            _print(one)
    if plot is not None:
        save_figure(convergence_figure(found), plot)
        err().print(f"Drawn to {plot}", markup=False)
    return 0


def _print(found: Convergence) -> None:
    from rich.table import Table

    between = "" if found.between is None else f", between models {found.between:.3f}"
    models = "one model" if found.models == 1 else f"{found.models} models"
    heading = (
        f"\n{found.game}: {models} with at least {found.simulations} simulations; "
        f"standard deviation within a model {found.within:.3f}{between}"
    )
    out().print(heading, style="bold", markup=False)
    table = Table(box=None, pad_edge=False)
    for name in ("simulations", "error (bootstrap)", "error (formula)", "reliability"):
        table.add_column(name, justify="right")
    reliability = found.reliability or (None,) * len(found.sizes)
    for n, sampled, formula, share in zip(found.sizes, found.bootstrap, found.closed_form, reliability, strict=True):
        table.add_row(str(n), f"{sampled:.4f}", f"{formula:.4f}", "–" if share is None else f"{share:.3f}")
    out().print(table)
    if found.reliability is None:
        out().print("A reliability needs two models.", style="dim")
