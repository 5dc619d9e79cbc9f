"""Trials of plug-ins: rules that are applied one by one, where whatever a plug-in raises is a problem."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, ParamSpec

import labmates.registry
from labmates.errors import LabmatesError
from labmates.registry import time_limit

P = ParamSpec("P")
Severity = Literal["error", "warning"]
MOST_TOLD = 300
"""Most characters of an exception's text."""


@dataclass(frozen=True)
class Problem:
    """A violation of a rule by a plug-in.

    Attributes
    ----------
    rule
        Name of the rule, for instance ``"score"``.
    text
        Description of the problem.
    severity
        An ``"error"`` must be fixed; a ``"warning"`` should be examined.
    where
        The data set, for instance ``"seed 0, easy"``, or the report; empty for all.
    """

    rule: str
    text: str
    severity: Severity = "error"
    where: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}{f' ({self.where})' if self.where else ''}"


@dataclass(frozen=True)
class Mild:
    """A problem of severity ``"warning"``."""

    text: str


class HangsError(Exception):
    """A rule took too long: the trial ends."""


@dataclass
class Trial:
    """A conformance test; `tried` holds the applied rules.

    Attributes
    ----------
    rules
        The rules in order, each with the property of a plug-in that passes.
    seconds
        Time limit of one rule in one place, in the main thread; None for no limit.
    watch
        Called with each rule and place before it is applied.
    """

    rules: Mapping[str, str]
    seconds: float | None = None
    watch: Callable[[str], None] = lambda _: None
    problems: list[Problem] = field(default_factory=list)
    tried: set[str] = field(default_factory=set)

    @property
    def passed(self) -> bool:
        """Whether every rule was applied without an error."""
        return self.tried >= self.rules.keys() and all(problem.severity != "error" for problem in self.problems)

    def add(self, rule: str, found: str | Mild, where: str = "") -> None:
        """Add a problem."""
        problem = (
            Problem(rule, found, where=where) if isinstance(found, str) else Problem(rule, found.text, "warning", where)
        )
        self.problems.append(problem)

    def look(
        self, rule: str, where: str, apply: Callable[P, Iterable[str | Mild]], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Add the problems that a rule finds; see `looking`."""
        with self.looking(rule, where):
            for found in apply(*args, **kwargs):
                self.add(rule, found, where)

    @contextmanager
    def looking(self, rule: str, where: str = "") -> Iterator[None]:
        """Apply a rule in the block; what it raises becomes a problem.

        Raises
        ------
        HangsError
            If it takes too long.
        """
        self.tried.add(rule)
        self.watch(f"{rule} {where}".strip())
        try:
            with nullcontext() if self.seconds is None else time_limit(self.seconds):
                yield
        except (Exception, SystemExit) as error:  # a plug-in may raise anything
            self.add(rule, str(error) if isinstance(error, LabmatesError) else exception_text(error), where)
            if self.seconds is not None and isinstance(error, TimeoutError):
                raise HangsError from error

    def verdicts(self) -> Iterator[dict[str, Any]]:
        """The outcome of each rule as JSON values."""
        for rule, about in self.rules.items():
            problems = [problem for problem in self.problems if problem.rule == rule]
            severities = {problem.severity for problem in problems}
            passed = "ok" if rule in self.tried else "not tried"
            status = next((worst for worst in ("error", "warning") if worst in severities), passed)
            texts = [{"severity": p.severity, "text": p.text, "where": p.where} for p in problems]
            yield {"rule": rule, "status": status, "about": about, "problems": texts}


def faults(what: str, find: Callable[P, Iterable[str]], *args: P.args, **kwargs: P.kwargs) -> Iterator[str]:
    """What a check finds, and what it raises."""
    try:
        yield from find(*args, **kwargs)
    except Exception as error:  # a plug-in may raise anything
        yield f"{what} failed: {type(error).__name__}: {error}"


def exception_text(error: BaseException) -> str:
    """The exception, and the last line of the plug-in's code in its traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = (*(f"{Path(file).parent}/" for file in (labmates.registry.__file__, __file__)), "<frozen ")
    theirs = next((Path(frame.filename).parent for frame in frames if not frame.filename.startswith(ours)), None)
    last = next((frame for frame in reversed(frames) if Path(frame.filename).parent == theirs), frames[-1])
    text = " ".join(str(error).split())[:MOST_TOLD]
    how = "hangs: " if isinstance(error, TimeoutError) else ""
    return f"{how}raised {type(error).__name__}: {text} ({Path(last.filename).name}, line {last.lineno})"
