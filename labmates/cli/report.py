"""``labmates report``: all results of a study on one page."""

from __future__ import annotations

from pathlib import Path

import click

from labmates.cli.common import choosing, store_option
from labmates.cli.console import err
from labmates.errors import UsageError


@click.command(epilog="Example: labmates report science-small --out report.html")
@click.argument("study", metavar="[STUDY]", required=False)
@click.option(
    "--out",
    "path",
    type=click.Path(path_type=Path),
    required=True,
    help="HTML file to write; an existing one is replaced.",
)
@click.option("--kind", metavar="KIND", help="Report on all runs of this experiment, of any study.")
@click.option("--all", "every", is_flag=True, help="Report on all runs of the store.")
@choosing(["allow_mixed"])
@store_option
def report(study: str | None, path: Path, kind: str | None, every: bool, allow_mixed: bool, store: str | None) -> None:
    """Write a study's results as one self-contained HTML page.

    The page shows the design, outcomes, results with intervals, figures, analyses, cost, and the commands
    that repeat the study. The study may still be running. STUDY is a name or a YAML file; by default the only study in
    the store.
    """
    from labmates.cli.study import stored_study
    from labmates.records.store import Store
    from labmates.reports.report import check_report, store_report, study_report, write_report
    from labmates.workflows.protocol.experiment import EXPERIMENTS

    if (study is not None) + (kind is not None) + every > 1:
        raise UsageError("a report is of one STUDY, of one --kind, or of --all runs")
    if kind is not None:
        EXPERIMENTS.get(kind)
    check_report(path)
    with Store(store, must_exist=True) as database, err().status("reading runs …"):
        if kind is not None or every:
            made = store_report(database, kind=kind, allow_mixed=allow_mixed)
        else:
            name = stored_study(database, study).name
            made = study_report(database, name, allow_mixed=allow_mixed)
    write_report(made, path)
    err().print(f"Written to {path}")
