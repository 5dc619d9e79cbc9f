"""``labmates run KIND``: one condition, one or more runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError

from labmates.cli.common import RegistryGroup, json_option, store_option, verbose_option
from labmates.cli.console import complain, err
from labmates.cli.interrupt import run_until_stopped
from labmates.cli.options import condition_given, flag, flags_of, given, options_of
from labmates.errors import UsageError, explain
from labmates.models.options import ModelOptions
from labmates.studies.settings import RunSettings
from labmates.workflows.experiment import EXPERIMENTS, Condition

if TYPE_CHECKING:
    from labmates.models.catalog import Catalog
    from labmates.records.run import RunRecord
    from labmates.records.store import Store

_MOST_INVALID = 20
"""So many invalid runs are named, each with the reason."""


class Kinds(RegistryGroup):
    """The kinds of experiments, each with the options of its condition."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all kinds."""
        return EXPERIMENTS.names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of one kind."""
        return _command(cmd_name) if cmd_name in EXPERIMENTS else None


@click.group(cls=Kinds, epilog="Example: labmates run game --game o-ring --model scripted:random")
def run() -> None:
    """Run one condition of an experiment, one or more times."""


def _command(kind: str) -> click.Command:
    condition = EXPERIMENTS.get(kind).condition

    @store_option
    @verbose_option
    @click.option("--replicates", type=click.IntRange(min=1), default=1, show_default=True, help="Number of runs.")
    @click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Seed of the first run; the next has one more.",
    )
    @click.option("--resume", metavar="ID", help="Go on with a run that did not end, with its own condition.")
    @json_option("per run")
    def callback(
        store: str | None, replicates: int, seed: int, resume: str | None, as_json: bool, **values: Any
    ) -> int:
        from labmates.models.catalog import Catalog
        from labmates.records.store import Store
        from labmates.studies.runs import new_runs, stopped_run
        from labmates.workflows.experiment import make_condition

        asked = condition_given(values, condition)
        if resume is None:
            _need(condition, asked)
            settings = settings_of(values, {})
            catalog = Catalog(settings.models)
            wanted = make_condition(kind, asked, flags_of(condition), catalog=catalog)
            wanted.check()
            settings = settings.resolved(catalog)
        with Store(store, must_exist=resume is not None) as database:
            if resume is None:
                runs = new_runs(wanted, seed=seed, replicates=replicates, settings=settings)
                return execute(database, runs, settings, as_json=as_json)
            stopped = stopped_run(database, resume)
            settings = settings_of(values, stopped.settings)
            catalog = Catalog(settings.models)
            _same(stopped, kind, condition, asked, catalog)
            return execute(database, [stopped], settings.resolved(catalog), as_json=as_json)

    command = click.command(
        name=kind,
        help=condition.__doc__,
        epilog=f"Example: {example}" if (example := EXPERIMENTS.get(kind).example) else None,
    )(callback)
    own = [*options_of(condition), *options_of(ModelOptions), *options_of(RunSettings, leave_out=useless(kind))]
    command.params = [*own, *command.params]
    return command


def execute(
    store: Store,
    runs: list[RunRecord],
    settings: RunSettings,
    *,
    as_json: bool,
    command: str | None = None,
    part_of: str | None = None,
) -> int:
    """Execute runs with a progress display, print what came of them, and return the exit code.

    Parameters
    ----------
    command
        The command that goes on with a run, to be told the option ``--resume``; by default that of the run's kind.
    part_of
        What the runs are a part of, which prints its own summary and, called again, goes on with them; None for runs
        that stand for themselves.
    """
    from labmates.cli.progress import Progress
    from labmates.cli.summary import print_summary
    from labmates.studies.session import Session
    from labmates.workflows.stop_signal import StopSignal

    again = f"{command or f'labmates run {runs[0].kind}'} --resume"
    stop_signal = StopSignal()
    with Progress(store, runs, as_json=as_json) as progress:
        session = Session(store, settings, watch=progress.watch, notify=progress.notify, stop_signal=stop_signal)
        ended = run_until_stopped(session.execute(runs), stop_signal, progress.notify)
    if ended is None or stop_signal.pulled.is_set():
        if part_of is not None:
            err().print(f"Interrupted. The same command goes on with {part_of}.", markup=False)
            return 130
        for run_id in progress.interrupted:
            err().print(f"Interrupted. Go on with: {again} {run_id}", markup=False)
        return 130
    failed = [record for record in ended if record.status == "failed"]
    elsewhere = {run.id for run in runs} - {record.id for record in ended}
    if part_of is not None:
        if failed:
            why = f"run {failed[0].id}: {failed[0].error}"
            complain(f"{len(failed)} of {len(ended)} runs failed; {why}\n  the same command goes on with {part_of}")
        return 1 if failed or elsewhere else 0
    if ended and not as_json:
        print_summary(store, ended)
    for record in failed:
        complain(f"run {record.id} failed: {record.error}\n  go on with: {again} {record.id}")
    for run_id in sorted(elsewhere):
        complain(f"run {run_id} was taken over by another process; see: labmates show {run_id}")
    invalid = [record for record in ended if record.invalid]
    for record in invalid[:_MOST_INVALID]:
        complain(f"run {record.id} is invalid: {record.invalid}")
    if len(invalid) > 1:
        complain(f"{len(invalid)} of {len(ended)} runs are invalid")
    return 1 if failed or invalid or elsewhere else 0


def useless(kind: str) -> list[str]:
    """Return the settings that mean nothing to runs of a kind."""
    found = EXPERIMENTS.get(kind)
    code = [] if found.needs_sandbox else ["max_sandboxes"] if found.shared else ["sandbox", "max_sandboxes"]
    code += [] if found.shared else ["processes"]
    judges = [] if found.report else ["judges", "extractor"]
    return ["models", *code, *judges]


def settings_of(values: dict[str, Any], before: dict[str, Any]) -> RunSettings:
    """Return the settings that were given, on top of those that a run had before."""
    try:
        models = {**before.get("models", {}), **given(values, ModelOptions)}
        own = {name: value for name, value in given(values, RunSettings).items() if name != "models"}
        return RunSettings.model_validate({**before, **own, "models": models})
    except ValidationError as error:
        raise UsageError(explain(error, _setting_flag)) from error


def _setting_flag(path: str) -> str:
    """The option of a setting; those of models have options of their own."""
    own, dot, of_models = path.partition("models.")
    return flags_of(ModelOptions)(of_models) if dot and not own else flags_of(RunSettings)(path)


def _need(condition: type[Condition], asked: dict[str, Any]) -> None:
    missing = [
        flag(name) for name, field in condition.model_fields.items() if field.is_required() and name not in asked
    ]
    if missing:
        raise UsageError(f"missing: {', '.join(missing)}. Try 'labmates run {condition.kind} --help'.")


def _same(stopped: RunRecord, kind: str, condition: type[Condition], asked: dict[str, Any], catalog: Catalog) -> None:
    if stopped.kind != kind:
        raise UsageError(f"the run '{stopped.id}' is of the kind {stopped.kind}, not {kind}")
    try:
        merged = condition.model_validate({**stopped.condition, **asked}, context=catalog)
    except ValidationError as error:
        raise UsageError(explain(error, flags_of(condition))) from error
    if merged.key != stopped.key:
        raise UsageError(f"a run goes on with its own condition; leave out the options that change it ('{stopped.id}')")
