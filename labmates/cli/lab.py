"""Runs on the command line: settings, execution, and the lab of verbs."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from labmates.cli.console import complain, err, notify
from labmates.cli.interrupt import run_until_stopped
from labmates.cli.options import flag, flags_of, given, options_of
from labmates.cli.results import chosen_runs
from labmates.cli.summary import print_summary
from labmates.errors import UsageError, explaining
from labmates.models.options import ModelOptions
from labmates.studies.lab import StudyLab
from labmates.studies.settings import APPROVAL, RunSettings, approval_fault
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition
from labmates.workflows.protocol.verb import PAUSED_CODE, InterruptedWorkError, PausedWorkError

if TYPE_CHECKING:
    from rich.status import Status

    from labmates.records.run import RunRecord
    from labmates.records.store import Store

T = TypeVar("T")
_MOST_INVALID = 20
"""Maximum number of invalid runs in the output."""


class CommandLab(StudyLab):
    """The lab of one command; `code` is the exit code from runs, `again` the command that takes ``--resume RUN``."""

    def __init__(self, values: dict[str, Any], given: Mapping[str, Any], *, again: str) -> None:
        self._status: Status | None = None
        # Steps of an analysis take minutes: they are told on every kind of output.
        runs = chosen_runs(values, watch=lambda step: err().print(step))
        super().__init__(values.get("store"), partial(settings_of, values), given, runs, flags_of)
        self.code = 0
        self.hint = f". Try '{click.get_current_context().command_path} --help'."
        self.as_json = bool(values.get("as_json"))
        self._again = again

    def option(self, name: str) -> str:
        """The option of a parameter."""
        return flag(name)

    def notify(self, text: str) -> None:
        """Show a line that the user should know."""
        notify(text)

    def warn(self, text: str) -> None:
        """Show a warning."""
        complain(text)

    def step(self, text: str) -> None:
        """Show progress."""
        if self._status is None and not self.as_json:
            self._status = err().status(text)
            self._status.start()
        elif self._status is not None:
            self._status.update(text)

    def __exit__(self, *error: object) -> None:
        if self._status is not None:
            self._status.stop()
        super().__exit__(*error)

    def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Run asynchronous work until its end or Ctrl-C."""
        ended = run_until_stopped(work)
        if ended is None:
            raise InterruptedWorkError
        return ended

    def execute(self, runs: list[RunRecord], settings: RunSettings, part_of: str | None = None) -> None:
        """Execute runs with a progress display; separate runs get a summary."""
        as_json = self.as_json and part_of is None
        code = execute(self.store, runs, settings, as_json=as_json, command=self._again, part_of=part_of)
        if code == 130:
            raise InterruptedWorkError
        if code == PAUSED_CODE:
            raise PausedWorkError
        self.code = max(self.code, code)


def execute(
    store: Store,
    runs: list[RunRecord],
    settings: RunSettings,
    *,
    as_json: bool,
    command: str | None = None,
    part_of: str | None = None,
) -> int:
    """Execute runs with a progress display, print their results, and return the exit code.

    `command`, with ``--resume``, resumes a run; by default ``labmates run KIND``. `part_of` names a larger work that
    prints its own summary and resumes the runs when it is repeated; None for separate runs.
    """
    from labmates.cli.progress import Progress, can_ask
    from labmates.studies.session import Session
    from labmates.workflows.calls.stop_signal import StopSignal

    again = f"{command or f'labmates run {runs[0].kind}'} --resume"
    stop_signal = StopSignal()
    with Progress(store, runs, as_json=as_json) as progress:
        approver = progress.ask if can_ask(runs) and part_of is None else None
        session = Session(
            store,
            settings,
            watch=progress.watch,
            notify=progress.notify,
            stop_signal=stop_signal,
            approver=approver,
        )
        ended = run_until_stopped(session.execute(runs), stop_signal, progress.notify)
    if ended is None or stop_signal.pulled.is_set():
        if part_of is not None:
            err().print(f"Interrupted. The same command resumes {part_of}.")
            return 130
        for run_id in progress.interrupted:
            err().print(f"Interrupted. Resume with: {again} {run_id}")
        return 130
    paused = [record for record in ended if record.status == "interrupted"]
    failed = [record for record in ended if record.status == "failed"]
    elsewhere = {run.id for run in runs} - {record.id for record in ended}
    if part_of is not None:
        if failed:
            why = f"run {failed[0].id}: {failed[0].error}"
            complain(f"{len(failed)} of {len(ended)} runs failed; {why}\n  the same command resumes {part_of}")
        for reason in dict.fromkeys(record.error for record in paused):
            complain(f"{reason}\n  the same command resumes {part_of}")
        return PAUSED_CODE if paused else 1 if failed or elsewhere else 0
    if ended and not as_json:
        print_summary(store, ended)
    for record in paused:
        complain(f"run {record.id} is {record.error}\n  resume then with: {again} {record.id}")
    for record in failed:
        complain(f"run {record.id} failed: {record.error}\n  resume with: {again} {record.id}")
    for run_id in sorted(elsewhere):
        complain(f"run {run_id} was taken over by another process; see: labmates show {run_id}")
    invalid = [record for record in ended if record.invalid]
    for record in invalid[:_MOST_INVALID]:
        complain(f"run {record.id} is invalid: {record.invalid}")
    if len(invalid) > 1:
        complain(f"{len(invalid)} of {len(ended)} runs are invalid")
    return PAUSED_CODE if paused else 1 if failed or invalid or elsewhere else 0


def condition_sections(
    kind: str, *, leave_out: Iterable[str] = (), settings_left_out: Iterable[str] = ()
) -> dict[str, list[click.Parameter]]:
    """Options of a run by section: condition, models, execution."""
    condition = EXPERIMENTS.get(kind).condition
    options = options_of(condition, leave_out=leave_out)
    needed = [option for option in options if condition.model_fields[option.name or ""].is_required()]
    for option in needed:
        if isinstance(option, click.Option):
            option.help = f"{option.help} [required]"
    options.sort(key=lambda option: option not in needed)
    settings = options_of(RunSettings, leave_out=[*useless(kind), *settings_left_out])
    return {"Condition": options, "Models": options_of(ModelOptions), "Execution": settings}


def useless(kind: str) -> list[str]:
    """The settings without effect on runs of a kind."""
    experiment = EXPERIMENTS.get(kind)
    code = [] if experiment.needs_sandbox else ["max_sandboxes"] if experiment.shared else ["sandbox", "max_sandboxes"]
    code += [] if experiment.shared else ["processes", "executor"]
    judges = [] if experiment.report else ["judges", "extractor"]
    asks = experiment.condition.approvals is not Condition.approvals
    approval = [] if asks else ["approve_all", "approve_in_viewer", "approval_timeout"]
    return ["models", *code, *judges, *approval]


def settings_of(values: dict[str, Any], before: Mapping[str, Any]) -> RunSettings:
    """The given settings, on top of a run's earlier ones."""
    with explaining(_setting_flag):
        models = {**before.get("models", {}), **given(values, ModelOptions)}
        settings = {name: value for name, value in given(values, RunSettings).items() if name != "models"}
        if fault := approval_fault(settings, flag):
            raise UsageError(fault)
        if APPROVAL.keys() & settings.keys():
            before = {**before, **APPROVAL}
        return RunSettings.model_validate({**before, **settings, "models": models})


def _setting_flag(path: str) -> str:
    prefix, dot, of_models = path.partition("models.")
    return flags_of(ModelOptions)(of_models) if dot and not prefix else flags_of(RunSettings)(path)
