"""The rules on how a task keeps its truth and scores reports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from labmates.tasks.base import Check, Credit, Task, accuracy
from labmates.tasks.conformance.data_rules import global_random
from labmates.tasks.conformance.events import Case
from labmates.tasks.conformance.odd import odd_findings
from labmates.tasks.fences import split_blocks
from labmates.tasks.findings import read_findings
from labmates.tasks.report import oracle_report

ORACLE_LEAST = 0.95
OTHER_MOST = 0.5
HOSTILE = ("", "\x00", "9" * 5000, "((((" * 500, "species " * 2000, "\ud800 sensor 1e400")
"""Texts with which the checks of a task must cope."""


def truth(case: Case) -> Iterator[str]:
    """Yield what happens to the truth on its way into JSON, and what scoring does to it."""
    known = case.data.truth
    text = known.model_dump_json()
    if type(known).model_validate_json(text) != known:
        yield "the truth does not survive being written as JSON and read again"
    with global_random(2) as changed:
        case.task.score(case.task.oracle(known), known)
        for check in case.task.checks(known):
            check.holds(case.task.summary(known))
        if changed():
            yield "scoring changes the state of the global random numbers of random or numpy"
    if known.model_dump_json() != text:
        yield "scoring changes the truth"


def score(case: Case) -> Iterator[str]:
    """Yield where the report written from the truth, or an empty one, does not score as it has to."""
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
            continue  # why it can't be read is told above
        credits = task.score(findings, known)
        wrong = list(faults(credits))
        yield from wrong
        if not wrong and not least <= accuracy(credits) <= most:
            weak = ", ".join(f"{one.finding} {one.credit:.2f}" for one in credits if not least <= one.credit <= most)
            yield f"{name} scores {accuracy(credits):.3f}, not {f'at least {least}' if least else '0'} ({weak})"


def faults(credits: Sequence[Credit]) -> Iterator[str]:
    """Yield what is wrong with the credits that a task gives."""
    if not isinstance(credits, (tuple, list)) or not all(isinstance(one, Credit) for one in credits):
        yield f"score must return a tuple of Credit, not {credits!r:.80}"
        return
    names = [one.finding for one in credits]
    if not names or len(set(names)) < len(names):
        yield "a score needs at least one credit, and each finding once"
    for one in credits:
        if not 0 <= one.credit <= 1 or not 0 < one.weight < math.inf:
            yield f"'{one.finding}' needs a credit in [0, 1] and a positive weight, not {one.credit} and {one.weight}"


def odd(case: Case) -> Iterator[str]:
    """Yield what goes wrong with findings that are odd but allowed by the schema."""
    for findings in odd_findings(case.task.oracle(case.data.truth)):
        for wrong in faults(case.task.score(findings, case.data.truth)):
            yield f"{wrong}; the findings were {findings!r:.200}"


def checks(case: Case) -> Iterator[str]:
    """Yield what is wrong with the rules on a report's words."""
    prose = split_blocks(oracle_report(case.task, case.data.truth)).prose
    found = case.task.checks(case.data.truth)
    if not isinstance(found, (tuple, list)) or not all(isinstance(check, Check) for check in found):
        yield f"checks must return a tuple of Check, not {found!r:.80}"
        return
    if not found or len({check.name for check in found}) < len(found):
        yield "a task needs at least one check, each with its own name"
    for check in found:
        if not check.holds(prose):
            yield f"the check '{check.name}' does not hold for the template report; let `summary` say what it looks for"
        if check.holds(""):
            yield f"the check '{check.name}' holds for an empty text"
        for text in HOSTILE:
            check.holds(text)


def other_seed(task: Task[Any, Any], own: tuple[str, BaseModel], other: tuple[str, BaseModel]) -> Iterator[str]:
    """Compare two seeds of a difficulty, each given as the hash of its data and its truth."""
    if own[0] == other[0]:
        yield "both seeds give the same data"
    credits = task.score(task.oracle(other[1]), own[1])
    if not accuracy(credits) < OTHER_MOST:
        yield f"the other seed's oracle scores {accuracy(credits):.3f}, not less than {OTHER_MOST}"
