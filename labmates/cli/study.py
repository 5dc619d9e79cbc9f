"""``labmates study``: plans, execution and progress of many runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import SuggestingGroup, choosing, json_option, store_option, verbose_option
from labmates.cli.console import complain, err, print_json, say
from labmates.cli.tables import print_grid
from labmates.errors import LabmatesError, UsageError
from labmates.studies.designs import RULES
from labmates.studies.executor import EXECUTORS, LOCAL, executor_at

if TYPE_CHECKING:
    from labmates.records.database import Database
    from labmates.records.store import Store
    from labmates.records.studies import Counts, StudyRecord
    from labmates.studies.executor import Executor
    from labmates.studies.plan import Plan
    from labmates.studies.spec import StudySpec


_SHOWN_REASONS = 5
_LONGEST_REASON = 200
_study = click.argument("study", metavar="STUDY")
_allow_mixed = choosing(["allow_mixed"])


@click.group(cls=SuggestingGroup, epilog="Example: labmates study run science-small")
def study() -> None:
    """Plan and execute many runs, described in one file.

    STUDY is a YAML file, or the name of a ready-made study (see: labmates study list).
    """


@study.command(name="list", epilog="Example: labmates study list")
def list_studies() -> None:
    """List the ready-made studies."""
    from labmates.studies import ready
    from labmates.studies.source import find_study
    from labmates.studies.spec import read_spec

    width = max(map(len, ready.names()))
    for name in ready.names():
        say(f"{name:{width}}  {read_spec(find_study(name)).description}")


@study.command(epilog="Example: labmates study show science-sample > mine.yaml")
@_study
def show(study: str) -> None:
    """Print a ready-made study, as a start for your own."""
    from labmates.studies import ready

    if study not in ready.names():
        raise UsageError(f"no study '{study}' comes with labmates; these do: {', '.join(ready.names())}")
    click.echo(ready.text(study), nl=False)


@study.command(epilog="Example: labmates study plan science-small --for 'compare visibility' --difference 0.1")
@_study
@click.option("--for", "compared", metavar="'compare PARAMETER'", help="Plan this comparison alone. [default: all]")
@click.option(
    "--difference",
    type=click.FloatRange(min=0, min_open=True),
    help="Print how many seeds, models or tasks --for needs to find this difference with 80 % power, and their cost.",
)
@store_option
@json_option()
def plan(study: str, compared: str | None, difference: float | None, store: str | None, as_json: bool) -> None:
    """Estimate a study's cost and time before it spends anything, and the differences that it can find.

    Estimates come from runs of the same kind in the store; without any, from the defaults of the kind.
    """
    from labmates.records.store import Store
    from labmates.studies.plan import make_plan
    from labmates.studies.source import find_study
    from labmates.studies.spec import read_spec

    if difference is not None and compared is None:
        raise UsageError("--difference: name the comparison too, for instance --for 'compare organisation'")
    source = find_study(study)
    spec = read_spec(source)
    with Store.existing(store) as database:
        made = make_plan(spec, database, source, compared=compared, difference=difference)
    if as_json:
        print_json(made.as_json())
    else:
        _print_plan(made)


@study.command(epilog="Example: labmates study run science-small --workers 2")
@_study
@store_option
@verbose_option
@click.option("--workers", type=click.IntRange(1, 256), help="Worker processes; by default as in the study.")
@click.option(
    "--executor",
    metavar="NAME[:ADDRESS]",
    default=LOCAL,
    show_default=True,
    help=f"Where workers run: on this machine, or on a cluster ({', '.join(EXECUTORS) or 'none installed'}).",
)
@click.option(
    "--until",
    metavar="RULE",
    help=f"Stop early by a rule ({', '.join(RULES) or 'none installed'}).",
)
@_allow_mixed
@json_option()
def run(
    study: str,
    store: str | None,
    workers: int | None,
    executor: str,
    until: str | None,
    allow_mixed: bool,
    as_json: bool,
) -> int:
    """Execute a study's missing runs.

    The same command resumes an interrupted study, and does nothing when all runs have ended. A study that has grown
    (more replicates, more values) keeps its runs. Other machines that reach the store can join: labmates worker.
    """
    from labmates.records.store import Store
    from labmates.records.studies import study_counts
    from labmates.studies.source import find_study
    from labmates.studies.spec import mixing, read_spec
    from labmates.studies.study import enter

    cluster = None if executor == LOCAL else executor_at(executor)
    rule = RULES.get(until) if until else None
    source = find_study(study)
    source = mixing(source) if allow_mixed else source
    spec = read_spec(source)
    with Store(store) as database:
        for part in rule.growing(database, spec) if rule else [spec]:
            with err().status("entering its runs …") as shown:
                entered = enter(
                    database, part, source, watch=lambda number: shown.update(f"entering its runs: {number:,}")
                )
            old = f", {entered.runs - entered.new} of them in the store" if entered.runs > entered.new else ""
            conditions = f"{entered.conditions} conditions, {part.replicates} runs of each"
            err().print(f"Study {spec.name}: {conditions}: {entered.runs} runs{old}.")
            stopped = False
            if study_counts(database, spec.name).of("planned", "interrupted", "running"):
                stopped = _execute(database, part, workers or spec.concurrency.workers, cluster)
            if stopped:
                break
            if rule and (end := rule.settled(database, part, spec.replicates)):
                why = "Settled" if end.is_told else "A difference will hardly be told: stopped"
                err().print(f"{why} after {end.replicates} of {spec.replicates} replicates. {end.answer}")
                break
        return _report(database, spec.name, stopped, as_json)


@study.command(epilog="Example: labmates study status science-small")
@click.argument("study", metavar="[STUDY]", required=False)
@store_option
@json_option()
def status(study: str | None, store: str | None, as_json: bool) -> None:
    """Show a study's progress, also while it runs; by default for the only study in the store."""
    from labmates.records.database import Database

    # Not the whole store, which takes as long again to import.
    with Database(store, must_exist=True) as database:
        _show_status(database, stored_study(database, study), as_json)


