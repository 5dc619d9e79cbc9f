"""Which organisation wins divided evidence: the necessity index of each built-in one on each task, by a baseline.

    python -m benchmarks.necessity --seeds 10
    python -m benchmarks.necessity --task anomaly --seeds 3 --json necessity.json

``scripted:sharing`` works in the lab itself, in organisations of their own size, with all prompts, tools, budgets and
judges; equal cells on equal data run once, so that ten seeds take minutes. Cell of the table: (team − restricted) /
(oracle − restricted) of the mean accuracies over seeds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.task_scores import BUILT_IN
from labmates.agents.organisation_files import ORGANISATIONS
from labmates.records.recorder import Recorder
from labmates.sandboxes.choose import choose_backend
from labmates.sandboxes.pool import SandboxPool
from labmates.workflows.protocol.experiment import EXPERIMENTS
from labmates.workflows.protocol.unkept import unkept_services
from labmates.workflows.science.lab.condition import ScienceCondition
from tests.support.pools import Remembering

PLACES = 4
"""Sessions that are open at a time."""


async def accuracy(backend: Remembering, seed: int, **values: Any) -> float:
    """The accuracy of one run, which is not kept."""
    given = {"model": "scripted:sharing", "evidence": "split:1", "code_timeout": 300, **values}
    condition = ScienceCondition.model_validate(given)
    condition.check()
    science: Any = EXPERIMENTS.get("science")
    async with unkept_services(science, condition, seed, Recorder(None, None)) as services:
        outcome = await science.execute(condition, replace(services, sandbox_pool=SandboxPool(backend, PLACES)))
    return float(outcome.metrics["accuracy"])


async def measured(task: str, difficulty: str, seed: int) -> dict[str, float]:
    """The accuracy of both arms of one agent and of each organisation."""
    backend = Remembering(choose_backend("unsafe-local", trusted_code=True).backend)
    of_all = {"task": task, "difficulty": difficulty}
    scores = {arm: await accuracy(backend, seed, arm=arm, **of_all) for arm in ("restricted", "oracle")}
    for name in ORGANISATIONS.names():
        scores[name] = await accuracy(backend, seed, organisation=name, **of_all)
    await backend.close()
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
            scores = asyncio.run(measured(task, options.difficulty, seed))
            rows.append({"task": task, "seed": seed, **scores})
            print(f"{task:<11}{seed:<4}" + "  ".join(f"{arm} {score:.3f}" for arm, score in scores.items()), flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
