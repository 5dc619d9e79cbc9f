"""``labmates analyze agreement``: how well judges agree on the same runs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from labmates.cli.common import json_option, store_option
from labmates.cli.console import print_json
from labmates.cli.runs import run_choice
from labmates.cli.tables import out_option, print_tables, write_files
from labmates.errors import UsageError


@click.command("agreement", epilog="Example: labmates analyze agreement --kind science --task ecology")
@run_choice
@json_option("per metric and task")
@out_option
@store_option
def agreement(
    run_ids: tuple[str, ...],
    study: str | None,
    kind: str | None,
    task: str | None,
    as_json: bool,
    files: tuple[Path, ...],
    store: str | None,
) -> int:
    """Tell how well judges agree on the same runs.

    Without runs or options, all runs of the store count. For each metric and task, and for each pair of judges:
    Pearson's r of all runs and about the means of models, kappa with quadratic weights (five levels), Lin's
    concordance, Krippendorff's alpha (ordinal), and the mean difference, with 95 % intervals for new models (three
    models or more).
    """
    from labmates.records.selection import select_runs
    from labmates.records.store import Store
    from labmates.workflows.agreement import agreement as compute
    from labmates.workflows.agreement import agreement_table, ratings_frame

    with Store(store, must_exist=True) as database:
        runs = select_runs(database, run_ids, study=study, kind=kind, task=task)
        found = compute(ratings_frame(database, runs))
    if not found:
        raise UsageError(f"no metric of these {len(runs)} runs has scores of two judges; add some with labmates judge")
    table = agreement_table(found)
    if as_json:
        for one in found:
            print_json(asdict(one))
    else:
        print_tables([table])
    write_files([table], files)
    return 0
