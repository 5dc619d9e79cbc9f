"""``labmates analyze tournament``: cooperation under three structures."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import store_option
from labmates.cli.console import clean, err, out, print_json
from labmates.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labmates.analysis.tournament_report import Group, Hypothesis, Rate


@click.command("tournament", epilog="Example: labmates analyze tournament --study super-additive --figures figures")
@click.argument("run_ids", nargs=-1, metavar="[RUN]...")
@click.option("--study", metavar="NAME", help="The tournaments of this study.")
@click.option("--figures", type=click.Path(file_okay=False, path_type=Path), help="Draw figures into this folder.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["png", "svg", "pdf"]),
    default="png",
    show_default=True,
    help="Of figures.",
)
@click.option("--profiles", is_flag=True, help="Print the behaviour of every single player too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@store_option
def tournament(
    run_ids: tuple[str, ...],
    study: str | None,
    figures: Path | None,
    format_: str,
    profiles: bool,
    as_json: bool,
    store: str | None,
) -> int:
    """Tell how models cooperate in tournaments of the iterated prisoner's dilemma.

    Without runs or a study, all tournaments of the store count; those that differ in nothing but structure and seed
    belong together. Rates of cooperation (of all moves, of first moves, within and between teams) with two 95 %
    intervals: by Student's t over players and replicates, as the paper has it, and by bootstrap over
    tournaments, whose rounds are not independent; right answers by question; behaviour; and both hypotheses: more
    cooperation (H1) and more one-shot cooperation (H2) in super-additive tournaments than in either of the others.
    """
    from labmates.analysis.figures import check_figure
    from labmates.analysis.tournament_report import report
    from labmates.analysis.tournaments import tournaments
    from labmates.records.database import store_url
    from labmates.records.store import Store
    from labmates.studies.select import select_runs

    if figures is not None:
        check_figure(figures / f"cooperation.{format_}")
    database = Store(store_url(store), must_exist=True)
    try:
        runs = select_runs(database, run_ids, study=study, kind=None if run_ids else "tournament")
        found = report(tournaments(database, runs))
    finally:
        database.close()
    if not found.groups:
        raise UsageError(f"none of these {len(runs)} runs is a tournament that has ended")
    if as_json:
        print_json(asdict(found))
    else:
        for group in found.groups:
            _print_group(group, profiles=profiles)
        _print_hypotheses(found.hypotheses)
    if figures is not None:
        _draw(found.groups, figures, format_)
    return 0


def _draw(groups: Sequence[Group], folder: Path, format_: str) -> None:
    from labmates.analysis import tournament_figures as figures
    from labmates.analysis.figures import save_figure

    for name, draw in (
        ("cooperation", figures.cooperation_figure),
        ("one-shot", figures.one_shot_figure),
        ("teams", figures.teams_figure),
        ("comprehension", figures.comprehension_figure),
    ):
        if (figure := draw(groups)) is not None:
            path = folder / f"{name}.{format_}"
            save_figure(figure, path)
            err().print(f"Drawn to {path}", markup=False)


def _print_group(group: Group, *, profiles: bool) -> None:
    from rich.table import Table

    from labmates.analysis.tournament_report import STRUCTURES, mean_profile

    among = f" among {', '.join(group.among)}" if len(group.among) > 1 else ""
    heading = f"\n{group.model}{among}, {STRUCTURES[group.structure]} ({group.structure}): {_number(len(group.runs))}"
    out().print(clean(heading), style="bold", markup=False)
    table = Table(box=None, pad_edge=False)
    for name in ("", "mean", "over players", "over tournaments", "players"):
        table.add_column(name, justify="left" if not name else "right")
    rows = {
        "cooperation": group.cooperation,
        "one-shot cooperation": group.one_shot,
        "within teams": group.within,
        "between teams": group.between,
        "right answers": group.comprehension,
        **{f"  {name.replace('_', ' ')}": found for name, found in group.questions.items()},
    }
    for name, found in rows.items():
        if found is not None:
            table.add_row(name, f"{found.value:.3f}", *_intervals(found), str(found.players))
    out().print(table)
    means = (f"{name} {_share(value)}" for name, value in mean_profile(group).items())
    out().print(clean(f"behaviour: {', '.join(means)}"), markup=False)
    if profiles:
        for one in group.profiles:
            shares = {**one.traits, **{f"like {name}": value for name, value in one.affinity.items()}}
            told = ", ".join(f"{name} {_share(value)}" for name, value in shares.items())
            out().print(clean(f"  {one.run} {one.player}: {told}"), markup=False)
    if group.failed:
        out().print(f"{group.failed} of {group.decisions} decisions could not be used.", style="red", markup=False)


def _print_hypotheses(found: Sequence[Hypothesis]) -> None:
    out().print("\nMore in super-additive tournaments than in either of the others?", style="bold")
    for one in found:
        rates = ", ".join(f"{name} {value:.3f}" for name, value in one.rates.items())
        if one.difference is None:
            told = f"no test: {one.reason}"
        else:
            told = f"{one.difference:+.3f} [{one.low:+.3f}, {one.high:+.3f}], p = {one.p:.4f}"
        out().print(clean(f"{one.name} {one.measure}, {one.model} ({rates}): {told}"), markup=False)
    out().print("95 % intervals; – is not defined. p is one-sided, by bootstrap over tournaments.", style="dim")


def _intervals(found: Rate) -> tuple[str, str]:
    return _interval(found.low, found.high), _interval(found.wide_low, found.wide_high)


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _number(tournaments: int) -> str:
    return "1 tournament" if tournaments == 1 else f"{tournaments} tournaments"
