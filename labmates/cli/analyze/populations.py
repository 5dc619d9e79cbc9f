"""``labmates analyze selfplay|evolution``: how populations of strategies fare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import json_option, store_option
from labmates.cli.console import clean, out, print_json
from labmates.cli.figures import draw, plot_option
from labmates.cli.tables import out_option, write_files
from labmates.errors import UsageError

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.records.store import Store


@click.command("selfplay", epilog="Example: labmates analyze selfplay --plot welfare.png")
@click.argument("run_ids", nargs=-1, metavar="[RUN]...")
@plot_option()
@json_option("per run")
@out_option
@store_option
def selfplay(
    run_ids: tuple[str, ...], plot: Path | None, as_json: bool, files: tuple[Path, ...], store: str | None
) -> int:
    """Show how groups fare by their share of selfish players; by default in all runs of self-play of the store."""
    from labmates.records.store import Store
    from labmates.stats.intervals import notes
    from labmates.stats.tables import Column
    from labmates.workflows.populations.figures import selfplay_figure
    from labmates.workflows.populations.outcomes import curves_of, mixed, mixtures_table
    from labmates.workflows.populations.selfplay.condition import SelfplayCondition

    with Store(store, must_exist=True) as database:
        runs = _completed(database, run_ids, "selfplay")
        found = [mixed(database, run) for run in runs]
    write_files([mixtures_table(found)], files)
    names = curves_of(found)
    for name, one in zip(names, found, strict=True):
        if as_json:
            parts = ("low", "high", "n", "df", "method", "reason")
            points = [
                {"selfish": share, "welfare": welfare.value, **{part: getattr(welfare, part) for part in parts}}
                for share, welfare in one.points
            ]
            told = {"run": one.run, "game": one.game, "model": one.model, "group_size": one.group_size}
            print_json({**told, "condition": dict(one.condition), "mixtures": points})
            continue
        title = clean(f"\n{one.game}, {name.removesuffix(f' (run {one.run})')} (run {one.run})")
        out().print(title, style="bold", markup=False)
        column = Column("welfare", form=".3f", shows="both")
        for share, welfare in one.points[:: max(1, len(one.points) // 16)]:
            out().print(f"  {100 * share:5.1f} % selfish: {column.cell(welfare.row('welfare'))}", markup=False)
        for note in notes(welfare for _, welfare in one.points):
            out().print(note, style="dim", markup=False)
    if plot is not None:
        games = sorted({one.game for one in found})
        if len(games) > 1:
            raise UsageError(f"a figure shows one game, not {', '.join(games)}; name the runs that are to be drawn")
        bounds = [SelfplayCondition.model_validate(one.condition).make_game().bounds() for one in found]
        draw(selfplay_figure(names, bounds, f"Self-play in {games[0]}"), plot)
    return 0


@click.command("evolution", epilog="Example: labmates analyze evolution --plot evolution.png")
@click.argument("run_ids", nargs=-1, metavar="[RUN]...")
@plot_option("the first of the runs")
@json_option("per condition")
@out_option
@store_option
def evolution(
    run_ids: tuple[str, ...], plot: Path | None, as_json: bool, files: tuple[Path, ...], store: str | None
) -> int:
    """Show which genes win, by condition; by default in all evolutions of the store."""
    from labmates.records.store import Store
    from labmates.workflows.populations.figures import evolution_figure
    from labmates.workflows.populations.outcomes import evolved, gene_shares, labels_of, winners_table

    with Store(store, must_exist=True) as database:
        runs = _completed(database, run_ids, "evolution")
        found = evolved(database, runs)
        shares = gene_shares(database, runs[0]) if plot is not None else []
    write_files([winners_table(found)], files)
    for one, label in zip(found, labels_of([one.condition for one in found]), strict=True):
        if as_json:
            told = {"generations": one.generations, "welfare_efficiency": one.efficiency}
            told |= {"threshold_reached": one.reached, "cooperation": one.cooperation}
            print_json({"condition": dict(one.condition), "runs": one.runs, **told, "winners": dict(one.winners)})
            continue
        condition = one.condition
        where = [str(condition["game"]), f"groups of {condition['group_size']}", str(condition["protocol"]), label]
        out().print(clean(f"\n{', '.join(filter(None, where))}: {one.runs} runs"), style="bold", markup=False)
        for gene, wins in one.winners:
            out().print(clean(f"  {wins:4d} won by {gene}"), markup=False)
        out().print(
            f"  threshold reached in {one.reached}; {one.generations:.0f} generations, welfare efficiency "
            f"{100 * one.efficiency:.0f} %, cooperation {100 * one.cooperation:.0f} % on average",
            markup=False,
        )
    if plot is not None:
        draw(evolution_figure(shares, f"Evolution in {runs[0].condition['game']} (run {runs[0].id})"), plot)
    return 0


def _completed(store: Store, run_ids: tuple[str, ...], kind: str) -> list[RunRecord]:
    """Return the completed runs of a kind: the named ones, or all."""
    from labmates.records.selection import select_runs

    found = select_runs(store, run_ids, study=None, kind=kind, task=None)
    other = next((run for run in found if run.kind != kind), None)
    if other is not None:
        raise UsageError(f"the run '{other.id}' is of the kind {other.kind}, not {kind}")
    ended = [run for run in found if run.status == "completed"]
    if not ended:
        raise UsageError(f"the store has no completed run of the kind {kind}; make some with: labmates run {kind}")
    return ended
