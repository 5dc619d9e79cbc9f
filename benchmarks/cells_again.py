"""Whether the cells of recorded lab runs do the same twice on a busy machine: the same ends, the same text.

Each agent's cells are executed in order in a sandbox of its own, eight sandboxes at once, and everything twice. The
runs are JSON files with `condition` (``task``, ``difficulty``), `seed` and `steps` (``agent``, ``tool``, ``arguments``,
``status``); ``--table TASK=FILE`` names the table of a task that is not installed. Code that prints the clock or an
address differs by nature: each difference is shown.

Example: ``python -m benchmarks.cells_again --sandbox docker run.json --table mulch=mulch.csv``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from itertools import zip_longest
from pathlib import Path
from typing import Any

from labmates.errors import LabmatesError
from labmates.sandboxes.base import CodeResult, SandboxBackend
from labmates.sandboxes.choose import choose_backend
from labmates.tasks.registry import get_task
from labmates.tasks.salt import data_seed
from labmates.util.seeds import derive
from labmates.workflows.science.lab.evidence import SHARED, prepare

AT_ONCE = 8


def table_of(run: dict[str, Any], tables: dict[str, Path], folder: Path) -> Path:
    """The data set of a run as a CSV file."""
    condition = run["condition"]
    if condition["task"] in tables:
        return tables[condition["task"]]
    seed = data_seed(derive(run["seed"], "dataset"))
    made = prepare(get_task(condition["task"]), seed, condition["difficulty"], SHARED, "team")
    path = folder / f"{condition['task']}.csv"
    path.write_bytes(made.parts[0].csv())
    return path


async def played(backend: SandboxBackend, data: Path, cells: list[str], limit: float) -> list[CodeResult]:
    """The results of an agent's cells."""
    sandbox = await backend.open(data)
    try:
        return [await sandbox.run(cell, limit) for cell in cells]
    finally:
        await sandbox.close()


async def all_played(name: str, sessions: list[tuple[str, Path, list[str]]], limit: float) -> list[list[CodeResult]]:
    """The results of all sessions, several at once."""
    backend = choose_backend(name, trusted_code=False).backend
    places = asyncio.Semaphore(AT_ONCE)

    async def one(data: Path, cells: list[str]) -> list[CodeResult]:
        async with places:
            return await played(backend, data, cells, limit)

    try:
        return await asyncio.gather(*(one(data, cells) for _, data, cells in sessions))
    finally:
        await backend.close()


def compare(name: str, number: int, first: CodeResult, second: CodeResult) -> tuple[bool, bool, bool]:
    """Whether the ends of a cell, its lines and their order differ; prints the first different line."""
    stopped = first.status == second.status == "timeout"
    ends = (first.status, first.state_lost) != (second.status, second.state_lost)
    before, after = first.text.splitlines(), second.text.splitlines()
    lines = not stopped and before != after
    order = lines and sorted(before) == sorted(after)
    if ends or lines:
        pairs = zip_longest(before, after, fillvalue="")
        one, other = next(((a, b) for a, b in pairs if a != b), ("", ""))
        print(f"  {name} cell {number + 1}: {first.status}, {second.status}\n    {one[:150]}\n    {other[:150]}")
    return ends, lines, order


async def main() -> None:
    """Play the cells twice and print the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--sandbox", default="docker")
    parser.add_argument("--table", action="append", default=[])
    parser.add_argument("--limit", type=float, default=30.0)
    arguments = parser.parse_args()
    tables = {name: Path(path) for name, _, path in (one.partition("=") for one in arguments.table)}
    with tempfile.TemporaryDirectory() as folder:
        sessions: list[tuple[str, Path, list[str]]] = []
        for path in arguments.runs:
            run = json.loads(path.read_bytes())
            data = table_of(run, tables, Path(folder))
            cells: defaultdict[str, list[str]] = defaultdict(list)
            for step in run["steps"]:
                if step.get("tool") == "run_code":
                    cells[step["agent"]].append(step["arguments"]["code"])
            sessions += ((f"{path.stem} {agent}", data, codes) for agent, codes in cells.items())
        rounds = []
        for _ in range(2):
            start = time.perf_counter()
            rounds.append(await all_played(arguments.sandbox, sessions, arguments.limit))
            print(f"{time.perf_counter() - start:.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    found = [
        compare(name, number, *both)
        for (name, _, _), *results in zip(sessions, *rounds, strict=True)
        for number, both in enumerate(zip(*results, strict=True))
    ]
    stops = sum(result.status == "timeout" for results in rounds[0] for result in results)
    ends, lines, order = (sum(column) for column in zip(*found, strict=True))
    print(
        f"{arguments.sandbox}: {len(found)} cells, {stops} stopped; ended differently: {ends}; "
        f"other text: {lines}, of these the same lines in another order: {order}"
    )


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except (LabmatesError, OSError) as error:  # no such sandbox here, no such file
        sys.exit(str(error))
