"""What reports of known kinds earn on the science tasks, by task and difficulty: floors, ceilings and a baseline.

    python -m benchmarks.task_scores --seeds 12 --diligent
    python -m benchmarks.task_scores --findings --seeds 20
    python -m benchmarks.task_scores --search --seeds 60 --task geospatial

Kinds: ``prior`` (the best without data), ``alien`` (the truth of another seed), ``empty`` (no findings), ``oracle``,
and, because it takes seconds a data set, only on demand ``diligent`` (the cells of ``scripted:diligent``, run
here without a lab around them), ``ideal`` (`Dataset.ideal`), and ``competent``, ``lazy`` and ``hasty``: analyses by
somebody who has read the prompts only (`tests.tasks.analysts`). ``--findings`` prints the credit of the latter four and
of the prior by finding. ``--search`` prints the guesses that earn most, one field at a time, to be written into
a task's `prior`.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ValidationError

from labmates.tasks.analysis import run_cells
from labmates.tasks.base import DIFFICULTIES, Dataset, Difficulty, Task, accuracy
from labmates.tasks.findings import check_findings
from labmates.tasks.registry import TASKS, get_task

BUILT_IN = ("ecology", "anomaly", "biomarker", "geospatial")
ANALYSES = ("ideal", "competent", "lazy", "hasty", "prior")
GRID = 40
"""Number of values that are tried for a field, all of them quantiles of its true values."""
LONGEST = 2
"""Most numbers of a list that are tried."""


def diligent(task: Task[Any, Any], data: Dataset[Any]) -> BaseModel:
    """Return the findings of the cells that the task ships, as one researcher would run them; none without cells."""
    frame = pd.read_csv(io.BytesIO(data.csv()))
    # A part of divided evidence lacks what some cells need.
    found = run_cells(task.analysis, frame, goes_on=True)[1] if task.analysis else {}
    findings: BaseModel = task.findings()
    for name, value in found.items():
        with suppress(ValidationError):
            findings = findings.model_copy(update={name: getattr(task.findings(**{name: value}), name)})
    return findings


def analysed(task: Task[Any, Any], data: Dataset[Any], kind: str) -> BaseModel:
    """The findings of an analyst of this `kind`, or of the ideal one."""
    if kind == "ideal":
        findings: BaseModel = task.findings() if data.ideal is None else data.ideal()
        return findings
    frame = pd.read_csv(io.BytesIO(data.csv()))
    place, name = (task.name, "analyse") if kind == "competent" else (kind, task.name)
    analyse = getattr(import_module(f"tests.tasks.analysts.{place}"), name)
    stated = json.loads(json.dumps(analyse(frame), default=float))
    found: BaseModel = check_findings(stated, task.findings).findings or task.findings()
    return found


def by_finding(
    task: Task[Any, Any], difficulty: Difficulty, seeds: Sequence[int], kinds: Sequence[str] = ANALYSES
) -> pd.DataFrame:
    """Mean credits, one row a finding and a row for the accuracy, one column a kind of analysis."""
    credits: dict[str, list[dict[str, float]]] = {}
    for seed in seeds:
        data = task.generate(seed, difficulty)
        for kind in kinds:
            stated = task.prior(data.columns, difficulty) if kind == "prior" else analysed(task, data, kind)
            scored = task.score(stated, data.truth)
            mine = {credit.finding: credit.credit for credit in scored} | {"accuracy": accuracy(scored)}
            credits.setdefault(kind, []).append(mine)
    return pd.DataFrame({kind: pd.DataFrame(mine).mean() for kind, mine in credits.items()})


def measured(
    task: Task[Any, Any], difficulty: Difficulty, seeds: int, *, analyse: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the accuracy of each kind of report on each seed."""
    made = [task.generate(seed, difficulty) for seed in range(seeds)]
    for seed, data in enumerate(made):
        stated = {
            "prior": task.prior([str(column) for column in data.frame.columns], difficulty),
            "empty": task.findings(),
            "oracle": task.oracle(data.truth),
            **({"diligent": diligent(task, data)} if analyse else {}),
        }
        aliens = [task.score(task.oracle(other.truth), data.truth) for other in made if other is not data]
        yield {
            "task": task.name,
            "version": task.version,
            "difficulty": difficulty,
            "seed": seed,
            "alien": float(np.mean([accuracy(credits) for credits in aliens])),
            **{kind: accuracy(task.score(findings, data.truth)) for kind, findings in stated.items()},
        }