@study.command(epilog="Example: labmates study retry science-small --failed")
@click.argument("study", metavar="[STUDY]", required=False)
@store_option
@click.option("--failed", is_flag=True, required=True, expose_value=False, help="Retry failed runs.")
def retry(study: str | None, store: str | None) -> None:
    """Queue failed runs, so that the next 'labmates study run' resumes them. Their errors stay in the record."""
    from labmates.records.store import Store
    from labmates.records.studies import retry_failed

    with Store(store, must_exist=True) as database:
        name = stored_study(database, study).name
        number = retry_failed(database, name)
    again = f" Resume with: labmates study run {study or name}" if number else ""
    say(f"{number} failed runs are in the queue again.{again}")


def stored_study(database: Database, study: str | None) -> StudyRecord:
    """A study of the store by name or file; by default the only one."""
    from labmates.records.studies import study_record

    if study is not None and study.endswith((".yaml", ".yml")):
        from labmates.studies.source import find_study

        study = str(find_study(study).data["name"])
    return study_record(database, study)


def _execute(database: Store, spec: StudySpec, workers: int, cluster: tuple[Executor, str | None] | None) -> bool:
    from labmates.cli.interrupt import run_until_stopped
    from labmates.cli.progress import following
    from labmates.studies.processes import work_in_processes
    from labmates.studies.study import work_on
    from labmates.workflows.calls.stop_signal import StopSignal

    stop_signal = StopSignal()

    async def work() -> bool:
        async with following(database, spec) as notify:
            if cluster is not None:
                executor, address = cluster
                await executor.work_on(
                    database.url, spec, workers=workers, address=address, stop_signal=stop_signal, notify=notify
                )
            elif workers > 1:
                await work_in_processes(database.url, spec.name, workers, stop_signal)
            else:
                await work_on(database, spec, stop_signal=stop_signal, notify=notify)
        return stop_signal.pulled.is_set()

    try:
        return run_until_stopped(work(), stop_signal, lambda text: err().print(text)) is not False
    except UsageError:
        raise
    except LabmatesError as error:
        raise LabmatesError(f"{error}\nFinished work is kept. Fix this and resume with the same command.") from error


def _report(database: Database, name: str, stopped: bool, as_json: bool) -> int:
    from labmates.budgets.money import show_dollars
    from labmates.records.studies import pauses, study_record
    from labmates.workflows.protocol.verb import PAUSED_CODE

    counts = _show_status(database, stored_study(database, name), as_json)
    if stopped:
        err().print("Stopped; everything is kept. Resume with the same command.")
        return 130
    if paused := pauses(database, name):
        for reason, _ in paused:
            complain(f"{reason}\n  Everything is kept. Resume then with the same command.")
        return PAUSED_CODE
    if counts.of("failed"):
        complain(f"{counts.of('failed')} runs failed; try them again with: labmates study retry {name} --failed")
        return 1
    if over := counts.overspent(study_record(database, name).cap):
        complain(f"the study has spent {show_dollars(over)} more than its cap")
        return 1
    if counts.invalid:
        complain(
            f"{counts.invalid} of {counts.of('completed', 'exhausted')} ended runs are invalid, for the reasons above"
        )
        return 1
    return 0


def _show_status(database: Database, study: StudyRecord, as_json: bool) -> Counts:
    from labmates.records.studies import study_counts

    counts = study_counts(database, study.name)
    if as_json:
        print_json(_status_json(database, study, counts))
    else:
        _print_status(database, study, counts)
    return counts


