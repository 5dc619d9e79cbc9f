"""The conformance test: its rules, and their order."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from pydantic import BaseModel

from labmates.errors import UsageError
from labmates.tasks.base import DIFFICULTIES, Difficulty, Task
from labmates.tasks.conformance import data_rules, report_rules
from labmates.tasks.conformance.events import Case, Event, Mild, Problem, Step, fingerprint, place

if TYPE_CHECKING:
    from labmates.tasks.conformance.leaks import Leak

P = ParamSpec("P")

RULES = {
    "attributes": "name, title, brief, version and findings schema are complete",
    "generate": "each seed and difficulty gives a data set, in less than 2 s; seeds of 128 bits do too",
    "same seed": "the same seed gives the same bytes; global random numbers are neither used nor changed",
    "frame": "the data are a plain table with the errors of real data, and survive a CSV file",
    "spoilers": "column names and description reveal nothing of the truth",
    "truth": "the truth survives being written as JSON, and scoring does not change it",
    "score": "the report written from the truth scores at least 0.95, a report without findings 0",
    "odd findings": "scoring accepts odd findings that the schema allows",
    "checks": "the checks hold for the report written from the truth, fail for an empty one, and accept any text",
    "instruments": "instruments suffice together and not alone; their keys are short",
    "analysis": "the cells for scripted baselines, which report nothing without any, print valid findings in few words",
    "leaks": "no column contains the truth, or reveals it without any analysis",
    "prior": "the prior is valid, depends only on columns and difficulty, and earns at most 0.15 on average",
    "other seed": "another seed gives different data, and its report earns at most 0.2 on average",
}
"""The rules in order, each with the property of a task that passes."""

HANGS = "hangs: "
"""Beginning of the text about a rule that takes too long."""
MOST_TOLD = 300
"""Most characters of an exception's text."""

_CASE_RULES: dict[str, Callable[[Case], Iterable[str | Mild]]] = {
    "frame": data_rules.frame,
    "spoilers": data_rules.spoilers,
    "truth": report_rules.truth,
    "score": report_rules.score,
    "odd findings": report_rules.odd,
    "checks": report_rules.checks,
}


@dataclass
class _Level:
    """Data sets of one difficulty, by place, for comparisons."""

    seen: dict[str, tuple[str, BaseModel]] = field(default_factory=dict)
    leaks: list[set[Leak]] = field(default_factory=list)
    priors: list[report_rules.Prior] = field(default_factory=list)


def check_task(task: Task[Any, Any], seeds: Sequence[int] = (0, 1, 2)) -> list[Problem]:
    """The problems of a task, on every difficulty with some seeds; none if it passes.

    The rules are those of `RULES`. Unusual sizes, clean data and waiting while generating are warnings. Exceptions of
    the task become problems and are never raised.

    Raises
    ------
    UsageError
        If there are fewer than two different seeds to compare.
    """
    return [event for event in examine(task, seeds) if isinstance(event, Problem)]


def examine(task: Task[Any, Any], seeds: Sequence[int]) -> Iterator[Event]:
    """The events of `check_task`: each step before it starts, problems, and the fingerprint of each data set.

    Raises
    ------
    UsageError
        If there are fewer than two different seeds to compare.
    """
    if len(set(seeds)) < 2:
        raise UsageError("checking a task needs at least two different seeds")
    yield from look("attributes", "", data_rules.attributes, task)
    priors: dict[str, list[float]] = {}
    aliens: dict[str, list[float]] = {}
    for difficulty in DIFFICULTIES:
        level = _Level()
        for seed in dict.fromkeys(seeds):
            yield from _examine_one(task, seed, difficulty, level)
        yield from look("leaks", difficulty, _lasting, level)
        for own, other in itertools.permutations(() if task.is_fixed else level.seen, 2):
            where, earned = f"{own}, with the report of {other}", aliens.setdefault(difficulty, [])
            yield from look(
                "other seed", where, report_rules.other_seed, task, level.seen[own], level.seen[other], earned
            )
        if level.priors:
            yield from look("prior", difficulty, report_rules.lasting_priors, task, level.priors)
            priors[difficulty] = [prior.earned for prior in level.priors]
    if priors:
        yield from look("generate", "a seed as a private salt makes it", data_rules.private_seed, task)
        yield from look("prior", "", report_rules.prior_floor, task, priors)
    if task.is_fixed:
        yield from look("other seed", "", report_rules.fixed)
    if aliens:
        yield from look("other seed", "", report_rules.alien_floor, aliens)


def look(
    rule: str, where: str, apply: Callable[P, Iterable[str | Mild]], *args: P.args, **kwargs: P.kwargs
) -> Iterator[Event]:
    """Apply one rule; its results and exceptions become problems."""
    yield Step(rule, where)
    try:
        for found in apply(*args, **kwargs):
            if isinstance(found, Mild):
                yield Problem(rule, found.text, "warning", where)
            else:
                yield Problem(rule, found, where=where)
    except (Exception, SystemExit) as error:  # a plug-in may raise anything
        yield Problem(rule, exception_text(error), where=where)


def exception_text(error: BaseException) -> str:
    """The exception, and the last line of the plug-in's code in its traceback."""
    ours, frames = (f"{Path(__file__).parents[2]}/", "<frozen "), traceback.extract_tb(error.__traceback__)
    theirs = next((Path(frame.filename).parent for frame in frames if not frame.filename.startswith(ours)), None)
    last = next((frame for frame in reversed(frames) if Path(frame.filename).parent == theirs), frames[-1])
    text = " ".join(str(error).split())[:MOST_TOLD]
    how = HANGS if isinstance(error, TimeoutError) else ""
    return f"{how}raised {type(error).__name__}: {text} ({Path(last.filename).name}, line {last.lineno})"


def _examine_one(task: Task[Any, Any], seed: int, difficulty: Difficulty, level: _Level) -> Iterator[Event]:
    where = place(seed, difficulty)
    cases: list[Case] = []
    yield from look("generate", where, data_rules.generate, task, seed, difficulty, cases)
    for case in cases:
        first = fingerprint(where, case.data, case.csv)
        yield first
        yield from look("same seed", where, data_rules.same_seed, case, first)
        for name, rule in _CASE_RULES.items():
            yield from look(name, where, rule, case)
        yield from look("prior", where, report_rules.prior, case, level.priors)
        if not level.seen:
            yield from look("instruments", where, data_rules.instruments, case)
            yield from look("analysis", where, report_rules.analysis, case)
        yield from look("leaks", where, _leaks, case, level)
        level.seen[where] = first.parts["data"], case.data.truth


def _leaks(case: Case, level: _Level) -> Iterator[str]:
    from labmates.tasks.conformance.leaks import find_leaks, held_answers

    truth = case.data.truth.model_dump(mode="json")
    if case.task.is_fixed:
        for place, part in held_answers(case.data.frame, truth):
            yield f"{place} holds the answer '{part}'; remove it from the table"
    else:
        level.leaks.append(find_leaks(case.data.frame, case.data.description, truth))


def _lasting(level: _Level) -> Iterator[str]:
    from labmates.tasks.conformance.leaks import lasting_leaks

    # In a single data set a leak can't be distinguished from chance.
    for leak in lasting_leaks(level.leaks) if len(level.leaks) > 1 else ():
        yield (
            f"{leak.place} reveals '{leak.part}' of the truth; facts that agents may know should not be part of "
            "the truth"
        )
