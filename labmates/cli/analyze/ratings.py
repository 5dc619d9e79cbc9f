"""``labmates analyze ratings``: how good models are in social dilemmas."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import json_option, store_option
from labmates.cli.console import print_json
from labmates.cli.tables import out_option, print_tables, write_files
from labmates.errors import UsageError

if TYPE_CHECKING:
    from labmates.analysis.ratings import Cell


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
@json_option("per cell")
@out_option
@store_option
def ratings(
    run_ids: tuple[str, ...],
    study: str | None,
    payoffs: Path | None,
    use: str,
    summary: bool,
    as_json: bool,
    files: tuple[Path, ...],
    store: str | None,
) -> int:
    """Rate models by what they earned against each other in social dilemmas.

    For each cell (a run of a game under a mechanism): the mean payoff over all seatings, the fitness after replicator
    dynamics and the population that they end in, and the deviation rating with its rank. Lists are in the order of the
    models. Under reputation, where co-players change, there are means alone.
    """
    from labmates.analysis.rating_tables import cells_table, summaries_table
    from labmates.analysis.ratings import rate, summarise

    rated = [rate(cell) for cell in _cells(run_ids, study, payoffs, use, store)]
    summaries = summarise(rated) if summary else []
    table = summaries_table(summaries) if summary else cells_table(rated)
    if not as_json:
        print_tables([table])
    elif summary:
        for one in summaries:
            print_json(asdict(one))
    else:
        for cell in rated:
            print_json(cell.as_json())
    write_files([table], files)
    return 0


def _cells(
    run_ids: tuple[str, ...], study: str | None, payoffs: Path | None, use: str, store: str | None
) -> list[Cell]:
    if payoffs is not None:
        from labmates.analysis.payoff_files import read_cells

        if run_ids or study:
            raise UsageError("rate a file of payoffs or runs, not both")
        return read_cells(payoffs)
    from labmates.records.store import Store
    from labmates.studies.cross_plays import cross_plays

    with Store(store, must_exist=True) as database:
        plays = cross_plays(database, run_ids, study=study)
    return [play.cell("sampled" if use == "sampled" else "expected") for play in plays]
