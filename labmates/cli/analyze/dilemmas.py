"""``labmates analyze dilemmas``: what models do in social dilemmas, as tables and figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import json_option, store_option
from labmates.cli.console import print_json
from labmates.cli.figures import Plots, plots_options
from labmates.cli.tables import out_option, print_tables, write_files

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from labmates.workflows.dilemmas.records import CrossPlay

TABLES = {
    "failures": "Failed decisions, by model, stage and seat",
    "actions": "How likely models take each action",
    "responses": "How likely models take each action after what co-players did in the round before",
    "adoption": "Votes and adoption, by model",
    "outcomes": "How votes end",
    "designs": "Under how many proposals full cooperation is stable",
    "reasons": "By which kinds of reasons choices are explained (see: labmates analyze reasons)",
}


@click.command("dilemmas", epilog="Example: labmates analyze dilemmas --table actions --plots figures")
@click.argument("run_ids", nargs=-1, metavar="[RUN]...")
@click.option("--study", metavar="NAME", help="Runs of this study.")
@click.option(
    "--table", "tables", multiple=True, type=click.Choice(list(TABLES)), help="This table alone; can be repeated."
)
@plots_options
@json_option("per row with its table")
@out_option
@store_option
def dilemmas(
    run_ids: tuple[str, ...],
    study: str | None,
    tables: tuple[str, ...],
    plots: Plots | None,
    as_json: bool,
    files: tuple[Path, ...],
    store: str | None,
) -> int:
    """Tell what models do in social dilemmas under cooperation mechanisms.

    Action frequencies; frequencies after what co-players did last (repetition, reputation); votes, adoption and
    delegation; and for proposed mediators and contracts whether full cooperation is a Nash equilibrium under them, or
    weakly dominant, computed exactly. Failed decisions count nowhere but in their own table. With --plots also payoffs
    of the metagame and evolution of the population, without models of which more than 20 % of the decisions failed.
    """
    from labmates.records.store import Store
    from labmates.stats.tables import Table
    from labmates.workflows.dilemmas import frames as dilemma_frames
    from labmates.workflows.dilemmas.cross_plays import cross_plays

    with Store(store, must_exist=True) as database:
        plays = cross_plays(database, run_ids, study=study)
    frames: dict[str, pd.DataFrame] = {}
    for name in tables or TABLES:
        frame: Callable[[Sequence[CrossPlay]], pd.DataFrame] = getattr(dilemma_frames, f"{name}_frame")
        frames[name] = frame(plays)
    made = [Table(name, TABLES[name], None, found) for name, found in frames.items() if len(found)]
    if as_json:
        for table in made:
            for row in table.rows:
                print_json({"table": table.name, **row})
    else:
        print_tables(made)
    write_files(made, files)
    if plots is not None:
        for name, figure in _figures(plays, frames):
            plots.draw(name, figure)
    return 0


def _figures(plays: Sequence[CrossPlay], frames: dict[str, pd.DataFrame]) -> Iterator[tuple[str, Figure]]:
    from labmates.stats.ratings import Cell
    from labmates.stats.validity import invalid
    from labmates.workflows.dilemmas import figures as draw
    from labmates.workflows.dilemmas.ratings import pooled

    cells: dict[tuple[str, str, tuple[str, ...]], list[Cell]] = {}
    groups: dict[tuple[str, str, tuple[str, ...]], list[CrossPlay]] = {}
    for play in plays:
        if play.has_metagame:
            groups.setdefault((play.game, play.mechanism, play.models), []).append(play)
    for key, some in groups.items():
        out = invalid(pooled(some))
        if len(out) < len(key[2]):
            cells[key] = [play.without(out).cell() for play in some]
    for place, ((game, mechanism, _), shown) in enumerate(cells.items()):
        more = f"-{place}" if [key[:2] for key in cells].count((game, mechanism)) > 1 else ""
        name = re.sub(r"[^\w.+=-]+", "-", f"{game}-{mechanism}").strip("-") + more
        yield f"payoffs-{name}", draw.payoffs_figure(shown)
        if len(shown[0].models) > 1:
            yield f"population-{name}", draw.population_figure(shown)
    for name, frame in frames.items():
        if not len(frame):
            continue
        if name == "actions":
            yield name, draw.actions_figure(frame)
        elif name == "responses":
            yield name, draw.responses_figure(frame)
        elif name == "adoption":
            yield name, draw.shares_figure(frame, draw.ADOPTION, "Votes and adoption")
        elif name == "designs":
            yield name, draw.shares_figure(frame, draw.DESIGNS, "Designs under which cooperation is stable")
        elif name == "reasons":
            yield name, draw.reasons_figure(frame)