def best_guesses(task: Task[Any, Any], difficulty: Difficulty, seeds: int) -> dict[str, tuple[Any, float]]:
    """Return for each field of numbers what earns most on average over the seeds, and the mean accuracy of it alone."""
    truths = [task.generate(seed, difficulty).truth for seed in range(seeds)]
    oracles = [task.oracle(truth) for truth in truths]
    found = {}
    for name in task.findings.model_fields:
        candidates = list(_candidates([getattr(oracle, name) for oracle in oracles]))
        if not candidates:
            continue
        earned = [
            float(np.mean([accuracy(task.score(task.findings(**{name: value}), truth)) for truth in truths]))
            for value in candidates
        ]
        found[name] = candidates[int(np.argmax(earned))], max(earned)
    return found


def _candidates(values: Sequence[Any]) -> Iterator[Any]:
    """Yield quantiles of true numbers, or short lists of them; nothing for fields of another kind."""
    lists = all(isinstance(value, list) for value in values)
    flat = [number for value in values for number in (value if lists else [value])]
    if not flat or not all(isinstance(number, int | float) for number in flat):
        return
    grid = np.unique(np.quantile(flat, np.linspace(0, 1, GRID)).round(3)).tolist()
    if all(isinstance(number, int) for number in flat):
        grid = sorted({round(number) for number in grid})
    if not lists:
        yield from grid
        return
    for length in range(1, LONGEST + 1):
        yield from map(list, itertools.combinations(grid, length))


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", action="append", choices=TASKS.names(), help="default: the four of labmates")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--diligent", action="store_true", help="analyse the data too")
    parser.add_argument("--search", action="store_true", help="print the best guesses instead")
    parser.add_argument("--json", type=Path, help="write the accuracy of each seed to this file")
    parser.add_argument("--difficulty", action="append", choices=DIFFICULTIES, help="default: all")
    parser.add_argument("--findings", action="store_true", help="print credits by finding and kind of analysis instead")
    options = parser.parse_args()
    if options.findings:
        for name, difficulty in itertools.product(options.task or BUILT_IN, options.difficulty or DIFFICULTIES):
            table = by_finding(get_task(name), difficulty, range(options.seeds))
            print(f"\n{name} (version {get_task(name).version}), {difficulty}, {options.seeds} data sets")
            print(table.round(2).to_string(), flush=True)
        return
    tasks = [get_task(name) for name in options.task or BUILT_IN]
    if options.search:
        for task, difficulty in itertools.product(tasks, DIFFICULTIES):
            for name, (value, earned) in best_guesses(task, difficulty, options.seeds).items():
                print(f"{task.name:<11}{difficulty:<8}{name:<26}{value!s:<14}{earned:.3f}", flush=True)
        return
    rows = [
        row
        for task, difficulty in itertools.product(tasks, DIFFICULTIES)
        for row in measured(task, difficulty, options.seeds, analyse=options.diligent)
    ]
    table = pd.DataFrame(rows)
    kinds = [kind for kind in ("prior", "alien", "empty", "oracle", "diligent") if kind in table]
    print(f"Mean accuracy over {options.seeds} seeds; in brackets the highest of a seed")
    for (which, version, level), mine in table.groupby(["task", "version", "difficulty"], sort=False):
        cells = "".join(f"{kind} {mine[kind].mean():.3f} ({mine[kind].max():.2f})  " for kind in kinds)
        print(f"{which!s:<11}{version!s:<3}{level!s:<8}{cells.rstrip()}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), "utf-8")


if __name__ == "__main__":
    main()
