"""``labmates export``: tables of runs, and whole runs in formats of other programs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import store_option
from labmates.cli.console import err
from labmates.errors import UsageError, unknown_name
from labmates.workflows.protocol.export import EXPORTS, TABLES

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.records.store import Store

ROWS = ("runs", "scores", "players", "decisions", "payoffs", "messages", "events")


@click.command(epilog="Example: labmates export pilot --rows scores --out scores.parquet")
@click.argument("names", metavar="[STUDY | RUN...]", nargs=-1)
@store_option
@click.option("--rows", "what", type=click.Choice(ROWS), default="runs", show_default=True, help="Content of a row.")
@click.option("--all", "every", is_flag=True, help="All runs of the store, of any study.")
@click.option("--kind", metavar="KIND", help="Only runs of this experiment.")
@click.option("--model", metavar="MODEL", help="Only runs with this model.")
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    help=f"{', '.join(TABLES)}: a table; whole runs: {', '.join(EXPORTS) or 'none installed'}. "
    "[default: the ending of --out]",
)
@click.option("--out", metavar="OUT", required=True, help="The file, folder or address to write to.")
def export(
    names: tuple[str, ...],
    store: str | None,
    what: Any,
    every: bool,
    kind: str | None,
    model: str | None,
    form: str | None,
    out: str,
) -> None:
    """Write a study or runs: as a table, or whole in the format of another program.

    By default, the only study of the store. A table has one row per run, score, player, decision, payoff, message or
    event. A run's row has the keys of its JSON record, with dots between nested keys. docs/reports describes all
    columns.
    """
    from labmates.records.frames import chosen_runs
    from labmates.records.store import Store
    from labmates.studies.export import export_rows
    from labmates.workflows.protocol.experiment import EXPERIMENTS

    path = Path(out)
    ending = path.suffix.removeprefix(".")
    form = ending if form is None else form
    if not form:
        raise UsageError(f"--out: '{out}' has no ending; add --format ({', '.join([*TABLES, *EXPORTS])})")
    if form not in TABLES and form not in EXPORTS:
        EXPORTS.refuse_missing(form)
        raise unknown_name("format", form, [*TABLES, *EXPORTS])
    if form in TABLES and form != ending:
        raise UsageError(f"--out: a table as {form} needs a file name that ends in .{form}")
    if form not in TABLES and what != "runs":
        raise UsageError(f"--rows: '{form}' has all that is recorded; leave it out, or choose {', '.join(TABLES)}")
    if every and names:
        raise UsageError("give a STUDY, runs or --all")
    if kind is not None:
        EXPERIMENTS.get(kind)
    with Store(store, must_exist=True) as database:
        study, named = (None, []) if every else _named(database, names)

        def runs() -> Iterable[RunRecord]:
            if named:
                return [run for run in named if kind in (None, run.kind) and (model is None or model in run.models)]
            return chosen_runs(database, kind=kind, study=study, model=model)

        with err().status("reading …") as shown:
            if form in TABLES:
                number = export_rows(
                    database, path, runs(), what=what, watch=lambda count: shown.update(f"{count:,} {what} read")
                )
            else:
                number = EXPORTS.get(form)(database, out, runs)
    err().print(f"{number:,} {'rows' if form in TABLES else 'runs'} in {out}")


def _named(database: Store, names: tuple[str, ...]) -> tuple[str | None, list[RunRecord]]:
    """The study with the only name, else the runs."""
    from labmates.cli.study import stored_study

    if len(names) > 1:
        return None, [database.run(name) for name in names]
    name = names[0] if names else None
    try:
        return stored_study(database, name).name, []
    except UsageError as no_study:
        if name is None:
            raise
        try:
            return None, [database.run(name)]
        except UsageError as no_run:
            raise UsageError(f"{str(no_study).rstrip('.')}; {no_run}") from None
