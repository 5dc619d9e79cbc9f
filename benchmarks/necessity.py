"""Which organisation wins divided evidence: the necessity index of each built-in one on each task, by a baseline.

    python -m benchmarks.necessity --seeds 10
    python -m benchmarks.necessity --task anomaly --seeds 3 --json necessity.json

``scripted:sharing`` works in the lab itself, in organisations of their own size, with all prompts, tools, budgets and
judges. Only the sandbox is another one: cells run in this process, and equal cells on equal data run once, so that ten
seeds take minutes. Cell of the table: (team − restricted) / (oracle − restricted) of the mean accuracies over seeds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import tempfile
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from benchmarks.task_scores import BUILT_IN
from labmates.agents.organisation_files import ORGANISATIONS
from labmates.records.recorder import Recorder
from labmates.sandboxes.base import CodeResult, Sandbox
from labmates.sandboxes.interpreter import local_libraries
from labmates.sandboxes.pool import SandboxPool
from labmates.workflows.protocol.experiment import EXPERIMENTS
from labmates.workflows.protocol.unkept import unkept_services
from labmates.workflows.science.lab.condition import ScienceCondition

PLACES = 64
"""Open sessions: they are objects of this process."""
PRINTED: dict[str, str] = {}
"""The output of a cell, by a digest of the data and of all cells up to it."""


class Session:
    """One agent's variables; cells that ran before on the same data run only when a later one needs them."""

    def __init__(self, data: bytes) -> None:
        self._data, self._digest = data, sha256(data)
        self._waiting: list[str] = []
        self._names: dict[str, Any] = {}

    async def run(self, code: str, timeout: float = 30.0) -> CodeResult:
        """Run a cell of a baseline of ours, or look its output up."""
        del timeout
        self._digest.update(code.encode())
        self._waiting.append(code)
        key = self._digest.hexdigest()
        if key not in PRINTED:
            PRINTED[key] = self._run()  # at once: only one may redirect the output
        return CodeResult("ok", PRINTED[key])

    def _run(self) -> str:
        if not self._names:
            self._names = {"df": pd.read_csv(io.BytesIO(self._data)), "pd": pd}
        for code in self._waiting:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, "cell", "exec"), self._names)
        self._waiting.clear()
        return printed.getvalue()

    async def close(self) -> None:
        """Forget the variables."""
        self._names.clear()


class Here:
    """Sessions in this process."""

    name = "here"

    async def open(self, data: Path | Awaitable[Path]) -> Sandbox:
        """Start a session."""
        return Session((data if isinstance(data, Path) else await data).read_bytes())

    async def libraries(self) -> Mapping[str, str]:
        """The versions of this environment."""
        return local_libraries()

    async def close(self) -> None:
        """Nothing to close."""


async def accuracy(seed: int, **values: Any) -> float:
    """The accuracy of one run, which is not kept."""
    given = {"model": "scripted:sharing", "evidence": "split:1", "code_timeout": 300, **values}
    condition = ScienceCondition.model_validate(given)
    condition.check()
    science: Any = EXPERIMENTS.get("science")
    async with unkept_services(science, condition, seed, Recorder(None, None)) as services:
        outcome = await science.execute(condition, replace(services, sandbox_pool=SandboxPool(Here(), PLACES)))
    return float(outcome.metrics["accuracy"])


async def measured(task: str, difficulty: str, seed: int) -> dict[str, float]:
    """The accuracy of both arms of one agent and of each organisation."""
    of_all = {"task": task, "difficulty": difficulty}
    scores = {arm: await accuracy(seed, arm=arm, **of_all) for arm in ("restricted", "oracle")}
    for name in ORGANISATIONS.names():
        scores[name] = await accuracy(seed, organisation=name, **of_all)
    PRINTED.clear()
    return scores


def table(rows: list[dict[str, Any]]) -> str:
    """The index by organisation and task, in Markdown."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    lines = [f"| organisation | {' | '.join(tasks)} |", "| --- |" + " --- |" * len(tasks)]
    for name in ORGANISATIONS.names():
        cells = []
        for task in tasks:
            mine = [row for row in rows if row["task"] == task]
            mean = {arm: fmean(row[arm] for row in mine) for arm in ("restricted", "oracle", name)}
            cells.append(f"{(mean[name] - mean['restricted']) / (mean['oracle'] - mean['restricted']):.2f}")
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", action="append", choices=BUILT_IN)
    parser.add_argument("--difficulty", default="medium")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", type=Path, help="write the accuracies of each seed to this file")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in range(options.seeds):
        for task in options.task or BUILT_IN:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # cells write files
                scores = asyncio.run(measured(task, options.difficulty, seed))
            rows.append({"task": task, "seed": seed, **scores})
            print(f"{task:<11}{seed:<4}" + "  ".join(f"{arm} {score:.3f}" for arm, score in scores.items()), flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
