"""``labmates blame RUN|STUDY``: which seat lost the credit."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click

from labmates.cli.common import store_option, verbose_option
from labmates.cli.console import notify
from labmates.cli.fork import executed
from labmates.cli.lab import settings_of
from labmates.cli.options import options_of
from labmates.cli.results import present
from labmates.cli.tables import figure_options, out_option
from labmates.errors import UsageError
from labmates.models.options import ModelOptions
from labmates.studies.settings import RunSettings
from labmates.util.loops import run_async


@click.command(epilog="Example: labmates blame 3f9a2c41d7 --with openai:gpt-5.4 --cap 5")
@click.argument("name", metavar="RUN|STUDY")
@click.option(
    "--with",
    "model",
    metavar="MODEL|RUN",
    help="Model that repeats each seat's work, or a better run of the same data, whose replies each seat takes over. "
    "[default: the seat's own model, which reveals only failures by chance]",
)
@click.option(
    "--replicates",
    metavar="N",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Continuations of each seat's repeated work, and of what it handed over; eight are the fewest that "
    "can show a difference if it is always the same, for up to six seats.",
)
@click.option("--cap", metavar="DOLLARS", help="Maximum cost in total.")
@click.option("--yes", is_flag=True, help="Don't ask before spending.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per seat and nothing else.")
@figure_options
@out_option
@store_option
@verbose_option
def blame(name: str, model: str | None, replicates: int, *, cap: str | None, yes: bool, **values: Any) -> int:
    """Find the seat of RUN, or of all runs of STUDY, that lost the credit, by repeating one seat's work at a time.

    Each seat's work is repeated from before its first step, and compared with what the seat handed over: how much of
    the lost credit is regained, in total and by finding. The plan and its price are shown first. Repeating the command
    completes an interrupted one, and pays for nothing twice.
    """
    from labmates.budgets.money import show_dollars
    from labmates.records.store import Store
    from labmates.studies.blame import blamed, branches_of, seats_of
    from labmates.studies.continuations import Continuations

    with Store(values["store"], must_exist=True) as database:
        seats = run_async(partial(seats_of, database, name, model, partial(settings_of, values)))
        forks = Continuations(database, branches_of(seats), replicates)
        names = dict.fromkeys(seat.name for seat in seats)
        notify(f"{len(names)} seats ({', '.join(names)}): {forks.plan()}.")
        most = None if cap is None else forks.most(cap)
        if forks.price and not yes:
            if not sys.stdin.isatty():
                raise UsageError(f"about {show_dollars(forks.price)} would be spent; no terminal to ask, so give --yes")
            click.confirm("Spend it?", abort=True, err=True)
        if (code := executed(database, forks.enter(most))) > 1:
            return code
        return max(code, present([blamed(database, seats, forks)], values))


blame.params += [*options_of(ModelOptions), *options_of(RunSettings, leave_out=["models"])]
