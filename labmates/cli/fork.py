"""``labmates fork RUN...``: branches of runs at one of their events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import store_option, verbose_option
from labmates.cli.console import notify
from labmates.cli.lab import execute, settings_of
from labmates.cli.options import options_of
from labmates.cli.results import present
from labmates.cli.tables import figure_options, out_option
from labmates.errors import UsageError
from labmates.models.options import ModelOptions
from labmates.studies.settings import RunSettings
from labmates.util.loops import run_async

if TYPE_CHECKING:
    from labmates.records.store import Store


@click.command(epilog="Example: labmates fork 3f9a2c41d7 --at 120 --set model.writing=scripted:hasty --set budget=2")
@click.argument("run_ids", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--at",
    metavar="EVENT|PHASE",
    required=True,
    help="First event to redo: its number (see: labmates show RUN --events), or the step, team or agent with which it "
    "begins, for example writing. The step that contains it is redone as a whole.",
)
@click.option(
    "--set",
    "changes",
    metavar="FIELD=VALUE",
    multiple=True,
    required=True,
    help="A parameter of the condition and its new value, or FIELD.KEY=VALUE for one entry, for example "
    "model.writing=scripted:hasty; repeatable.",
)
@click.option(
    "--replicates",
    metavar="N",
    type=click.IntRange(min=1),
    help="Repeat the continuation N times with the change and N times without it, and compare the two. Repeating the "
    "command completes an interrupted one, and pays for nothing twice.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object per new run, with --replicates per outcome, and nothing else.",
)
@figure_options
@out_option
@store_option
@verbose_option
def fork(
    run_ids: tuple[str, ...],
    at: str,
    changes: tuple[str, ...],
    replicates: int | None,
    as_json: bool,
    store: str | None,
    **values: Any,
) -> int:
    """Branch each RUN at an event: a new run with its first events and a changed condition.

    Kept events are replayed from the record at no cost; models produce all later events. The new run names RUN and the
    event as its origin. A change is refused if it would have altered the kept events.

    A single fork differs from its origin by chance, too. With --replicates, continuations with and without the change
    separate its effect from chance. Their expected price is shown first.
    """
    from labmates.records.store import Store
    from labmates.studies.fork import fork as make

    wanted = dict(map(_change, changes))
    place = int(at) if at.removeprefix("-").isdecimal() else at
    with Store(store, must_exist=True) as database:
        if replicates is not None:
            return _compared(database, run_ids, place, wanted, replicates, {**values, "as_json": as_json})
        code = 0
        for origin in {run.id: run for run in map(database.run, run_ids)}.values():
            settings = settings_of(values, origin.settings)
            run = run_async(partial(make, database, origin.id, at=place, changes=wanted, settings=settings))
            code = max(code, execute(database, [run], RunSettings.model_validate(run.settings), as_json=as_json))
        return code


def _compared(
    database: Store,
    run_ids: Sequence[str],
    at: int | str,
    changes: dict[str, Any],
    replicates: int,
    values: dict[str, Any],
) -> int:
    """Execute the continuations that are left, and print what all of them tell."""
    from labmates.studies.continuations import Continuations, both_arms, effect

    chosen = partial(settings_of, values)
    branches = run_async(partial(both_arms, database, run_ids, at=at, changes=changes, settings=chosen))
    forks = Continuations(database, branches, replicates)
    notify(f"{forks.plan()}.")
    code = 0
    for settings, runs in forks.enter():
        code = max(code, execute(database, runs, settings, as_json=False, part_of="these continuations"))
        if code > 1:  # stopped
            return code
    return max(code, present([effect(forks.ended(), branches, database)], values))


fork.params += [*options_of(ModelOptions), *options_of(RunSettings, leave_out=["models"])]


def _change(text: str) -> tuple[str, Any]:
    """Parse ``FIELD=VALUE`` with a YAML value."""
    import yaml

    from labmates.util.bounded_yaml import compose_yaml, yaml_value

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--set takes FIELD=VALUE, for instance model.writing=scripted:hasty, not '{text}'")
    try:
        return name.strip(), yaml_value(compose_yaml(value))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(f"--set {name}: '{value}' is not a YAML value; quote it") from error
