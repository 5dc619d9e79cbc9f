"""``labmates analyze tournament``: cooperation under three structures."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import json_option, store_option
from labmates.cli.console import clean, out, print_json
from labmates.cli.figures import Plots, plots_options
from labmates.cli.tables import out_option, print_tables, write_files
from labmates.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labmates.workflows.tournament.report import Group


@click.command("tournament", epilog="Example: labmates analyze tournament --study super-additive --plots figures")
@click.argument("run_ids", nargs=-1, metavar="[RUN]...")
@click.option("--study", metavar="NAME", help="The tournaments of this study.")
@plots_options
@click.option("--profiles", is_flag=True, help="Print the behaviour of every single player too.")
@json_option()
@out_option
@store_option
def tournament(
    run_ids: tuple[str, ...],
    study: str | None,
    plots: Plots | None,
    profiles: bool,
    as_json: bool,
    files: tuple[Path, ...],
    store: str | None,
) -> int:
    """Tell how models cooperate in tournaments of the iterated prisoner's dilemma.

    Without runs or a study, all tournaments of the store count; those that differ in nothing but structure and seed
    belong together. Rates of cooperation (of all moves, of first moves, within and between teams) with two 95 %
    intervals: over players and replicates, as in the paper, and over tournaments, whose rounds are not independent;
    right answers by question; behaviour; and both hypotheses: more cooperation (H1) and more one-shot cooperation (H2)
    in super-additive tournaments than in either of the others.
    """
    from labmates.records.selection import select_runs
    from labmates.records.store import Store
    from labmates.workflows.tournament.report import report
    from labmates.workflows.tournament.results import tournaments
    from labmates.workflows.tournament.tables import hypotheses_table, rates_table

    with Store(store, must_exist=True) as database:
        runs = select_runs(database, run_ids, study=study, kind=None if run_ids else "tournament")
        found = report(tournaments(database, runs))
    if not found.groups:
        raise UsageError(f"none of these {len(runs)} runs is a tournament that has ended")
    tables = [rates_table(found.groups), hypotheses_table(found.hypotheses)]
    if as_json:
        print_json(asdict(found))
    else:
        print_tables(tables[:1])
        _print_behaviour(found.groups, profiles=profiles)
        print_tables(tables[1:])
    write_files(tables, files)
    if plots is not None:
        _draw(found.groups, plots)
    return 0


def _draw(groups: Sequence[Group], plots: Plots) -> None:
    from labmates.workflows.tournament import figures

    for name, draw in (
        ("cooperation", figures.cooperation_figure),
        ("one-shot", figures.one_shot_figure),
        ("teams", figures.teams_figure),
        ("comprehension", figures.comprehension_figure),
    ):
        if (figure := draw(groups)) is not None:
            plots.draw(name, figure)


def _print_behaviour(groups: Sequence[Group], *, profiles: bool) -> None:
    from labmates.workflows.tournament.report import STRUCTURES, mean_profile

    out().print("\nBehaviour", style="bold")
    for group in groups:
        means = (f"{name} {_share(value)}" for name, value in mean_profile(group).items())
        out().print(clean(f"{group.model}, {STRUCTURES[group.structure]}: {', '.join(means)}"), markup=False)
        for one in group.profiles if profiles else ():
            shares = {**one.traits, **{f"like {name}": value for name, value in one.affinity.items()}}
            told = ", ".join(f"{name} {_share(value)}" for name, value in shares.items())
            out().print(clean(f"  {one.run} {one.player}: {told}"), markup=False)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
