"""``labmates store``: care for the database of runs."""

from __future__ import annotations

import click

from labmates.cli.common import store_option
from labmates.cli.console import clean, err, out


@click.group(epilog="Example: labmates store upgrade")
def store() -> None:
    """Care for the database of runs."""


@store.command(epilog="Example: labmates store check --store sqlite:///labmates.db")
@store_option
@click.option("--study", metavar="NAME", help="Look through the runs of this study alone.")
def check(store: str | None, study: str | None) -> int:
    """Check that no run is there twice, no step was charged twice, and no ledger is out of balance.

    It only reads, also while runs go on. With faults, it ends with exit code 1.
    """
    from rich.progress import Progress

    from labmates.records.store import Store
    from labmates.records.studies import study_record
    from labmates.studies.audit import audit

    with Store(store, must_exist=True) as database:
        if study is not None:
            study_record(database.database, study)
        runs = faults = 0
        with Progress(console=err(), transient=True, disable=not err().is_terminal) as progress:
            task = progress.add_task("runs checked", total=None)
            for _, found in audit(database, database.runs(study=study)):
                runs += 1
                faults += len(found)
                progress.update(task, completed=runs)
                for fault in found:
                    out().print(f"run {fault.run}: {clean(fault.text)}", markup=False)
    out().print(f"{runs} runs checked; {faults or 'no'} faults.", markup=False)
    return 1 if faults else 0


@store.command(epilog="Example: labmates store upgrade --store sqlite:///labmates.db")
@store_option
def upgrade(store: str | None) -> None:
    """Bring a store that an older labmates has made up to date. Make a copy first: there is no way back."""
    from labmates.records.upgrade import upgrade_store

    before, after = upgrade_store(store)
    said = f"it is of version {after} already" if before == after else f"from version {before} to {after}"
    out().print(f"The store is up to date: {said}.", markup=False)
