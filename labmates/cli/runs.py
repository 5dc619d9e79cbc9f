"""``labmates runs``: the list of runs in a store, and their deletion."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import SuggestingGroup, json_option, run_choice, store_option
from labmates.cli.console import err, print_json, say
from labmates.cli.store import progress_of_runs
from labmates.cli.summary import show_bill
from labmates.cli.tables import print_grid
from labmates.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from labmates.records.run import RunRecord
    from labmates.records.store import Store
    from labmates.records.studies import Amount

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
        listed = run_page(database, Chosen(**filters), sort=sort, size=limit + 1)
        runs, more = listed[:limit], listed[limit:]
        known = facets(database)
        for name, values in (("study", known.studies), ("kind", known.kinds)):
            if filters[name] and not runs and filters[name] not in values:
                raise unknown_name(name, filters[name], values)
        if as_json:
            for run in runs:
                print_json(run_json(run, database.scores(run.id)))
            return
    if not runs:
        err().print("No runs match these filters." if any(filters.values()) else "The store has no runs.")
        return
    from labmates.reports.results import listed_parameters

    headings = ["run", "started", "kind", "condition", "models", "seed", "status", "result", "study", "seconds", "bill"]
    parameters = listed_parameters(runs)
    rows = [_cells(run, parameters[run.id]) for run in runs]
    print_grid(headings, rows, [name in _NUMBERS for name in headings])
    if more:
        say(f"{limit} shown; --limit shows more.", style="dim")


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
    with Store(store, must_exist=True) as database:
        if chosen is not None:
            chosen = replace(chosen, ids=tuple(database.run(run_id).id for run_id in run_ids))
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


def _pruned(pruned: Amount) -> str:
    named = {"runs": pruned.runs, "studies": pruned.studies, "cached replies": pruned.replies}
    return ", ".join(f"{number:,} {name}" for name, number in named.items() if number) or "nothing"


def _index(store: Store) -> None:
    from labmates.records.search import index_texts, unindexed

    with progress_of_runs("indexing", again="The same command completes it.") as watch:
        index_texts(store, watch=watch)
    if store.is_read_only and (left := unindexed(store)):
        err().print(f"Runs not searched: {left}. The store is read-only, so they can't be indexed.")


def _cells(run: RunRecord, parameters: Mapping[str, str]) -> list[str]:
    from labmates.reports.results import NAMED, headline, shown_name

    started = datetime.fromtimestamp(run.started, UTC).astimezone().strftime("%Y-%m-%d %H:%M") if run.started else ""
    condition = ", ".join(
        value if name in NAMED else f"{shown_name(name)} {value}" for name, value in parameters.items()
    )
    result = next((f"{name} {run.metrics[name]:.3f}" for name in headline(run.kind)[:1] if name in run.metrics), "")
    texts = run.id, started, run.kind, condition, ", ".join(run.models), str(run.seed), run.standing, result
    return [*texts, run.study or "", f"{run.seconds:.1f}", show_bill(run)]
