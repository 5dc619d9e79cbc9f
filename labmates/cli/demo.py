"""``labmates demo``: the main job, offline, in under a minute."""

from __future__ import annotations

from pathlib import Path

import click

from labmates.cli.common import store_option, verbose_option
from labmates.cli.console import out
from labmates.errors import UsageError

DIAGRAM = "data → model → eval → writing"


@click.command(epilog="Example: labmates demo")
@store_option
@verbose_option
@click.option("--task", default="ecology", show_default=True, help="The science task (see: labmates tasks).")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the run.")
@click.option(
    "--reports",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("labmates-reports"),
    show_default=True,
    help="Folder that the report is written to.",
)
def demo(store: str | None, task: str, seed: int, reports: Path) -> int:
    """Let a scripted team do one science task, offline.

    Four teams of scripted agents analyse a synthetic data set whose truth is known, under one budget, and write a
    report; two judges score it. No model is called and no key is needed: the agents are the baseline
    scripted:diligent.
    """
    from labmates.cli.run import execute
    from labmates.cli.show import report_of
    from labmates.records.store import Store
    from labmates.studies.runs import new_runs
    from labmates.studies.settings import RunSettings
    from labmates.workflows.experiment import make_condition

    condition = make_condition("science", {"task": task, "model": "scripted:diligent"})
    condition.check()
    try:
        reports.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"can't write reports to '{reports}': {error.strerror}") from error
    settings = RunSettings()
    runs = new_runs(condition, seed=seed, replicates=1, settings=settings)
    with Store(store) as database:
        out().print(f"Task {task}, four teams of scripted:diligent ({DIAGRAM}), one pool of credits.", markup=False)
        code = execute(database, runs, settings, as_json=False)
        report = report_of(database, runs[0].id) if code == 0 else None
    if report is not None:
        path = reports / f"{runs[0].id}.md"
        path.write_text(report, encoding="utf-8", errors="replace")
        out().print(f"The report is in {path}", markup=False)
    return code
