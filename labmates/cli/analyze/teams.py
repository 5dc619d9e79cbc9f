"""``labmates analyze teams``: how good models are on the seats of the science lab."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import json_option, store_option
from labmates.cli.console import print_json
from labmates.cli.tables import out_option, print_tables, write_files
from labmates.errors import UsageError

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.workflows.science.seat_ratings import SeatGame

_SHOWN = 5


@click.command("teams", epilog="Example: labmates analyze teams --study science-teams")
@click.argument("run_ids", nargs=-1, metavar="[RUN]...")
@click.option("--study", metavar="NAME", help="Runs of this study.")
@click.option("--task", metavar="TASK", help="Runs of this task.")
@click.option(
    "--metric", metavar="NAME", help="What all models of a run get. Default: skill; accuracy if no run has it."
)
@click.option("--judge", metavar="NAME", help="Whose newest score that is; by default the run's own metric.")
@click.option("--model", "models", multiple=True, metavar="MODEL", help="Compare these alone; repeatable.")
@click.option("--resamples", type=click.IntRange(10, 10_000), default=200, show_default=True, help="Of the bootstrap.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the bootstrap.")
@click.option("--plan", is_flag=True, help="Print a study that plays every seating of the models given, and stop.")
@json_option("per row")
@out_option
@store_option
def teams(
    run_ids: tuple[str, ...],
    study: str | None,
    task: str | None,
    metric: str | None,
    judge: str | None,
    models: tuple[str, ...],
    resamples: int,
    seed: int,
    plan: bool,
    as_json: bool,
    files: tuple[Path, ...],
    store: str | None,
) -> int:
    """Rate models by what labs with them on the teams' seats bring.

    Science runs with a model for each team (--model-for TEAM=MODEL) are plays of a game whose payoff is the score of
    the lab. For each seat, and for any: mean over all seatings, fitness after replicator dynamics and the population
    that they end in, deviation rating and rank, with 95 % intervals. Runs of equal condition belong
    together. Every seating must have been played; --plan prints a study for that.
    """
    from labmates.records.selection import select_runs
    from labmates.records.store import Store
    from labmates.stats.intervals import ANY, SHARE
    from labmates.workflows.experiment import EXPERIMENTS
    from labmates.workflows.science.seat_ratings import rate_teams, teams_table
    from labmates.workflows.science.seatings import seat_games

    if plan:
        return _print_plan(models, task)
    with Store(store, must_exist=True) as database:
        runs = select_runs(database, run_ids, study=study, kind=None if run_ids else "science", task=task)
        metric, note = _metric(metric, judge, runs)
        games = seat_games(database, runs, metric=metric, judge=judge, models=models)
    whole = [game for game in games if len(game.models) > 1 and not game.missing()]
    if not whole:
        raise UsageError(_missing(games))
    domain = EXPERIMENTS.get("science").domains({}).get(metric, SHARE if judge else ANY)
    table = teams_table([rate_teams(game, domain, resamples=resamples, seed=seed) for game in whole], metric)
    table.notes = (*table.notes, *note)
    if len(whole) < len(games):
        table.notes = (*table.notes, f"{len(games) - len(whole)} more conditions lack seatings and are left out.")
    if as_json:
        for row in table.rows:
            print_json(row)
    else:
        print_tables([table])
    write_files([table], files)
    return 0


def _metric(asked: str | None, judge: str | None, runs: Sequence[RunRecord]) -> tuple[str, tuple[str, ...]]:
    """Return the compared metric and the notes on it."""
    if asked is not None:
        return asked, ()
    if judge not in (None, "verified"):
        return "accuracy", ()
    if any("skill" in run.metrics for run in runs):
        return "skill", ()
    return "accuracy", ("Accuracy, not skill: no run has skill, since an earlier version judged them.",)


def _print_plan(models: Sequence[str], task: str | None) -> int:
    from labmates.models.names import parse_model
    from labmates.tasks.registry import get_task
    from labmates.workflows.science.seatings import seating_study

    if len(models) < 2 or task is None:
        raise UsageError("--plan needs --task and two models or more: --plan --task ecology --model A --model B")
    get_task(task)
    text = seating_study([str(parse_model(model)) for model in dict.fromkeys(models)], {"task": task})
    click.echo(text, nl=False)
    return 0


def _missing(games: Sequence[SeatGame]) -> str:
    from labmates.workflows.science.seatings import missing_seatings

    game = min(games, key=lambda one: len(one.missing()) + (len(one.models) < 2) * 1_000_000)
    if len(game.models) < 2:
        return f"all seats are taken by one model, {game.models[0]}; a rating compares two or more"
    gaps = missing_seatings(game)
    lines = [
        f"{len(gaps)} of {len(game.models) ** len(game.seats)} seatings of {', '.join(game.models)} were not played"
    ]
    lines[0] += " (or have no such score), and none is filled in:"
    lines += [f"  {gap}" for gap in gaps[:_SHOWN]] + (
        [f"  and {len(gaps) - _SHOWN} more"] if len(gaps) > _SHOWN else []
    )
    if game.unscored:
        lines.append(
            f"{len(game.unscored)} runs were played and not scored: another --metric or --judge may score them."
        )
    if len(games) > 1:
        lines.append(f"({len(games)} conditions were looked at; this one lacks the fewest.)")
    chosen = " ".join(f"--model {model}" for model in game.models)
    task = game.condition.get("task")
    lines.append(f"A study that plays all: labmates analyze teams --plan --task {task} {chosen} > teams.yaml")
    return "\n".join(lines)
