"""A task on trial: the conformance test in processes of their own, with limits on time and memory."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import IO, Any

from labmates.errors import UsageError
from labmates.loops import run_async
from labmates.tasks.conformance.events import Fingerprint, Problem, Step, differing
from labmates.tasks.conformance.examine import RULES

TRIAL_RULES = {
    "load": "the task can be imported and made, and bears the name of its entry point",
    **RULES,
    "processes": "another process with another hash seed and time zone gives the same bytes",
}
"""The rules of a trial in order, each with what holds if no problem is found."""

STEP_SECONDS = 60.0
"""A single step (one rule on one data set) that takes longer hangs."""
START_SECONDS = 120.0
"""Until a process tells its first step, it runs nothing of the task."""
MEMORY = 2 * 1024**3
"""Most bytes that a task may take; ours take some tens of megabytes."""
LINE_MOST = 2**24

Watch = Callable[[Step], None]
"""Told each step before it is taken."""


@dataclass
class Trial:
    """The outcome of trying a task, or something else by rules.

    Attributes
    ----------
    rules
        Each rule with what holds if no problem is found.
    problems
        What does not hold, in the order in which it was found.
    tried
        The rules that were applied at least once.
    """

    rules: Mapping[str, str] = field(default_factory=lambda: TRIAL_RULES)
    problems: list[Problem] = field(default_factory=list)
    tried: set[str] = field(default_factory=set)

    @property
    def passed(self) -> bool:
        """Whether there is no error and every rule was applied."""
        return self.tried >= self.rules.keys() and all(one.severity != "error" for one in self.problems)


def try_task(
    reference: str,
    seeds: Sequence[int] = (0, 1, 2),
    *,
    step_seconds: float = STEP_SECONDS,
    memory: int = MEMORY,
    watch: Watch = lambda _: None,
) -> Trial:
    """Try a task in processes of their own; whatever it does is told in the trial's problems.

    Parameters
    ----------
    reference
        The task's name, ``path/to/file.py:Class`` or ``module:Class``.
    step_seconds
        Most seconds for one step.
    memory
        Most bytes that the task may take.

    Raises
    ------
    UsageError
        If there is no such name or file, or if there are fewer than two different seeds.
    """
    from labmates.tasks.registry import resolve_reference

    resolved = resolve_reference(reference)
    if len(set(seeds)) < 2:
        raise UsageError("checking a task needs at least two different seeds")
    court = _Court(Trial(), step_seconds, watch)
    arguments = (str(memory), *map(str, dict.fromkeys(seeds)))
    run_async(lambda: court.hear({"PYTHONHASHSEED": "1", "TZ": "UTC"}, resolved, "examine", *arguments))
    if court.prints:
        again = {"PYTHONHASHSEED": "2", "TZ": "Asia/Kathmandu"}
        run_async(lambda: court.hear(again, resolved, "generate", *arguments))
    return court.trial


@dataclass
class _Court:
    trial: Trial
    step_seconds: float
    watch: Watch
    prints: dict[str, dict[str, str]] = field(default_factory=dict)
    step: Step = field(default_factory=lambda: Step("load", ""))

    async def hear(self, environment: dict[str, str], *arguments: str) -> None:
        """Let one process try the task, and take down what it tells."""
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
                self._blame(f"hangs: it did not end within {self.step_seconds:g} s")
            case "Crash":
                self._blame(f"ends its process: {_cause(message['code'])}{_last_words(noise)}")

    def _blame(self, text: str) -> None:
        self.trial.problems.append(Problem(self.step.rule, text, where=self.step.where))

    def _compare(self, fingerprint: Fingerprint) -> None:
        first = self.prints.setdefault(fingerprint.where, fingerprint.parts)
        if parts := differing(first, fingerprint.parts):
            self._blame(f"another process gives other {parts}; look for sets, hash(), the time zone and kept state")


async def _messages(
    environment: dict[str, str], arguments: Sequence[str], noise: IO[bytes], seconds: float
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield a child's messages, and at last a ``Hang`` or a ``Crash`` if it does not end by itself."""
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
"""Every thread of a library sets memory aside, which would count against the limit."""


def _cause(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _last_words(noise: IO[bytes]) -> str:
    """The last line that the process wrote to standard error."""
    noise.seek(max(0, noise.seek(0, 2) - 2000))
    lines = noise.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f" ({last[:200]})" if last else ""
