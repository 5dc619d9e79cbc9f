"""The conformance test under a limit of time, and the data sets once more in other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

from labmates.errors import LabmatesError, UsageError
from labmates.registry import time_limit
from labmates.tasks.conformance.events import Event, Fingerprint, Problem, Step, differing
from labmates.tasks.conformance.examine import HANGS, RULES, examine, exception_text
from labmates.tasks.registry import load_task, resolve_reference

TRIAL_RULES = {
    "load": "the task can be imported and created, and has the name of its entry point",
    **RULES,
    "processes": "another process with another hash seed, time zone and order of seeds gives the same bytes",
}
"""The rules of a trial in order, each with the property of a task that passes."""

STEP_SECONDS = 60.0
"""Time limit of a single step (one rule on one data set)."""

Watch = Callable[[Step], None]
"""Called with each step before it starts."""


@dataclass
class Trial:
    """The outcome of a conformance test; `tried` holds the applied rules."""

    rules: Mapping[str, str] = field(default_factory=lambda: TRIAL_RULES)
    problems: list[Problem] = field(default_factory=list)
    tried: set[str] = field(default_factory=set)

    @property
    def passed(self) -> bool:
        """Whether every rule was applied without an error."""
        return self.tried >= self.rules.keys() and all(problem.severity != "error" for problem in self.problems)

    def verdicts(self) -> Iterator[dict[str, Any]]:
        """The outcome of each rule as JSON values."""
        for rule, about in self.rules.items():
            problems = [problem for problem in self.problems if problem.rule == rule]
            severities = {problem.severity for problem in problems}
            passed = "ok" if rule in self.tried else "not tried"
            status = next((worst for worst in ("error", "warning") if worst in severities), passed)
            texts = [{"severity": p.severity, "text": p.text, "where": p.where} for p in problems]
            yield {"rule": rule, "status": status, "about": about, "problems": texts}


def try_task(
    reference: str,
    seeds: Sequence[int] = (0, 1, 2),
    *,
    step_seconds: float = STEP_SECONDS,
    watch: Watch = lambda _: None,
) -> Trial:
    """Test a task, in the main thread; a step that takes too long becomes a problem and ends the test.

    Parameters
    ----------
    reference
        The task's name, ``path/to/file.py:Class`` or ``module:Class``.
    step_seconds
        Time limit of one step.

    Raises
    ------
    UsageError
        If the name or file is unknown, or there are fewer than two different seeds.
    """
    resolved = resolve_reference(reference)
    if len(set(seeds)) < 2:
        raise UsageError("checking a task needs at least two different seeds")
    trial, made = Trial(), list[str]()
    with redirect_stdout(sys.stderr):
        for event in _in_time(_events(resolved, seeds), step_seconds):
            if isinstance(event, Step):
                trial.tried.add(event.rule)
                watch(event)
            elif isinstance(event, Problem):
                trial.problems.append(event)
            else:
                made.append(_place(event))
    if made and not any(problem.text.startswith(HANGS) for problem in trial.problems):
        trial.tried.add("processes")
        watch(Step("processes", ""))
        trial.problems += _differences(resolved, made, step_seconds)
    return trial


def _events(reference: str, seeds: Sequence[int]) -> Iterator[Event]:
    yield Step("load", "")
    try:
        task = load_task(reference)
    except LabmatesError as error:
        yield Problem("load", str(error))
        return
    except (Exception, SystemExit) as error:  # a plug-in may raise anything
        yield Problem("load", exception_text(error))
        return
    if ":" not in reference and task.name != reference:
        yield Problem("load", f"the entry point is '{reference}', but the task's name is '{task.name}'")
    yield from examine(task, seeds)


def _in_time(events: Iterator[Event], seconds: float) -> Iterator[Event]:
    """Yield events until one takes too long, which the rule in question reports."""
    while True:
        with time_limit(seconds):
            event = next(events, None)
        if event is None:
            return
        yield event
        if isinstance(event, Problem) and event.text.startswith(HANGS):
            return


def _place(event: Fingerprint) -> str:
    """A data set as an argument of the other process."""
    seed, _, difficulty = event.where.removeprefix("seed ").partition(", ")
    return f"{seed}/{difficulty}"


def _differences(reference: str, places: Sequence[str], seconds: float) -> Iterator[Problem]:
    """Yield how the data sets differ between two processes that make them in opposite orders."""
    try:
        first = _fingerprints(reference, places, {"PYTHONHASHSEED": "1", "TZ": "UTC"}, seconds)
        again = _fingerprints(reference, places[::-1], {"PYTHONHASHSEED": "2", "TZ": "Asia/Kathmandu"}, seconds)
    except LabmatesError as error:
        yield Problem("processes", f"another process fails: {error}")
        return
    for place, one, other in zip(places, first, again[::-1], strict=True):
        if parts := differing(one, other):
            yield Problem(
                "processes",
                f"another process gives different {parts}; look for sets, hash(), the time zone and kept state",
                where="seed {}, {}".format(*place.split("/")),
            )


def _fingerprints(
    reference: str, places: Sequence[str], environment: Mapping[str, str], seconds: float
) -> list[dict[str, str]]:
    command = [sys.executable, "-P", "-m", "labmates.tasks.conformance.child", reference, *places]
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
        raise LabmatesError("it takes too long") from None
    if done.returncode:
        raise LabmatesError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200])
    return [json.loads(line) for line in done.stdout.splitlines()]
