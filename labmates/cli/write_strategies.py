"""``labmates strategies write``: strategies written by a model."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from labmates.cli.common import json_option, store_option, verbose_option
from labmates.cli.console import clean, out
from labmates.cli.options import condition_given, flags_of, options_of
from labmates.cli.run import execute, settings_of, useless
from labmates.errors import UsageError
from labmates.models.options import ModelOptions
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.runs import stopped_run
from labmates.studies.settings import RunSettings
from labmates.workflows.populations.condition import StrategiesCondition


@click.command(
    "write",
    epilog="Example: labmates strategies write --model openai:gpt-5.4-mini --game public-goods --attitude exploitative "
    "-n 512",
)
@click.option(
    "--to",
    "library",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("strategies"),
    show_default=True,
    help="The library that they are added to.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the run.")
@click.option("--resume", metavar="ID", help="Go on with writing that did not end, or add what it wrote.")
@json_option("of the run")
@store_option
@verbose_option
def write(library: Path, seed: int, resume: str | None, as_json: bool, store: str | None, **values: Any) -> int:
    """Let a model write strategies, and add those that pass the checks to a library.

    Each is described in words first, then implemented from the description; an implementation that fails the checks is
    thrown away and written anew. All calls are kept in the store, so that writing that was interrupted goes on.
    """
    from labmates.models.catalog import Catalog
    from labmates.records.bodies import Bodies
    from labmates.studies.runs import new_runs
    from labmates.workflows.experiment import condition_of, make_condition
    from labmates.workflows.populations.engine.authoring import add_to_library
    from labmates.workflows.populations.strategies import written_in

    asked = condition_given(values, StrategiesCondition)
    if resume is None:
        missing = [f"--{name}" for name in ("model", "game", "attitude") if name not in asked]
        if missing:
            raise UsageError(f"missing: {', '.join(missing)}. Try 'labmates strategies write --help'.")
        settings = settings_of(values, {})
        catalog = Catalog(settings.models)
        wanted = make_condition("strategies", asked, flags_of(StrategiesCondition), catalog=catalog)
        wanted.check()
        settings = settings.resolved(catalog)
    elif asked:
        raise UsageError("writing goes on with its own condition; leave out the options that say what is written")
    with Store(store, must_exist=resume is not None) as database:
        if resume is None:
            runs = new_runs(wanted, seed=seed, replicates=1, settings=settings)
        else:
            runs = [_before(database, resume)]
            settings = settings_of(values, runs[0].settings)
        ended = runs[0].status == "completed"
        again = f"labmates strategies write --to {shlex.quote(str(library))}"
        code = 0 if ended else execute(database, runs, settings, as_json=as_json, command=again)
        run = database.run(runs[0].id)
        condition = StrategiesCondition.model_validate(condition_of(run).model_dump())
        found = written_in(condition, run.id, database.events(run.id), Bodies(database.bodies(run.id)))
    file, added = add_to_library(library, condition.game, condition.model, found)
    if not as_json:
        out().print(clean(f"{added} strategies were added to {file.path}"), markup=False)
    return code


def _before(store: Store, run_id: str) -> RunRecord:
    """Return the run of earlier writing; if it has ended, there is nothing left but to add what it wrote."""
    run = store.run(run_id)
    if run.kind != StrategiesCondition.kind:
        raise UsageError(f"the run '{run.id}' is of the kind {run.kind}, not {StrategiesCondition.kind}")
    return run if run.status == "completed" else stopped_run(store, run_id)


def _options() -> list[click.Parameter]:
    """Return the options of the condition; ``-n`` is short for the number of strategies."""
    own = options_of(StrategiesCondition)
    for option in own:
        if option.name == "number":
            option.opts.insert(0, "-n")
    return [*own, *options_of(ModelOptions), *options_of(RunSettings, leave_out=useless("strategies"))]


write.params = [*_options(), *write.params]
