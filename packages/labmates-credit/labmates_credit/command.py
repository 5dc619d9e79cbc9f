"""``labmates blame RUN|STUDY``: which seat lost the credit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
from pydantic import Field

from labmates.budgets.money import show_dollars
from labmates.errors import UsageError
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command, Lab

if TYPE_CHECKING:
    from labmates.studies.continuations import Continuations


class BlameParams(Params):
    """The seats to be done anew, and by whom."""

    name: str = Field(json_schema_extra={"argument": True})
    model: str | None = Field(
        None,
        description="Model that repeats each seat's work, or a better run of the same data, whose replies each seat "
        "takes over. [default: the seat's own model, which reveals only failures by chance]",
        json_schema_extra={"flags": ["--with"]},
    )
    replicates: int = Field(
        8,
        ge=1,
        description="Continuations of each seat's repeated work, and of what it handed over; eight are the fewest that "
        "can show a difference if it is always the same, for up to six seats.",
    )
    cap: str | None = Field(None, description="Maximum cost in total, in dollars.")
    yes: bool = Field(False, description="Don't ask before spending.")


def _blame(lab: Lab, params: BlameParams) -> Iterator[Result]:
    """Find the seat of a run, or of all runs of a study, that lost the credit, by repeating one seat's work at a time.

    NAME is a run or a study. Each seat's work is repeated from before its first step, and compared with what the seat
    handed over: how much of the lost credit is regained, in total and by finding. The plan and its price are shown
    first. Repeating the command completes an interrupted one, and pays for nothing twice.
    """

    def ask(forks: Continuations) -> None:
        if forks.price and not params.yes:
            if not sys.stdin.isatty():
                raise UsageError(f"about {show_dollars(forks.price)} would be spent; no terminal to ask, so give --yes")
            click.confirm("Spend it?", abort=True, err=True)

    yield _found(lab, params.name, params.model, params.replicates, params.cap, ask)


def blame(
    lab: Lab, name: str, *, model: str | None = None, replicates: int = 8, cap: str | float | None = None
) -> Result:
    """Find the seat of a run, or of a study's runs, that lost the credit, by repeating one seat's work at a time.

    Parameters
    ----------
    name
        Id of a run, or name of a study.
    model
        Model that repeats each seat's work, or the id of a better run of the same data, whose replies each seat takes
        over; by default the seat's own model, which reveals only failures by chance.
    replicates
        Continuations of each seat's repeated work, and of what it handed over. Those in the store are kept.
    cap
        Maximum cost in total, in dollars.

    Raises
    ------
    UsageError
        If the run or study is unknown or has fewer than two seats, or the expected price is above the cap.
    LabmatesError
        If a continuation fails.
    """
    return _found(lab, name, model, replicates, cap, lambda _: None)


def _found(
    lab: Lab,
    name: str,
    model: str | None,
    replicates: int,
    cap: str | float | None,
    ask: Callable[[Continuations], None],
) -> Result:
    from labmates.studies.continuations import Continuations
    from labmates_credit.blame import blamed, branches_of, seats_of

    store = lab.runs.store
    seats = lab.finish(seats_of(store, name, model, lab.settings_for))
    forks = Continuations(store, branches_of(seats), replicates)
    names = dict.fromkeys(seat.name for seat in seats)
    lab.notify(f"{len(names)} seats ({', '.join(names)}): {forks.plan()}.")
    most = None if cap is None else forks.most(cap)
    ask(forks)
    for settings, runs in forks.enter(most):
        lab.execute(runs, settings, "these continuations")
    return blamed(store, seats, forks)


BLAME = Command(
    _blame,
    BlameParams,
    function=blame,
    example="labmates blame 3f9a2c41d7 --with openai:gpt-5.4 --cap 5",
    asks_models=True,
    executes=True,
    has_store=True,
    has_tables=True,
    has_figures=True,
    objects="per seat",
)
