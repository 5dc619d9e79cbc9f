"""``labmates store``: maintenance of the database of runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from labmates.cli.common import SuggestingGroup, json_option, store_option
from labmates.cli.console import err, print_json, say
from labmates.cli.interrupt import run_until_stopped

if TYPE_CHECKING:
    from labmates.records.store import Store
    from labmates.studies.audit import Fault


@click.group(cls=SuggestingGroup, epilog="Example: labmates store upgrade")
def store() -> None:
    """Check, copy and upgrade databases of runs."""


_GIVEN = click.argument("given", metavar="[STORE]", required=False)


@store.command(epilog="Example: labmates store check labmates.db")
@_GIVEN
@store_option
@click.option("--study", metavar="NAME", help="Check the runs of this study only.")
@json_option()
def check(given: str | None, store: str | None, study: str | None, as_json: bool) -> int:
    """Verify the digests of runs, and look for duplicate runs, double charges and wrong sums.

    The check only reads the store, works while runs are in progress, and calls no model. It prints the digest of all
    ended runs, as in a report. The exit code is 1 if it finds faults.
    """
    from labmates.records.digests import digest_of_all
    from labmates.records.store import Store
    from labmates.records.studies import study_record
    from labmates.studies.audit import Fault, begun_runs, ended_digests, is_late, overspent

    def tell(fault: Fault) -> None:
        faults.append(fault)
        if not as_json:
            whose = f"run {fault.run}: " if fault.run else ""
            say(f"{whose}{fault.text}")

    faults: list[Fault] = []
    with Store(given or store, must_exist=True) as database:
        if study is not None:
            study_record(database, study)
        runs = begun_runs(database, study=study)
        if run_until_stopped(_check(database, runs, tell)) is None:
            return 130
        for name, text in overspent(database, study):
            tell(Fault("", f"study {name}: {text}"))
        digests = ended_digests(database, study=study)
    whole = digest_of_all(digests) if digests and not faults else None
    if as_json:
        listed = [asdict(fault) for fault in faults]
        print_json({"runs": len(runs), "faults": listed, "ended": len(digests), "digest": whole})
        return 1 if faults else 0
    say(f"{len(runs)} runs checked; {len(faults) or 'no'} fault{'s' * (len(faults) != 1)}.")
    if late := sum(map(is_late, digests)):
        say(f"{late} digests were computed when the store was upgraded.")
    if whole:
        say(f"Digest of {len(digests)} ended runs: {whole}")
    return 1 if faults else 0


async def _check(store: Store, runs: Sequence[str], tell: Callable[[Fault], None]) -> int:
    """Report faulty runs, and return the number of runs."""
    from labmates.studies.audit import audit

    with err().status("checking …") as status:
        for done, (_, faults) in enumerate(audit(store, runs), start=1):
            await asyncio.sleep(0)  # lets Ctrl-C through
            status.update(f"checking: {done:,} of {len(runs):,} runs")
            for fault in faults:
                tell(fault)
    return len(runs)


@store.command(epilog="Example: labmates store upgrade labmates.db")
@_GIVEN
@store_option
def upgrade(given: str | None, store: str | None) -> None:
    """Upgrade a store from an older labmates to this version. Make a copy first: an upgrade can't be undone."""
    from labmates.records.migrations import upgrade_store

    with err().status("upgrading …"):
        before, after = upgrade_store(given or store)
    change = f"it is of version {after} already" if before == after else f"from version {before} to {after}"
    say(f"The store is up to date: {change}.")


@store.command(epilog="Example: labmates store copy labmates.db postgresql://lab@db.example.org/runs")
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@click.option("--study", metavar="NAME", help="Copy only the runs of this study.")
@click.option("--run", "runs", metavar="RUN", multiple=True, help="Copy only this run; repeatable.")
@json_option()
def copy(source: str, target: str, study: str | None, runs: tuple[str, ...], as_json: bool) -> None:
    """Copy a store, one study or some runs into a new or empty store.

    SOURCE and TARGET are URLs or paths of SQLite files. Workers can keep writing to SOURCE: the copy is a consistent
    snapshot. Runs still running in SOURCE are interrupted in the copy. A copy in SQLite is a single file
    without the space and the words of deleted runs, which any SQLite program can read from any medium.
    """
    from labmates.records.copying import copy_store

    with progress_of_runs("copying", again="Nothing was copied.") as watch:
        copied = copy_store(source, target, study=study, runs=runs, watch=watch)
    if as_json:
        print_json(asdict(copied))
    else:
        say(f"{copied.runs:,} runs, {copied.studies:,} studies and {copied.replies:,} cached replies copied.")


@contextmanager
def progress_of_runs(doing: str, *, again: str) -> Iterator[Callable[[int, int], None]]:
    """Show the number of finished runs; at Ctrl-C, the hint `again`."""
    with err().status(f"{doing} …") as status:
        try:
            yield lambda done, total: status.update(f"{doing}: {done:,} of {total:,} runs")
        except KeyboardInterrupt:
            err().print(f"Stopped. {again}")
            raise
