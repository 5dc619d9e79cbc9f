"""The conformance test in separate processes, with limits on time and memory."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import IO, Any

from labmates.errors import UsageError
from labmates.tasks.conformance.events import Fingerprint, Problem, Step, differing
from labmates.tasks.conformance.examine import RULES
from labmates.util.loops import run_async

TRIAL_RULES = {
    "load": "the task can be imported and created, and has the name of its entry point",
    **RULES,
    "processes": "another process with another hash seed and time zone gives the same bytes",
}
"""The rules of a trial in order, each with the property of a task that passes."""

STEP_SECONDS = 60.0
"""Time limit of a single step (one rule on one data set)."""
START_SECONDS = 120.0
"""Time limit until a process's first step, which runs no code of the task."""
MEMORY = 2 * 1024**3
"""Memory limit of a task, in bytes; built-in tasks take some tens of megabytes."""
LINE_MOST = 2**24

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
    memory: int = MEMORY,
    watch: Watch = lambda _: None,
) -> Trial:
    """Test a task in separate processes; hangs and crashes become problems.

    Parameters
    ----------
    reference
        The task's name, ``path/to/file.py:Class`` or ``module:Class``.
    step_seconds
        Time limit of one step.
    memory
        Memory limit of the task, in bytes.

    Raises
    ------
    UsageError
        If the name or file is unknown, or there are fewer than two different seeds.
    """
    from labmates.tasks.registry import resolve_reference

    resolved = resolve_reference(reference)
    if len(set(seeds)) < 2:
        raise UsageError("checking a task needs at least two different seeds")
    session = _Session(Trial(), step_seconds, watch)
    arguments = (str(memory), *map(str, dict.fromkeys(seeds)))
    run_async(lambda: session.run({"PYTHONHASHSEED": "1", "TZ": "UTC"}, resolved, "examine", *arguments))
    if session.prints:
        again = {"PYTHONHASHSEED": "2", "TZ": "Asia/Kathmandu"}
        run_async(lambda: session.run(again, resolved, "generate", *arguments))
    return session.trial


@dataclass
class _Session:
    trial: Trial
    step_seconds: float
    watch: Watch
    prints: dict[str, dict[str, str]] = field(default_factory=dict)
    step: Step = field(default_factory=lambda: Step("load", ""))

    async def run(self, environment: dict[str, str], *arguments: str) -> None:
        """Run the test in one process, and collect its events."""
        with tempfile.TemporaryFile() as noise:
            async with aclosing(_messages(environment, arguments, noise, self.step_seconds)) as messages:
                async for message in messages:
                    self._note(message, noise)

    def _note(self, message: dict[str, Any], noise: IO[bytes]) -> None:
        match message.pop("event"):
            case "Step":
                self.step = Step(**message)
                self.trial.tried.add(self.step.rule)
                self.watch(self.step)
            case "Problem":
                problem = Problem(**message)
                # Failed generation is already reported.
                if problem.rule != "processes" or problem.where in self.prints:
                    self.trial.problems.append(problem)
            case "Fingerprint":
                self._compare(Fingerprint(**message))
            case "Hang":
                self._add_problem(f"hangs: it did not end within {self.step_seconds:g} s")
            case "Crash":
                self._add_problem(f"ends its process: {_cause(message['code'])}{_last_words(noise)}")

    def _add_problem(self, text: str) -> None:
        self.trial.problems.append(Problem(self.step.rule, text, where=self.step.where))

    def _compare(self, fingerprint: Fingerprint) -> None:
        first = self.prints.setdefault(fingerprint.where, fingerprint.parts)
        if parts := differing(first, fingerprint.parts):
            self._add_problem(
                f"another process gives different {parts}; look for sets, hash(), the time zone and kept state"
            )


async def _messages(
    environment: dict[str, str], arguments: Sequence[str], noise: IO[bytes], seconds: float
) -> AsyncGenerator[dict[str, Any], None]:
    """A child's messages, followed by a ``Hang`` or a ``Crash`` if it does not end normally."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "labmates.tasks.conformance.child", *arguments),
        env={**os.environ, **_ONE_THREAD, **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=noise,
        limit=LINE_MOST,
        start_new_session=True,
    )
    assert process.stdout is not None
    limit = START_SECONDS
    try:
        while line := await asyncio.wait_for(process.stdout.readline(), limit):
            message = json.loads(line)
            if message["event"] == "End":
                return
            yield message
            limit = seconds
        yield {"event": "Crash", "code": await asyncio.wait_for(process.wait(), seconds)}
    except TimeoutError:
        yield {"event": "Hang"}
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Threads of libraries reserve memory, which would count against the limit."""


def _cause(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _last_words(noise: IO[bytes]) -> str:
    """The last line of the process's standard error."""
    noise.seek(max(0, noise.seek(0, 2) - 2000))
    lines = noise.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f" ({last[:200]})" if last else ""
