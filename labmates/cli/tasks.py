"""``labmates tasks``: the science tasks, our own and those of plug-ins."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import json_option
from labmates.cli.console import clean, err, out, print_json
from labmates.cli.plugins import print_all
from labmates.cli.scoring import difficulty_option, print_scored, read_text, score_text, seed_option, using
from labmates.tasks.salt import data_seed

if TYPE_CHECKING:
    from labmates.tasks.base import Dataset, Difficulty, Task
    from labmates.tasks.conformance.events import Step
    from labmates.tasks.conformance.trial import Trial

STYLES = {"ok": "green", "warning": "yellow", "error": "red", "not tried": "dim"}
MOST_TEXTS = 4
"""So many different texts of one rule are printed; ``--json`` has all."""
MOST_PLACES = 3


@click.group(invoke_without_command=True, epilog="Example: labmates tasks show ecology")
@json_option("per task")
@click.pass_context
def tasks(ctx: click.Context, as_json: bool) -> int:
    """List the science tasks, or show, check or create one."""
    from labmates.tasks.registry import TASKS, get_task

    if ctx.invoked_subcommand is not None:
        return 0

    def look(name: str) -> dict[str, Any]:
        task = get_task(name)
        return {"title": task.title, "version": task.version}

    print_all(TASKS, look, as_json=as_json)
    return 0


@tasks.command("show", epilog="Example: labmates tasks show ecology --seed 3")
@click.argument("name")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the sample shown.")
@click.option("--difficulty", type=click.Choice(["easy", "medium", "hard"]), default="medium", show_default=True)
def show(name: str, seed: int, difficulty: Difficulty) -> int:
    """Show a task: the brief for agents, the findings to state, the first rows of a sample, and what guessing earns."""
    from labmates.tasks.registry import TASKS, get_task
    from labmates.tasks.schema import findings_schema_text

    task = get_task(name)
    with TASKS.guarded(name, "can't be shown"):
        sample = task.generate(data_seed(seed), difficulty)
        parts = {
            f"{task.title} ({task.name}, version {task.version})": task.brief,
            "The data": sample.description,
            "What the report has to state": findings_schema_text(task),
            f"A sample (seed {seed}, {difficulty}): {len(sample.frame)} rows": sample.frame.head(8).to_string(),
            "What guessing earns": _guessing(task, sample, difficulty),
        }
    for title, text in parts.items():
        out().print(clean(title), style="bold", markup=False)
        out().print(clean(f"{text}\n"), markup=False)
    return 0


def _guessing(task: Task[Any, Any], sample: Dataset[Any], difficulty: Difficulty) -> str:
    """Return what the prior states, and what that earns on a sample."""
    from labmates.tasks.base import accuracy

    stated = task.prior([str(column) for column in sample.frame.columns], difficulty)
    earned = accuracy(task.score(stated, sample.truth))
    block = stated.model_dump_json(exclude_none=True)
    return f"Without the data one can state {block}\nIt earns {earned:.3f} on the sample, which is a skill of 0."


@tasks.command("oracle", epilog="Example: labmates tasks oracle ecology --seed 3 > perfect.md")
@click.argument("task")
@seed_option
@difficulty_option
def oracle(task: str, seed: int, difficulty: Difficulty) -> int:
    """Print the report of a team that knows the truth.

    TASK is a name, or path/to/file.py:Class or module:Class for a task that is not installed.
    """
    from labmates.tasks.report import oracle_report

    with using(task) as found:
        click.echo(clean(oracle_report(found, found.generate(data_seed(seed), difficulty).truth)), nl=False)
    return 0


@tasks.command("prior", epilog="Example: labmates tasks prior ecology --seed 3 > guessed.md")
@click.argument("task")
@seed_option
@difficulty_option
def prior(task: str, seed: int, difficulty: Difficulty) -> int:
    """Print the report of a team that never looked at the data: the task's prior.

    TASK is a name, or path/to/file.py:Class or module:Class for a task that is not installed. The seed only decides on
    the names of the columns.
    """
    from labmates.tasks.report import prior_report

    with using(task) as found:
        columns = [str(column) for column in found.generate(data_seed(seed), difficulty).frame.columns]
        click.echo(clean(prior_report(found, columns, difficulty)), nl=False)
    return 0


@tasks.command("score", epilog="Example: labmates tasks score ecology report.md --seed 3")
@click.argument("task")
@click.argument("report", type=click.Path(path_type=Path, allow_dash=True))
@seed_option
@difficulty_option
@json_option()
def score(task: str, report: Path, seed: int, difficulty: Difficulty, as_json: bool) -> int:
    """Score the findings of a text as those of a run's paper are, with the credit of each finding.

    TASK is a name, or path/to/file.py:Class or module:Class for a task that is not installed. REPORT is a file, or -
    for standard input. Seed and difficulty are those of the data set that the report is about.
    """
    text = read_text(report)
    with using(task) as found:
        scored = score_text(found, text, seed, difficulty)
    if as_json:
        print_json(scored)
    else:
        print_scored(scored)
    return 0


@tasks.command("new", epilog="Example: labmates tasks new soil_moisture")
@click.argument("name")
@click.option("--folder", type=click.Path(path_type=Path), help="Folder to write to, new or empty.  [default: NAME]")
def new(name: str, folder: Path | None) -> int:
    """Write a small package with a task of your own that works, for you to change."""
    from labmates.tasks.scaffold import new_package

    folder = folder or Path(name)
    for path in new_package(name, folder):
        out().print(f"wrote {folder / path}", markup=False)
    steps = (
        f"pip install -e {shlex.quote(str(folder))}",
        f"labmates tasks check {name}",
        f"labmates run science --task {name} --model scripted:diligent",
    )
    out().print(
        "\n".join(["Next, in the environment that has labmates:", *(f"  {step}" for step in steps)]), markup=False
    )
    out().print(f"{folder / 'README.md'} says what to change.", markup=False)
    return 0


@tasks.command("check", epilog="Example: labmates tasks check labmates_soil/task.py:SoilTask --seeds 5")
@click.argument("task")
@click.option("--seeds", type=click.IntRange(2, 1000), default=3, show_default=True, help="Number of seeds to try.")
@click.option(
    "--step-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="A rule that takes longer on one data set hangs, in seconds.",
)
@json_option()
def check(task: str, seeds: int, step_timeout: float, as_json: bool) -> int:
    """Find out whether a task keeps the rules: the conformance test.

    TASK is a name, or path/to/file.py:Class or module:Class for a task that is not installed. It is tried with several
    seeds at every difficulty, in processes of its own. Exit code 1 if there is an error; warnings alone give 0.
    """
    from labmates.tasks.conformance.trial import try_task

    with _watching(quiet=as_json) as watch:
        trial = try_task(task, range(seeds), step_seconds=step_timeout, watch=watch)
    if as_json:
        print_json({"task": task, "passed": trial.passed, "rules": list(_verdicts(trial))})
    else:
        out().print(clean(f"{task}: {seeds} seeds at every difficulty"), markup=False)
        for verdict in _verdicts(trial):
            _print_verdict(**verdict)
        counts = [sum(one.severity == severity for one in trial.problems) for severity in ("error", "warning")]
        out().print(f"{'passed' if trial.passed else 'failed'}: {counts[0]} errors, {counts[1]} warnings", markup=False)
    return 0 if trial.passed else 1


@contextmanager
def _watching(*, quiet: bool) -> Iterator[Callable[[Step], None]]:
    """Show on a terminal which step is being taken."""
    if quiet or not err().is_terminal:
        yield lambda _: None
        return
    with err().status("starting") as status:
        yield lambda step: status.update(f"{step.rule} {step.where}")


def _verdicts(trial: Trial) -> Iterator[dict[str, Any]]:
    """Yield what came of each rule, as JSON values."""
    from labmates.tasks.conformance.trial import TRIAL_RULES

    for rule, about in TRIAL_RULES.items():
        problems = [one for one in trial.problems if one.rule == rule]
        severities = {one.severity for one in problems}
        passed = "ok" if rule in trial.tried else "not tried"
        status = next((worst for worst in ("error", "warning") if worst in severities), passed)
        told = [{"severity": one.severity, "text": one.text, "where": one.where} for one in problems]
        yield {"rule": rule, "status": status, "about": about, "problems": told}


def _print_verdict(rule: str, status: str, about: str, problems: list[dict[str, str]]) -> None:
    """Print one rule: a line if it holds or was not tried, else what is wrong and with which data sets."""
    if not problems:
        _line(status, rule, about)
    places: dict[tuple[str, str], list[str]] = {}
    for one in problems:
        places.setdefault((one["severity"], one["text"]), []).append(one["where"])
    for (severity, text), found in sorted(places.items())[:MOST_TEXTS]:
        more = f" and {len(found) - MOST_PLACES} more" if len(found) > MOST_PLACES else ""
        where = "; ".join(filter(None, found[:MOST_PLACES])) + more
        _line(severity, rule, f"{text} [{where}]" if where else text)
    if len(places) > MOST_TEXTS:
        _line("", rule, f"and {len(places) - MOST_TEXTS} more; --json prints all")


def _line(status: str, rule: str, text: str) -> None:
    out().print(clean(f"{status:<10}{rule:<14}{text}"), style=STYLES.get(status), markup=False)