def _status_json(database: Database, study: StudyRecord, counts: Counts) -> dict[str, Any]:
    from labmates.budgets.money import format_dollars
    from labmates.records.made import study_mixtures
    from labmates.records.studies import pauses, uncertain_cost

    return {
        "study": study.name,
        "runs": counts.total,
        "status": dict(counts.runs),
        "invalid": counts.invalid,
        "idle": counts.idle,
        "spent": format_dollars(counts.spent),
        "uncertain": format_dollars(uncertain_cost(database, study.name)),
        "cap": None if study.cap is None else format_dollars(study.cap),
        "overspent": bool(counts.overspent(study.cap)),
        "capped": counts.cannot_go_on(study.cap),
        "workers": dict(counts.workers),
        "mixed": study_mixtures(database, study.name),
        "paused": [reason for reason, _ in pauses(database, study.name)],
    }


def _print_status(database: Database, study: StudyRecord, counts: Counts) -> None:
    from labmates.budgets.money import show_dollars
    from labmates.cli.summary import print_unusable
    from labmates.records.made import study_mixtures
    from labmates.records.run import NO_WORK
    from labmates.records.studies import failure_reasons, invalid_reasons, pauses, uncertain_cost, unusable_replies

    statuses = ", ".join(f"{number} {status}" for status, number in sorted(counts.runs.items()))
    of_cap = "" if study.cap is None else f" of {show_dollars(study.cap)}"
    uncertain = uncertain_cost(database, study.name)
    lost = f", up to {show_dollars(uncertain)} of it for attempts without a reply" if uncertain else ""
    say(f"{study.name}: {counts.total} runs: {statuses}; {show_dollars(counts.spent)}{of_cap} in credits{lost}")
    for worker, number in counts.workers.items():
        say(f"  {worker} executes {number}")
    for reason, number in pauses(database, study.name):
        say(f"  {number} paused: {reason[:_LONGEST_REASON]}")
    for reason, number in failure_reasons(database, study.name, _SHOWN_REASONS):
        say(f"  {number} failed: {reason[:_LONGEST_REASON]}")
    for reason, number in invalid_reasons(database, study.name, _SHOWN_REASONS):
        say(f"  {number} invalid: {reason[:_LONGEST_REASON]}")
    print_unusable(unusable_replies(database, study.name, _SHOWN_REASONS))
    if counts.idle:
        say(f"  {counts.idle} {NO_WORK}")
    for mixture in study_mixtures(database, study.name):
        say(f"  made with different {mixture}")
    if over := counts.overspent(study.cap):
        say(f"  fault: {show_dollars(over)} more than the cap were spent")
    if counts.cannot_go_on(study.cap):
        waiting = counts.of("planned", "interrupted")
        say(f"The cap can't pay more: {waiting} runs wait. Raise 'cap' and start the study again.")


def _print_plan(plan: Plan) -> None:
    from labmates.budgets.money import show_dollars
    from labmates.studies.designs import PLANS

    done = f", {plan.done:,} of them done" if plan.done else ""
    replicates = f"{plan.replicates:,} {'run' if plan.replicates == 1 else 'runs'}"
    cells = f"{plan.conditions:,} conditions × {replicates}"
    say(f"{plan.name}: {cells} = {plan.runs:,} runs{done}. Estimate for the remaining runs:")
    headings = ["model", "runs", "calls", "tokens in", "out", "dollars", "at most", "hours", "basis"]
    rows = []
    for model_plan in [*plan.models, plan.total()] if len(plan.models) > 1 else plan.models:
        counts = (model_plan.runs, model_plan.calls, model_plan.input_tokens, model_plan.output_tokens)
        money = [f"${amount / 1e6:,.2f}" for amount in (model_plan.dollars, model_plan.most_dollars)]
        if model_plan.low_dollars is not None and model_plan.high_dollars is not None:
            money[0] += f" [{model_plan.low_dollars / 1e6:,.2f}, {model_plan.high_dollars / 1e6:,.2f}]"
        basis = "" if model_plan.model == "all" else model_plan.basis
        rows.append([model_plan.model, *map(_short, counts), *money, f"{model_plan.hours:.1f}", basis])
    print_grid(headings, rows, [heading not in ("model", "as") for heading in headings])
    if plan.cap is not None:
        enough = "enough" if plan.spent + plan.total().dollars <= plan.cap else "not enough for all of that"
        say(f"The cap of {show_dollars(plan.cap)} is {enough}.")
    for line in (line for each in plan.detectable for line in each.lines()):
        say(line)
    for package in sorted(PLANS.missing()):
        say(f"What the study can find is told by the package {package}: pip install {package}")


def _short(number: int) -> str:
    return f"{number:,}" if number < 100_000 else f"{number / 1e6:,.1f} M"
