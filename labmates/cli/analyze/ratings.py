"""``labmates analyze ratings``: how good models are in social dilemmas."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import json_option, store_option
from labmates.cli.console import complain, print_json
from labmates.cli.tables import out_option, print_tables, write_files
from labmates.errors import UsageError

if TYPE_CHECKING:
    from labmates.stats.ratings import Rated, Summary
    from labmates.workflows.dilemmas.records import Use


@click.command("ratings", epilog="Example: labmates analyze ratings --study dilemmas --summary")
@click.argument("run_ids", nargs=-1, metavar="[RUN]...")
@click.option("--study", metavar="NAME", help="Runs of this study.")
@click.option(
    "--payoffs",
    type=click.Path(path_type=Path),
    help="Rate a file of recorded payoffs instead of runs: models, and cells with the payoffs of each match.",
)
@click.option(
    "--published",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Rate the published data of CoopEval, beside the ratings that stand in them: a checkout of its repository, or "
    "the folder of a run.",
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
@click.option(
    "--keep-failed", is_flag=True, help="Rate models of which too many decisions failed, too; they are marked."
)
@json_option("per cell")
@out_option
@store_option
def ratings(
    run_ids: tuple[str, ...],
    study: str | None,
    payoffs: Path | None,
    published: Path | None,
    use: str,
    summary: bool,
    keep_failed: bool,
    as_json: bool,
    files: tuple[Path, ...],
    store: str | None,
) -> int:
    """Rate models by what they earned against each other in social dilemmas.

    For each cell (a run of a game under a mechanism): the mean payoff over all seatings, the fitness after replicator
    dynamics and the population that they end in, and the deviation rating with its rank. Lists are in the order of the
    models. Under reputation, where co-players change, there are means alone.

    A model of which more than 20 % of the decisions failed has not played: it is left out, and the others are rated
    among themselves. What its failed choices could have been bounds its mean and its rank.
    """
    from labmates.workflows.dilemmas.rating_tables import cells_table, summaries_table

    if published is not None:
        if run_ids or study or payoffs:
            raise UsageError("--published takes the place of runs and of --payoffs: give one of them")
        return _published(published, as_json=as_json, files=files)
    rated, summaries = _rated(run_ids, study, payoffs, use, store, summary=summary, keep_failed=keep_failed)
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
    if any(summaries or [one.cell.models for one in rated]):
        return 0
    complain("no model is rated: too many decisions of each of them failed (see --keep-failed)")
    return 1


def _published(folder: Path, *, as_json: bool, files: tuple[Path, ...]) -> int:
    """Show published ratings beside ours; the exit code is 1 if some folders could not be rated."""
    from labmates.workflows.dilemmas.published_payoffs import published_tables, read_published

    found, unread = read_published(folder)
    tables = published_tables(found, unread)
    if as_json:
        for row in tables[1].rows:
            print_json(row)
    else:
        print_tables(tables)
    write_files(tables, files)
    for one in unread:
        complain(f"{one.path} is left out: {one.reason}")
    return 1 if unread else 0


def _rated(
    run_ids: tuple[str, ...],
    study: str | None,
    payoffs: Path | None,
    use: str,
    store: str | None,
    *,
    summary: bool,
    keep_failed: bool,
) -> tuple[list[Rated], list[Summary]]:
    """Return the ratings of each cell, or, for a summary, those over runs."""
    if payoffs is not None:
        from labmates.stats.ratings import rate, summarise
        from labmates.workflows.dilemmas.payoff_files import read_cells

        if run_ids or study:
            raise UsageError("rate a file of payoffs or runs, not both")
        rated = [rate(cell) for cell in read_cells(payoffs)]
        return rated, summarise(rated) if summary else []
    from labmates.records.store import Store
    from labmates.workflows.dilemmas.cross_plays import cross_plays
    from labmates.workflows.dilemmas.ratings import rate_play, summarise_plays

    with Store(store, must_exist=True) as database:
        plays = cross_plays(database, run_ids, study=study)
    of: Use = "sampled" if use == "sampled" else "expected"
    if summary:
        return [], summarise_plays(plays, of, keep_failed=keep_failed)
    return [rate_play(play, of, leave_out=() if keep_failed else None) for play in plays], []
