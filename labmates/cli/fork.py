"""``labmates fork RUN``: a branch of a run at one of its events."""

from __future__ import annotations

from typing import Any

import click

from labmates.cli.common import store_option, verbose_option
from labmates.cli.lab import execute, settings_of
from labmates.cli.options import options_of
from labmates.errors import UsageError
from labmates.models.options import ModelOptions
from labmates.studies.settings import RunSettings
from labmates.util.loops import run_async


@click.command(epilog="Example: labmates fork 3f9a2c41d7 --at 120 --set model.writing=scripted:hasty --set budget=2")
@click.argument("run_id", metavar="RUN")
@click.option(
    "--at",
    metavar="EVENT",
    type=int,
    required=True,
    help="Number of the first event to redo (see: labmates show RUN --events); the step that contains it is redone "
    "as a whole.",
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
@click.option("--json", "as_json", is_flag=True, help="Print the new run as one JSON object and nothing else.")
@store_option
@verbose_option
def fork(run_id: str, at: int, changes: tuple[str, ...], as_json: bool, store: str | None, **values: Any) -> int:
    """Branch RUN at an event: a new run with its first events and a changed condition.

    Kept events are replayed from the record at no cost; models produce all later events. The new run names RUN and the
    event as its origin. A change is refused if it would have altered the kept events.
    """
    from labmates.records.store import Store
    from labmates.studies.fork import fork as make

    wanted = dict(map(_change, changes))
    with Store(store, must_exist=True) as database:
        origin = database.run(run_id)
        settings = settings_of(values, origin.settings)
        run = run_async(lambda: make(database, origin.id, at=at, changes=wanted, settings=settings))
        return execute(database, [run], RunSettings.model_validate(run.settings), as_json=as_json)


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
