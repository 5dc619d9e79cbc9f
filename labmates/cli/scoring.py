"""Reports that are printed and scored without a run: ``labmates tasks oracle``, ``prior`` and ``score``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from labmates.cli.console import clean, out
from labmates.errors import LabmatesError, UsageError
from labmates.loops import run_async
from labmates.tasks.salt import data_seed

if TYPE_CHECKING:
    from labmates.tasks.base import Difficulty, Task

F = TypeVar("F", bound=Callable[..., Any])

DIFFICULTIES = ("easy", "medium", "hard")
MOST_BYTES = 20_000_000


def seed_option(function: F) -> F:
    """Add ``--seed``, which has to be given."""
    return click.option(
        "--seed", type=click.IntRange(min=0), required=True, metavar="N", help="Seed of the data set. Required."
    )(function)


def difficulty_option(function: F) -> F:
    """Add ``--difficulty``."""
    return click.option("--difficulty", type=click.Choice(DIFFICULTIES), default="medium", show_default=True)(function)


@contextmanager
def using(reference: str) -> Iterator[Task[Any, Any]]:
    """Load a task by its reference for a while; whatever its code raises is a usage error that names it.

    Raises
    ------
    UsageError
        If there is no such task, or its code raises anything.
    """
    from labmates.tasks.conformance.examine import told
    from labmates.tasks.reference import load_task, resolve_reference

    try:
        yield load_task(resolve_reference(reference))
    except LabmatesError:
        raise
    except (Exception, SystemExit) as error:  # a plug-in may raise anything
        raise UsageError(f"the task '{reference}' {told(error)}; find out more with: labmates tasks check") from error


def read_text(path: Path) -> str:
    """Return the text of a file, or of standard input for ``-``.

    Raises
    ------
    UsageError
        If it can't be read, is too long, or is no UTF-8.
    """
    name = "standard input" if str(path) == "-" else f"'{path}'"
    try:
        with click.open_file(str(path), "rb") as file:
            data: bytes = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"REPORT: can't read {name}: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise UsageError(f"REPORT: {name} is longer than {MOST_BYTES // 1_000_000} MB; give the report alone")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"REPORT: {name} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error


def score_text(task: Task[Any, Any], text: str, seed: int, difficulty: Difficulty) -> dict[str, Any]:
    """Return the scores of the judge ``verified`` for a text on the data set of a seed, as JSON values."""
    from labmates.judges.base import SKILL, Report
    from labmates.judges.verified import VerifiedJudge

    data = task.generate(data_seed(seed), difficulty)
    columns = tuple(str(column) for column in data.frame.columns)
    report = Report(text, task, data.truth, columns=columns, difficulty=difficulty)
    scores = {score.metric: score for score in run_async(lambda: VerifiedJudge().score(report))}
    accuracy, skill = scores["accuracy"], scores[SKILL]
    if skill.failed:
        raise UsageError(skill.reason)
    unstated = [asdict(credit) for credit in task.score(task.findings(), data.truth)]
    return {
        "task": task.name,
        "version": task.version,
        "seed": seed,
        "difficulty": difficulty,
        "accuracy": accuracy.value,
        "skill": skill.value,
        "prior": skill.details.get("prior"),
        "readable": accuracy.details["readable"],
        "repaired": accuracy.details["repaired"],
        "findings": accuracy.details.get("credits", unstated),
        "problems": accuracy.details["problems"],
    }


def print_scored(scored: dict[str, Any]) -> None:
    """Print what `score_text` returns: each finding with its credit, then what was mended and left out."""

    def line(text: str) -> None:
        out().print(clean(text), markup=False)

    width = max(len("finding"), *(len(one["finding"]) for one in scored["findings"])) + 2
    line(f"{'finding':<{width}}{'credit':>6}{'weight':>8}  reason")
    for one in scored["findings"]:
        line(f"{one['finding']:<{width}}{one['credit']:>6.3f}{one['weight']:>8g}  {one['reason']}")
    for one in scored["repaired"]:
        line(f"repaired  {one['where']}: {one['what']}")
    for problem in scored["problems"]:
        line(f"problem   {problem}")
    line(f"accuracy  {scored['accuracy']:.3f}")
    guessed = "" if scored["prior"] is None else f" (guessing without data earns {scored['prior']:.3f})"
    line("skill     " + ("not defined" if scored["skill"] is None else f"{scored['skill']:.3f}") + guessed)
