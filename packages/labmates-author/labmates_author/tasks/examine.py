"""The conformance test: its rules, their order, and the data sets once more in other processes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from labmates.errors import LabmatesError, UsageError
from labmates.tasks.base import DIFFICULTIES, Difficulty, Task
from labmates.tasks.registry import load_task, resolve_reference
from labmates_author.tasks import data_rules, report_rules
from labmates_author.tasks.cases import Case, differing, fingerprint
from labmates_author.trial import HangsError, Mild, Problem, Trial

if TYPE_CHECKING:
    from labmates_author.tasks.leaks import Leak

RULES = {
    "attributes": "name, title, brief, version and findings schema are complete",
    "generate": "each seed and difficulty gives a data set, in less than 2 s; seeds of 128 bits do too",
    "same seed": "the same seed gives the same bytes, whatever the state of global random numbers",
    "frame": "the data are a plain table with the errors of real data, and survive a CSV file",
    "spoilers": "column names and description reveal nothing of the truth",
    "truth": "the truth survives being written as JSON, and scoring does not change it",
    "score": "the report written from the truth scores at least 0.95, a report without findings 0",
    "checks": "the checks hold for the report written from the truth, fail for an empty one, and accept any text",
    "instruments": "instruments suffice together and not alone; their keys are short",
    "analysis": "the cells for scripted baselines, which report nothing without any, print valid findings in few words",
    "leaks": "no column contains the truth, or reveals it without any analysis",
    "prior": "the prior is valid, depends only on columns and difficulty, and earns at most 0.15 on average",
    "other seed": "another seed gives different data, and its report earns at most 0.2 on average",
}
"""The rules in order, each with the property of a task that passes."""
TRIAL_RULES = {
    "load": "the task can be imported and created, and has the name of its entry point",
    **RULES,
    "processes": "another process with another hash seed, time zone and order of seeds gives the same bytes",
}
"""The rules of a trial in order, likewise."""
STEP_SECONDS = 60.0
"""Time limit of one rule on one data set."""

_CASE_RULES: dict[str, Callable[[Case], Iterable[str | Mild]]] = {
    "frame": data_rules.frame,
    "spoilers": data_rules.spoilers,
    "truth": report_rules.truth,
    "score": report_rules.score,
    "checks": report_rules.checks,
}


@dataclass
class _Level:
    """Data sets of one difficulty, by place, for comparisons."""

    seen: dict[str, tuple[str, BaseModel]] = field(default_factory=dict)
    leaks: list[set[Leak]] = field(default_factory=list)
    priors: list[float] = field(default_factory=list)


def check_task(task: Task[Any, Any], seeds: Sequence[int] = (0, 1, 2)) -> list[Problem]:
    """The problems of a task, on every difficulty with some seeds; none if it passes.

    The rules are those of `RULES`. Unusual sizes, clean data and waiting while generating are warnings. Exceptions of
    the task become problems and are never raised.

    Raises
    ------
    UsageError
        If there are fewer than two different seeds to compare.
    """
    trial = Trial(RULES)
    _examine(trial, task, seeds)
    return trial.problems


def try_task(
    reference: str,
    seeds: Sequence[int] = (0, 1, 2),
    *,
    step_seconds: float = STEP_SECONDS,
    watch: Callable[[str], None] = lambda _: None,
) -> Trial:
    """Test a task, in the main thread; a rule that takes too long becomes a problem and ends the test.

    Parameters
    ----------
    reference
        The task's name, ``path/to/file.py:Class`` or ``module:Class``.
    step_seconds
        Time limit of one rule on one data set.
    watch
        Called with each rule and data set before it is applied.

    Raises
    ------
    UsageError
        If the name or file is unknown, or there are fewer than two different seeds.
    """
    resolved = resolve_reference(reference)
    _check_seeds(seeds)
    trial, task = Trial(TRIAL_RULES, step_seconds, watch), None
    with redirect_stdout(sys.stderr), suppress(HangsError):
        with trial.looking("load"):
            task = load_task(resolved)
            if ":" not in resolved and task.name != resolved:
                trial.add("load", f"the entry point is '{resolved}', but the task's name is '{task.name}'")
        if task is not None and (made := _examine(trial, task, seeds)):
            trial.seconds = None  # the other processes have a limit of their own
            trial.look("processes", "", _differences, resolved, made, step_seconds)
    return trial


def _check_seeds(seeds: Sequence[int]) -> None:
    if len(set(seeds)) < 2:
        raise UsageError("checking a task needs at least two different seeds")


def _examine(trial: Trial, task: Task[Any, Any], seeds: Sequence[int]) -> list[Case]:
    """Apply the rules to a task, and return its data sets."""
    _check_seeds(seeds)
    trial.look("attributes", "", data_rules.attributes, task)
    made: list[Case] = []
    priors: dict[str, list[float]] = {}
    aliens: dict[str, list[float]] = {}
    for difficulty in DIFFICULTIES:
        level = _Level()
        for seed in dict.fromkeys(seeds):
            made += _examine_one(trial, task, seed, difficulty, level)
        trial.look("leaks", difficulty, _lasting, level)
        for own, other in itertools.permutations(() if task.is_fixed else level.seen, 2):
            where, earned = f"{own}, with the report of {other}", aliens.setdefault(difficulty, [])
            trial.look("other seed", where, report_rules.other_seed, task, level.seen[own], level.seen[other], earned)
        if level.priors:
            priors[difficulty] = level.priors
    if priors:
        trial.look("generate", "a seed as a private salt makes it", data_rules.private_seed, task)
        trial.look("prior", "", report_rules.prior_floor, task, priors)
    if task.is_fixed:
        trial.look("other seed", "", report_rules.fixed)
    if aliens:
        trial.look("other seed", "", report_rules.alien_floor, aliens)
    return made


def _examine_one(trial: Trial, task: Task[Any, Any], seed: int, difficulty: Difficulty, level: _Level) -> list[Case]:
    where = f"seed {seed}, {difficulty}"
    cases: list[Case] = []
    trial.look("generate", where, data_rules.generate, task, seed, difficulty, cases)
    for case in cases:
        first = fingerprint(case.data, case.csv)
        trial.look("same seed", where, data_rules.same_seed, case, first)
        for name, rule in _CASE_RULES.items():
            trial.look(name, where, rule, case)
        trial.look("prior", where, report_rules.prior, case, level.priors)
        if not level.seen:
            trial.look("instruments", where, data_rules.instruments, case)
            trial.look("analysis", where, report_rules.analysis, case)
        trial.look("leaks", where, _leaks, case, level)
        level.seen[where] = first["data"], case.data.truth
    return cases


def _leaks(case: Case, level: _Level) -> Iterator[str]:
    from labmates_author.tasks.leaks import find_leaks, held_answers

    truth = case.data.truth.model_dump(mode="json")
    if case.task.is_fixed:
        for place, part in held_answers(case.data.frame, truth):
            yield f"{place} holds the answer '{part}'; remove it from the table"
    else:
        level.leaks.append(find_leaks(case.data.frame, case.data.description, truth))


def _lasting(level: _Level) -> Iterator[str]:
    from labmates_author.tasks.leaks import lasting_leaks

    # In a single data set a leak can't be distinguished from chance.
    for leak in lasting_leaks(level.leaks) if len(level.leaks) > 1 else ():
        yield (
            f"{leak.place} reveals '{leak.part}' of the truth; facts that agents may know should not be part of "
            "the truth"
        )


def _differences(reference: str, cases: Sequence[Case], seconds: float) -> Iterator[str]:
    """Yield how the data sets differ between two processes that make them in opposite orders."""
    first = _fingerprints(reference, cases, {"PYTHONHASHSEED": "1", "TZ": "UTC"}, seconds)
    again = _fingerprints(reference, cases[::-1], {"PYTHONHASHSEED": "2", "TZ": "Asia/Kathmandu"}, seconds)
    for case, one, other in zip(cases, first, again[::-1], strict=True):
        if parts := differing(one, other):
            why = "look for sets, hash(), the time zone and kept state"
            yield f"another process gives different {parts} of {case.where}; {why}"


def _fingerprints(
    reference: str, cases: Sequence[Case], environment: Mapping[str, str], seconds: float
) -> list[dict[str, str]]:
    places = [f"{case.seed}/{case.difficulty}" for case in cases]
    command = [sys.executable, "-P", "-m", "labmates_author.tasks.child", reference, *places]
    try:
        done = subprocess.run(  # noqa: S603
            command,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=seconds * (1 + len(places)),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabmatesError("another process takes too long") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200]
        raise LabmatesError(f"another process fails: {last}")
    return [json.loads(line) for line in done.stdout.splitlines()]
