"""``labmates analyze ratings``: how good models are in social dilemmas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import store_option
from labmates.cli.console import clean, out, print_json
from labmates.errors import UsageError

if TYPE_CHECKING:
    from labmates.analysis.ratings import Cell, Interval, Rated, Summary


@click.command("ratings", epilog="Example: labmates analyze ratings --study dilemmas --summary")
@click.argument("run_ids", nargs=-1, metavar="[RUN]...")
@click.option("--study", metavar="NAME", help="Runs of this study.")
@click.option(
    "--payoffs",
    type=click.Path(path_type=Path),
    help="Rate a file of recorded payoffs instead of runs: models, and cells with the payoffs of each match.",
)
@click.option(
    "--use",
    type=click.Choice(["expected", "sampled"]),
    default="expected",
    show_default=True,
    help="Of runs, the payoffs to be expected of the distributions handed in, or those of the actions drawn.",
)
@click.option(
    "--summary",
    is_flag=True,
    help="Means over runs with 95 % intervals instead of ratings of each run; also with --json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per cell and nothing else.")
@store_option
def ratings(
    run_ids: tuple[str, ...],
    study: str | None,
    payoffs: Path | None,
    use: str,
    summary: bool,
    as_json: bool,
    store: str | None,
) -> int:
    """Rate models by what they earned against each other in social dilemmas.

    For each cell (a run of a game under a mechanism): the mean payoff over all seatings, the fitness after replicator
    dynamics and the population that they end in, and the deviation rating with its rank. Lists are in the order of the
    models. Under reputation, where co-players change, there are means alone.
    """
    from labmates.analysis.ratings import rate, summarise

    rated = [rate(cell) for cell in _cells(run_ids, study, payoffs, use, store)]
    if summary:
        found = summarise(rated)
        for one in found:
            if as_json:
                print_json(asdict(one))
        if not as_json:
            _print_summaries(found)
        return 0
    for cell in rated:
        if as_json:
            print_json(cell.as_json())
        else:
            _print_cell(cell)
    return 0


def _cells(
    run_ids: tuple[str, ...], study: str | None, payoffs: Path | None, use: str, store: str | None
) -> list[Cell]:
    if payoffs is not None:
        from labmates.analysis.payoff_files import read_cells

        if run_ids or study:
            raise UsageError("rate a file of payoffs or runs, not both")
        return read_cells(payoffs)
    from labmates.records.database import store_url
    from labmates.records.store import Store
    from labmates.studies.cross_plays import cross_plays

    database = Store(store_url(store), must_exist=True)
    try:
        plays = cross_plays(database, run_ids, study=study)
    finally:
        database.close()
    return [play.cell("sampled" if use == "sampled" else "expected") for play in plays]


def _print_cell(rated: Rated) -> None:
    from rich.table import Table

    out().print(clean(f"\n{_told(rated.cell)}"), style="bold", markup=False)
    table = Table(box=None, pad_edge=False)
    names = ("mean", "fitness", "population", "deviation", "rank")
    for heading in ("model", *names):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for place, model in enumerate(rated.cell.models):
        values = [getattr(rated, name) for name in names]
        cells = [
            "-" if value is None else f"{value[place]:.{1 if name == 'rank' else 4}f}"
            for name, value in zip(names, values, strict=True)
        ]
        table.add_row(clean(model), *cells)
    out().print(table)


def _told(cell: Cell) -> str:
    return ", ".join(part for part in (cell.game, cell.mechanism, cell.run) if part)


def _print_summaries(summaries: Sequence[Summary]) -> None:
    from rich.table import Table

    from labmates.analysis.ratings import ALL_GAMES

    groups: dict[tuple[str, str, tuple[str, ...]], list[Summary]] = {}
    for one in summaries:
        groups.setdefault((one.mechanism, one.game, one.models), []).append(one)
    for (mechanism, game, models), some in groups.items():
        of = "all games" if game == ALL_GAMES else game
        out().print(clean(f"\n{of}, {mechanism}, {some[0].runs} runs"), style="bold", markup=False)
        table = Table(box=None, pad_edge=False)
        table.add_column("model")
        for one in some:
            table.add_column(f"{one.rating}, normalised" if one.normalised else one.rating, no_wrap=True)
        for place, model in enumerate(models):
            table.add_row(clean(model), *(_shown(one.each[place]) for one in some))
        table.add_row("average", *(_shown(one.average) for one in some), style="cyan")
        out().print(table)
    out().print("\nIn brackets: 95 % intervals by bootstrap over runs.", style="dim", markup=False)


def _shown(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return f"{interval.value:.3f}"
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
