"""What a team, one agent and a team that never talks earn when a task's evidence is divided among instruments.

    python -m benchmarks.evidence --seeds 10 --difficulty medium
    python -m benchmarks.evidence --task anomaly --splits 0,0.5,1 --json evidence.json

The agents are replaced by functions: each part's holder hands over its keys (`Instruments.hand_over`), the holder of
the readings restores the table (`Instruments.combine`), and the analysis code of ``scripted:diligent`` reads the
findings out of it. Findings that this analysis can't make are stated as the task's prior has them. Arms: ``oracle``
is the analysis of the undivided table, ``team`` gets the keys of the others, ``mute`` merges what each part alone
allows, and ``restricted`` is the best single part. The last columns are numbers of characters: of the readings, and of
all keys that are handed over.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel

from benchmarks.task_scores import BUILT_IN, diligent
from labmates.tasks.base import DIFFICULTIES, Dataset, Difficulty, Task, accuracy
from labmates.tasks.evidence import Part, divide, instruments_of
from labmates.tasks.merging import merge_findings
from labmates.tasks.registry import get_task
from labmates.tasks.restoring import Keys

LEAST_GAIN = 0.02
"""The index is undefined where the oracle gains less than this over the best single part."""
ARMS = ("prior", "restricted", "mute", "team", "oracle")


class Solver:
    """The analysis of tables of one data set, each table once."""

    def __init__(self, task: Task[Any, Any], data: Dataset[Any], difficulty: Difficulty) -> None:
        self.task, self.data = task, data
        self.prior: BaseModel = task.prior([str(column) for column in data.frame.columns], difficulty)
        self._known: dict[bytes, BaseModel] = {}

    def findings(self, table: pd.DataFrame | None) -> BaseModel:
        """The findings that the analysis reads out of a table; of nothing, the prior."""
        if table is None:
            return self.prior
        data = Dataset(table, self.data.truth, self.data.description)
        key = data.csv()
        if key not in self._known:
            stated = {name: value for name, value in diligent(self.task, data) if value is not None}
            self._known[key] = self.prior.model_copy(update=stated)
        return self._known[key]

    def accuracy(self, findings: BaseModel) -> float:
        """The accuracy of findings."""
        return accuracy(self.task.score(findings, self.data.truth))


def as_loaded(part: Part) -> pd.DataFrame:
    """A part as an agent's kernel loads it."""
    return pd.read_csv(io.BytesIO(part.csv()))


def arms(task: Task[Any, Any], parts: Sequence[Part], solver: Solver) -> dict[str, Any]:
    """Findings of each arm, and the numbers of characters of the readings and of the keys."""
    declared, frames = instruments_of(task), [as_loaded(part) for part in parts]
    keys: list[Keys] = [json.loads(json.dumps(declared.hand_over(frame))) for frame in frames]
    alone = [solver.findings(declared.combine(frame)) for frame in frames]
    return {
        "prior": solver.prior,
        "restricted": max(alone, key=solver.accuracy),
        "mute": merge_findings(alone),
        "team": solver.findings(declared.combine(frames[0], keys[1:])),
        "oracle": solver.findings(solver.data.frame),
        "readings": len(parts[0].csv()),
        "keys": sum(len(json.dumps(given)) for given in keys[1:]),
    }


def measured(
    task: Task[Any, Any], difficulty: Difficulty, splits: Sequence[float], seeds: int
) -> Iterator[dict[str, Any]]:
    """Yield the accuracy of each arm for each seed and split."""
    for seed in range(seeds):
        solver = Solver(task, task.generate(seed, difficulty), difficulty)
        for split in splits:
            outcome = arms(task, divide(task, seed, difficulty, split), solver)
            scores = {arm: solver.accuracy(outcome[arm]) for arm in ARMS}
            sizes = {name: outcome[name] for name in ("readings", "keys")}
            yield {"task": task.name, "difficulty": difficulty, "split": split, "seed": seed, **scores, **sizes}


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", action="append", choices=BUILT_IN)
    parser.add_argument("--difficulty", action="append", choices=DIFFICULTIES, help="default: medium")
    parser.add_argument("--splits", default="0,0.25,0.5,0.75,1")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", type=Path, help="write the accuracy of each seed to this file")
    options = parser.parse_args()
    splits = [float(word) for word in options.splits.split(",")]
    rows: list[dict[str, Any]] = []
    for name, difficulty in itertools.product(options.task or BUILT_IN, options.difficulty or ["medium"]):
        mine = list(measured(get_task(name), difficulty, splits, options.seeds))
        rows += mine
        for split, group in pd.DataFrame(mine).groupby("split"):
            means = group[[*ARMS, "readings", "keys"]].mean()
            cells = "".join(f"{arm} {means[arm]:.3f}  " for arm in ARMS)
            gain = means["oracle"] - means["restricted"]
            index = [
                (means[arm] - means["restricted"]) / gain if gain > 0.02 else float("nan") for arm in ("team", "mute")
            ]
            sizes = f"{means['readings']:.0f} {means['keys']:.0f}"
            print(
                f"{name:<11}{difficulty:<7}{split:<5g}{cells}index team {index[0]:.2f} mute {index[1]:.2f}  {sizes}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), "utf-8")


if __name__ == "__main__":
    main()
