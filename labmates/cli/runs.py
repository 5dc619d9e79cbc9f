"""``labmates runs``: the list of runs, and their deletion; ``labmates store``: maintenance of the database."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import SuggestingGroup, json_option, run_choice, store_option
from labmates.cli.console import clean, err, print_json, run_until_stopped, say
from labmates.cli.summary import show_bill
from labmates.cli.tables import print_grid
from labmates.errors import UsageError

if TYPE_CHECKING:
    from labmates.records.listing import ListedRun
    from labmates.records.pruning import Pruned
    from labmates.records.store import Store
    from labmates.studies.audit import Fault


_NUMBERS = ("seed", "seconds", "bill")


@click.group(
    cls=SuggestingGroup,
    invoke_without_command=True,
    epilog="Examples: labmates runs --status failed; labmates runs --search '\"random forest\" -leak'",
)
@store_option
@click.option("--study", metavar="NAME", default="", help="Runs of this study.")
@click.option("--kind", metavar="KIND", default="", help="Runs of this experiment.")
@click.option("--status", metavar="STATUS", default="", help="Runs with this status.")
@click.option("--model", metavar="TEXT", default="", help="Runs with a model whose name contains this text.")
@click.option("--text", metavar="TEXT", default="", help="Runs whose id, condition or error contains this text.")
@click.option(
    "--search",
    metavar="TEXT",
    default="",
    help='Runs with a message, code, output or artifact that matches: words, "a phrase", begin*, -without, OR.',
)
@click.option(
    "--sort", metavar="COLUMN", default="started", show_default=True, help="Column to sort by, largest or newest first."
)
@click.option("--limit", type=click.IntRange(1), metavar="N", default=20, show_default=True, help="Rows to print.")
@json_option("per run")
def runs(store: str | None, sort: str, limit: int, as_json: bool, **filters: Any) -> None:
    """List runs, the newest first, or delete some.

    Commands that take RUN accept an id, the first characters of one (at least 4), or 'last' for the newest run.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    from labmates.records.listing import Chosen, facets, run_page
    from labmates.records.search import parse_query
    from labmates.records.store import Store
    from labmates.records.view import run_json

    with Store(store, must_exist=True) as database:
        if filters["search"]:
            parse_query(filters["search"])
            _index(database)
        page = run_page(database.database, Chosen(**filters), sort=sort, size=limit)
        if as_json:
            for listed in page.rows:
                print_json(run_json(listed.run, database.scores(listed.run.id)))
            return
        known = None if page.rows else facets(database.database)
    if known is not None:
        err().print("No runs match these filters." if any(filters.values()) else "The store has no runs.")
        for name, values in (("study", known.studies), ("kind", known.kinds), ("status", known.statuses)):
            if filters[name] and filters[name] not in values and values:
                err().print(clean(f"No run has the {name} '{filters[name]}'; there are: {', '.join(values)}."))
        return
    headings = ["run", "started", "kind", "about", "models", "seed", "status", "study", "seconds", "bill"]
    print_grid(headings, [_cells(listed) for listed in page.rows], [name in _NUMBERS for name in headings])
    if page.after:
        say(f"The first {limit} runs; --limit shows more.", style="dim")


@runs.command(epilog="Example: labmates runs delete --study pilot --dry-run")
@run_choice
@store_option
@click.option("--status", metavar="STATUS", help="Runs with this status.")
@click.option("--replies", is_flag=True, help="Delete the cached replies of models.")
@click.option("--dry-run", is_flag=True, help="Count the deletions without making them.")
@click.option("--yes", is_flag=True, help="Don't ask before deleting.")
@json_option()
def delete(
    store: str | None,
    run_ids: tuple[str, ...],
    *,
    replies: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    """Delete runs with all their data, by id or by filter.

    With --study as the only filter, the study and its plan are deleted too. Runs in progress can't be deleted. To
    return the space to the file system, copy the store: labmates store copy.
    """
    from labmates.records.listing import Chosen
    from labmates.records.pruning import prune
    from labmates.records.store import Store

    choice = Chosen(ids=run_ids, **{name: value for name, value in filters.items() if value is not None})
    chosen = None if choice.is_all else choice
    if chosen is None and not replies:
        raise UsageError("nothing to delete: name runs, or give --study, --kind, --task, --status or --replies")
    with Store(store, must_exist=True) as opened:
        database = opened.database
        if chosen is not None:
            chosen = replace(chosen, ids=tuple(opened.run(run_id).id for run_id in run_ids))
        pruned = prune(database, chosen, replies=replies, dry_run=True)
        if not dry_run and not yes:
            if not sys.stdin.isatty():
                raise UsageError(f"{_pruned(pruned)} would be deleted; no terminal for a confirmation, so give --yes")
            click.confirm(f"Delete {_pruned(pruned)} from {database.shown_url}?", abort=True, err=True)
        if not dry_run:
            with err().status("deleting …"):
                pruned = prune(database, chosen, replies=replies)
    if as_json:
        print_json({**asdict(pruned), "dry_run": dry_run})
    else:
        say(f"{_pruned(pruned)} {'would be' if dry_run else 'were'} deleted.")


def _pruned(pruned: Pruned) -> str:
    named = {"runs": pruned.runs, "studies": pruned.studies, "cached replies": pruned.replies}
    return ", ".join(f"{number:,} {name}" for name, number in named.items() if number) or "nothing"


def _index(store: Store) -> None:
    from labmates.records.search import index_texts, unindexed

    with progress_of_runs("indexing", again="The same command completes it.") as watch:
        index_texts(store.database, watch=watch)
    if store.database.is_read_only and (left := unindexed(store.database)):
        err().print(f"{left} runs are not searched: the store is read-only, so they can't be indexed.")


def _cells(listed: ListedRun) -> list[str]:
    from labmates.records.view import shown_parameter

    run = listed.run
    started = datetime.fromtimestamp(run.started, UTC).astimezone().strftime("%Y-%m-%d %H:%M") if run.started else ""
    numbers = f"{run.seconds:.1f}", show_bill(run)
    named = (shown_parameter(run.condition.get(name)) for name in ("task", "organisation", "game", "mechanism"))
    about = " ".join(name for name in named if name not in (None, "none"))
    texts = run.id, started, run.kind, about, ", ".join(run.models), str(run.seed), run.standing, run.study or ""
    return [*texts, *numbers]


@click.group(cls=SuggestingGroup, epilog="Example: labmates store upgrade")
def store() -> None:
    """Check, copy and upgrade databases of runs."""


@store.command(epilog="Example: labmates store check --store labmates.db")
@store_option
@click.option("--study", metavar="NAME", help="Check the runs of this study only.")
@json_option()
def check(store: str | None, study: str | None, as_json: bool) -> int:
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
    with Store(store, must_exist=True) as database:
        if study is not None:
            study_record(database.database, study)
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
    say(f"{len(runs)} runs checked; {len(faults) or 'no'} faults.")
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


@store.command(epilog="Example: labmates store upgrade --store labmates.db")
@store_option
def upgrade(store: str | None) -> None:
    """Upgrade a store from an older labmates to this version. Make a copy first: an upgrade can't be undone."""
    from labmates.records.migrations import upgrade_store

    with err().status("upgrading …"):
        before, after = upgrade_store(store)
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
