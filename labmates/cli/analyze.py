"""``labmates analyze``: what the runs of a store mean."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from labmates.cli.common import store_option
from labmates.cli.console import out, print_json
from labmates.cli.convergence import convergence
from labmates.cli.dilemma_tables import dilemmas
from labmates.cli.populations import diversity, evolution, invasion, selfplay
from labmates.cli.prediction import prediction
from labmates.cli.proximity import proximity
from labmates.cli.ratings import ratings
from labmates.cli.reasons import reasons
from labmates.cli.runs import run_choice
from labmates.cli.teamwork import teamwork
from labmates.cli.tournament import tournament
from labmates.errors import UsageError

if TYPE_CHECKING:
    from labmates.analysis.agreement import Agreement, Estimate


@click.group(epilog="Example: labmates analyze agreement --study pilot")
def analyze() -> None:
    """Compute what the runs of a store mean."""


analyze.add_command(teamwork)
for command in (diversity, invasion, selfplay, evolution):
    analyze.add_command(command)
analyze.add_command(convergence)
analyze.add_command(proximity)
analyze.add_command(ratings)
analyze.add_command(dilemmas)
analyze.add_command(prediction)
analyze.add_command(reasons)
analyze.add_command(tournament)


@analyze.command("agreement", epilog="Example: labmates analyze agreement --kind science --task ecology")
@run_choice
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per metric and task and nothing else.")
@store_option
def agreement(
    run_ids: tuple[str, ...], study: str | None, kind: str | None, task: str | None, as_json: bool, store: str | None
) -> int:
    """Tell how well judges agree on the same runs.

    Without runs or options, all runs of the store count. For each metric and task, and for each pair of judges:
    Pearson's r, kappa with quadratic weights (five levels), Lin's concordance, Krippendorff's alpha (interval), and the
    mean difference, with 95 % intervals by bootstrap.
    """
    from labmates.analysis.agreement import agreement as compute
    from labmates.analysis.agreement import ratings_frame
    from labmates.records.database import store_url
    from labmates.records.store import Store
    from labmates.studies.select import select_runs

    database = Store(store_url(store), must_exist=True)
    try:
        runs = select_runs(database, run_ids, study=study, kind=kind, task=task)
        found = compute(ratings_frame(database, runs))
    finally:
        database.close()
    if not found:
        raise UsageError(f"no metric of these {len(runs)} runs has scores of two judges; add some with labmates judge")
    for one in found:
        if as_json:
            print_json(asdict(one))
        else:
            _print(one)
    return 0


def _print(found: Agreement) -> None:
    from rich.table import Table

    from labmates.analysis.agreement import ALL_TASKS

    of = "all tasks" if found.task == ALL_TASKS else found.task
    heading = f"\n{found.metric}, {of}: {found.runs} runs with scores of two judges or more"
    out().print(heading, style="bold", markup=False)
    table = Table(box=None, pad_edge=False)
    for name in ("judges", "runs", "Pearson r", "kappa", "concordance", "alpha", "mean difference"):
        table.add_column(name, justify="right" if name == "runs" else "left", no_wrap=name == "judges")
    notes: dict[str, None] = {}
    for pair in found.pairs:
        estimates = (pair.pearson, pair.kappa, pair.concordance, pair.alpha, pair.mean_difference)
        table.add_row(f"{pair.first}\n{pair.second}", str(pair.runs), *(_cell(one) for one in estimates))
        notes.update(dict.fromkeys(f"{pair.first} and {pair.second}: {one.reason}" for one in estimates if one.reason))
    if len(found.judges) > 2:
        table.add_row(f"all {len(found.judges)}", str(found.runs), "", "", "", _cell(found.alpha), "")
        if found.alpha.reason:
            notes[f"all: {found.alpha.reason}"] = None
    out().print(table)
    for note in (*notes, f"95 % intervals by resampling {found.unit}s; – is not defined."):
        out().print(note, style="dim", markup=False)


def _cell(estimate: Estimate) -> str:
    if estimate.value is None:
        return "–"
    interval = "" if estimate.low is None else f"\n[{estimate.low:.2f}, {estimate.high:.2f}]"
    return f"{estimate.value:.3f}{interval}"
