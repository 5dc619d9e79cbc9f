"""The process that tests a task: ``python -m labmates.tasks.conformance.child``, called by `conformance.trial`.

It writes one JSON object a line to the original standard output; output of the task goes to standard error.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from labmates.errors import LabmatesError
from labmates.tasks.base import DIFFICULTIES, Task
from labmates.tasks.conformance.events import Event, Problem, Step, fingerprint, place
from labmates.tasks.conformance.examine import examine, exception_text


def main(reference: str, mode: str, memory: str, *seeds: str) -> None:
    """Test the task of a resolved reference, and write the events.

    Parameters
    ----------
    mode
        ``examine`` for all rules, ``generate`` for fingerprints only.
    memory
        Memory limit of the task, in bytes beyond the process's memory at its start.
    """
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    import pandas as pd  # noqa: F401  # before the limit, since the task does not use this memory

    _limit_memory(int(memory))
    for event in _events(reference, mode, [int(seed) for seed in seeds]):
        channel.write(json.dumps({"event": type(event).__name__, **asdict(event)}) + "\n")
        channel.flush()
    channel.write(json.dumps({"event": "End"}) + "\n")
    channel.flush()


def _events(reference: str, mode: str, seeds: Sequence[int]) -> Iterator[Event]:
    from labmates.tasks.registry import load_task

    yield Step("load", "")
    try:
        task = load_task(reference)
    except LabmatesError as error:
        yield Problem("load", str(error))
        return
    except (Exception, SystemExit) as error:  # a plug-in may raise anything
        yield Problem("load", exception_text(error))
        return
    if mode == "generate":
        yield from _generate(task, seeds)
        return
    if ":" not in reference and task.name != reference:
        yield Problem("load", f"the entry point is '{reference}', but the task's name is '{task.name}'")
    yield from examine(task, seeds)


def _generate(task: Task[Any, Any], seeds: Sequence[int]) -> Iterator[Event]:
    # In reverse order: a seed's data must not depend on earlier calls.
    for difficulty in reversed(DIFFICULTIES):
        for seed in reversed(seeds):
            where = place(seed, difficulty)
            yield Step("processes", where)
            try:
                yield fingerprint(where, task.generate(seed, difficulty))
            except (Exception, SystemExit) as error:  # a plug-in may raise anything
                yield Problem("processes", exception_text(error), where=where)


def _limit_memory(more: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    wanted = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


if __name__ == "__main__":
    main(*sys.argv[1:])
