"""How often the intervals of ``labmates screen`` hold what a baseline then reaches in the lab that was left out.

    make -C packages/labmates-profiles bench NAME=screening ARGS="--studies 8 --json screening.json"
    make -C packages/labmates-profiles bench NAME=screening ARGS="--studies 1 --turns 8 --runs 4"  # code: 10 x slower

Each study is real, from its commands to its store: colleagues (`labmates_profiles.colleague`) with dispositions
drawn by chance play games and work in the lab; then each is left out and predicted from how it plays. Half of what
decides on their scores shows in their play, the other half does not. One more colleague, unlike all others, has
to be said to lie far outside.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd

GAMES = ("weakest-link", "common-pool", "public-goods")
OUTCOMES = ("completeness", "quality")
FORMS = ("correlated", "robust")
SIMULATIONS = 3
LOW, HIGH = 0.25, 0.75
"""Between which dispositions are drawn."""
ODD = "scripted:colleague/generosity=1/trust=0"
_STUDY = """name: lab
kind: science
models: [{models}]
fixed: {{task: {task}, difficulty: easy, max_turns: {turns}, deliberation_rounds: 0}}
replicates: {runs}
sandbox: {sandbox}
concurrency: {{workers: 1, max_sandboxes: 1, max_concurrent_runs: 2}}
"""


def colleagues(number: int, seed: int) -> list[str]:
    """Return the names of colleagues with dispositions drawn by chance."""
    chance = random.Random(seed)
    names = ("generosity", "trust", "reciprocity", "care")
    return [
        "scripted:colleague/" + "/".join(f"{name}={chance.uniform(LOW, HIGH):.3f}" for name in names)
        for _ in range(number)
    ]


def labmates(folder: Path, *arguments: str) -> str:
    """Execute a command in a folder, and return what it prints."""
    command = [sys.executable, "-m", "labmates.cli.main", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def study(seed: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Make one study, leave out its colleagues in turn, and return what was predicted of each, and what was reached."""
    models = colleagues(options.models, seed)
    games = [part for game in GAMES for part in ("--game", game)]
    with tempfile.TemporaryDirectory() as name:
        folder = (options.folder or Path(name)) / str(seed)
        folder.mkdir(parents=True, exist_ok=True)
        text = _STUDY.format(
            models=", ".join(models), task=options.task, turns=options.turns, runs=options.runs, sandbox=options.sandbox
        )
        (folder / "lab.yaml").write_text(text, "utf-8")
        labmates(folder, "study", "run", "lab.yaml")
        played = ("--simulations", str(SIMULATIONS), *games)
        labmates(folder, "profile", *models, ODD, *played, "--json")
        labmates(folder, "export", "lab", "--out", "runs.csv")
        runs = pd.read_csv(folder / "runs.csv")
        asked = ("--stored", "--no-benchmarks", *games, *(part for one in OUTCOMES for part in ("--outcome", one)))
        found = []
        for form in FORMS:
            told = labmates(folder, "screen", *models, ODD, *asked, "--spec", form, "--json")
            found += [row for line in told.splitlines() for row in _rows(json.loads(line), form, runs)]
    return [{"seed": seed, **row} for row in found]


def _rows(screened: dict[str, Any], form: str, runs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    mine = runs[runs["models"] == screened["model"]]
    for outcome, whole in screened["outcomes"].items():
        said = whole["with_games"]
        reached = mine[f"metrics.{outcome}"].to_numpy(float)
        yield {
            "model": screened["model"],
            "form": form,
            "outcome": outcome,
            "where": whole["standing"]["where"],
            "better": whole["better_than_mean"],
            "runs": len(reached),
            "runs_held": int(((reached >= said["run_low"]) & (reached <= said["run_high"])).sum()),
            "mean_held": bool(len(reached) and said["low"] <= reached.mean() <= said["high"]),
            "away": float(abs(reached.mean() - said["mean"])) if len(reached) else None,
            "width": said["high"] - said["low"],
            "run_width": said["run_high"] - said["run_low"],
            "warnings": len(screened["warnings"]),
        }


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print coverage by outcome and form, and what is said of where they lie."""
    frame = pd.DataFrame(rows).assign(is_odd=lambda all_rows: all_rows["model"] == ODD)
    # Runs of one colleague go together: colleagues, not runs, are what the error of a share comes of.
    frame = frame.assign(held=frame["runs_held"] / frame["runs"], is_warned=frame["warnings"] > 0)
    of_forms = frame[~frame["is_odd"]].groupby(["outcome", "form"], sort=False)
    table = of_forms[["held", "run_width", "mean_held", "width", "away", "is_warned"]].mean()
    print(table.assign(colleagues=of_forms.size(), error=of_forms["held"].sem()).round(3).to_string())
    print(pd.crosstab(frame["is_odd"].map({True: "unlike the others", False: "left out"}), frame["where"]).to_string())


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=8)
    parser.add_argument("--models", type=int, default=12, help="colleagues in a study")
    parser.add_argument("--runs", type=int, default=6, help="lab runs of each")
    parser.add_argument("--turns", type=int, default=1, help="replies of one agent in a phase; with 1 nobody runs code")
    parser.add_argument("--task", default="ecology")
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--seed", type=int, default=0, help="of the first study")
    parser.add_argument("--folder", type=Path, help="keep the stores here; what they hold already is not made again")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, help="write all rows to this file")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(options.processes) as pool:
        seeds = range(options.seed, options.seed + options.studies)
        for done, found in enumerate(pool.map(lambda seed: study(seed, options), seeds), 1):
            rows += found
            print(f"{done} of {options.studies} studies", flush=True)
    show(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), "utf-8")


if __name__ == "__main__":
    main()
