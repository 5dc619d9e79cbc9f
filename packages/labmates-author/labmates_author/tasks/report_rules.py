"""The rules on a task's truth and its scoring of reports."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from pydantic import BaseModel

from labmates.tasks.analysis import run_cells
from labmates.tasks.base import Check, Credit, Task, accuracy
from labmates.tasks.fences import split_blocks
from labmates.tasks.findings import check_findings, read_findings
from labmates_author.tasks.cases import Case
from labmates_author.tasks.report import findings_report, oracle_report
from labmates_author.trial import Mild

ORACLE_LEAST = 0.95
PRINTED_MOST = 8_000
"""Most characters that the cells of a task print in all."""
PRIOR_MOST = 0.15
"""Most that a prior may earn on average, so that guesses don't look like work."""
ALIEN_MOST = 0.2
"""Most that the truth of another seed may earn on average."""
HOSTILE = ("", "\x00", "9" * 5000, "((((" * 500, "species " * 2000, "\ud800 sensor 1e400")
"""Texts that the checks of a task must accept."""


def analysis(case: Case) -> Iterator[str]:
    """The cells run, and print findings of the schema; a task need not have any."""
    if case.task.analysis is None:
        return
    printed, found = run_cells(case.task.analysis, pd.read_csv(io.BytesIO(case.csv)))
    yield from (f"a line RESULT: {problem}" for problem in check_findings(found, case.task.findings).problems)
    if not found:
        yield "its cells print no findings; print a line that begins with RESULT and has them as JSON, by field"
    if len(printed) > PRINTED_MOST:
        yield f"its cells print {len(printed):,} characters; at most {PRINTED_MOST:,} are read"


def truth(case: Case) -> Iterator[str]:
    """Check that JSON and scoring preserve the truth."""
    known = case.data.truth
    text = known.model_dump_json()
    if type(known).model_validate_json(text) != known:
        yield "the truth does not survive being written as JSON and read again"
    case.task.score(case.task.oracle(known), known)
    if known.model_dump_json() != text:
        yield "scoring changes the truth"


def score(case: Case) -> Iterator[str]:
    """Check the scores of the report written from the truth, and of an empty one."""
    task, known = case.task, case.data.truth
    right = task.oracle(known)
    if not isinstance(right, task.findings):
        yield f"oracle must return {task.findings.__name__}, not {type(right).__name__}"
        return
    read = read_findings(oracle_report(task, known), task.findings)
    yield from (f"the oracle's findings can't be read back: {problem}" for problem in read.problems)
    for findings, least, most, name in (
        (read.findings, ORACLE_LEAST, 1.0, "the oracle's report"),
        (task.findings(), 0.0, 0.0, "a report without findings"),
    ):
        if findings is None:
            continue  # the reason is reported above
        credits = task.score(findings, known)
        wrong = list(faults(credits))
        yield from wrong
        if not wrong and not least <= accuracy(credits) <= most:
            weak = ", ".join(f"{c.finding} {c.credit:.2f}" for c in credits if not least <= c.credit <= most)
            yield f"{name} scores {accuracy(credits):.3f}, not {f'at least {least}' if least else '0'} ({weak})"


def faults(credits: Sequence[Credit]) -> Iterator[str]:
    """Check the credits of a task."""
    if not isinstance(credits, (tuple, list)) or not all(isinstance(credit, Credit) for credit in credits):
        yield f"score must return a tuple of Credit, not {credits!r:.80}"
        return
    names = [credit.finding for credit in credits]
    if not names or len(set(names)) < len(names):
        yield "a score needs at least one credit, and each finding once"
    for credit in credits:
        if not 0 <= credit.credit <= 1 or not 0 < credit.weight < math.inf:
            given = f"{credit.credit} and {credit.weight}"
            yield f"'{credit.finding}' needs a credit in [0, 1] and a positive weight, not {given}"


def checks(case: Case) -> Iterator[str]:
    """Check the rules on a report's words."""
    prose = split_blocks(oracle_report(case.task, case.data.truth)).prose
    checks = case.task.checks(case.data.truth)
    if not isinstance(checks, (tuple, list)) or not all(isinstance(check, Check) for check in checks):
        yield f"checks must return a tuple of Check, not {checks!r:.80}"
        return
    if not checks or len({check.name for check in checks}) < len(checks):
        yield "a task needs at least one check, each with its own name"
    for check in checks:
        if not check.holds(prose):
            yield f"the check '{check.name}' fails for the template report; add its words to `summary`"
        if check.holds(""):
            yield f"the check '{check.name}' holds for an empty text"
        for text in HOSTILE:
            check.holds(text)


def prior(case: Case, earned: list[float]) -> Iterator[str]:
    """Add the accuracy of a data set's prior to `earned`; yield its problems."""
    task, columns = case.task, tuple(str(column) for column in case.data.frame.columns)
    stated = task.prior(columns, case.difficulty)
    if not isinstance(stated, task.findings):
        yield f"prior must return {task.findings.__name__}, not {type(stated).__name__}"
        return
    read = read_findings(findings_report(task, stated), task.findings)
    yield from (f"the prior's findings can't be read back: {problem}" for problem in read.problems)
    others = (task.prior(columns, case.difficulty), type(task)().prior(list(columns), case.difficulty))
    if any(other.model_dump_json() != stated.model_dump_json() for other in others):
        yield "prior returns different findings on a second call, or on a new instance of the task"
    credits = task.score(stated, case.data.truth)
    if not list(faults(credits)):
        earned.append(accuracy(credits))


def prior_floor(task: Task[Any, Any], earned: Mapping[str, Sequence[float]]) -> Iterator[str | Mild]:
    """Check that a prior is defined, and that it earns little over all data sets."""
    if type(task).prior is Task.prior:
        yield Mild(
            "no prior is defined, so skill is accuracy; define `prior` with the best guesses without data, "
            "or with empty findings if nothing can be guessed"
        )
    mean, by_level = _means(earned)
    if mean > PRIOR_MOST:
        yield (
            f"the prior earns {mean:.3f} on average ({by_level}), more than {PRIOR_MOST}; give guessable parts less "
            f"weight or a narrower tolerance, or draw their truth from a wider range"
        )


def alien_floor(earned: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Check that the truth of another seed earns little over all pairs of data sets."""
    mean, by_level = _means(earned)
    if mean > ALIEN_MOST:
        yield (
            f"the report of another seed earns {mean:.3f} on average ({by_level}), more than {ALIEN_MOST}; let truths "
            "differ more between seeds, or give parts that hardly differ less weight"
        )


def fixed() -> Iterator[Mild]:
    """A warning about a task with a single data set."""
    yield Mild(
        "every seed has the same data: scores don't vary between data sets, models may know the data, and leaks of "
        "the truth can't be separated from chance"
    )


def _means(earned: Mapping[str, Sequence[float]]) -> tuple[float, str]:
    """The mean over all difficulties, and a text with the mean of each."""
    values = [value for level in earned.values() for value in level]
    text = ", ".join(f"{name} {sum(level) / len(level):.2f}" for name, level in earned.items() if level)
    return sum(values) / len(values) if values else 0.0, text


def other_seed(
    task: Task[Any, Any], own: tuple[str, BaseModel], other: tuple[str, BaseModel], earned: list[float]
) -> Iterator[str]:
    """Compare two seeds of a difficulty, each given as the hash of its data and its truth.

    The accuracy of the other seed's report is added to `earned`.
    """
    if own[0] == other[0]:
        yield "both seeds give the same data"
    earned.append(accuracy(task.score(task.oracle(other[1]), own[1])))
