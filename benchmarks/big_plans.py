"""What it takes to enter a study of a million cells, to enter it again, to claim a run of it, and to plan it.

By default each condition has a hundred replicates; with `--replicates 1` all are distinct.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from labmates.records.claims import Claims
from labmates.records.store import Store
from labmates.studies.plan import make_plan
from labmates.studies.spec import StudySpec, read_spec
from labmates.studies.study import enter
from labmates.util.bounded_yaml import Source
from labmates.util.process_ids import this_worker

_CELLS = {"game": ["public-goods", "weakest-link"], "rounds": [1, 2, 3, 4, 5], "reasoning": ["none", "tom"]}


def a_study(cells: int, replicates: int) -> StudySpec:
    """Return a study of so many cells."""
    models = [f"openai:m{number}" for number in range(max(1, cells // replicates // 20))]
    data = {"name": "big", "kind": "game", "models": models, "grid": _CELLS, "replicates": replicates}
    return read_spec(Source("big.yaml", data, {}))


def measure(step: str, url: str, spec: StudySpec) -> None:
    """Take one step and print its processor time and memory."""
    store = Store(url)
    begun = time.process_time()
    if step == "plan":
        made = make_plan(spec, store)
        what = f"planning {made.runs:,} cells"
    elif step == "claim":
        for _ in range(100):
            Claims(store, this_worker()).next("big", 1, attempts=5)
        what = "100 claims"
    else:
        entered = enter(store, spec)
        what = f"entering {entered.conditions:,} conditions, {entered.runs:,} cells ({entered.new:,} new)"
    seconds = time.process_time() - begun
    store.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what}: {seconds:.1f} CPU s, {peak:.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--url", help="another store, for instance in PostgreSQL; it must be empty")
    chosen = parser.parse_args()
    if chosen.step:
        return measure(chosen.step, chosen.url, a_study(chosen.cells, chosen.replicates))
    with tempfile.TemporaryDirectory() as folder:
        url = chosen.url or f"sqlite:///{folder}/big.db"
        for step in ("plan", "enter", "again", "claim"):
            command = [sys.executable, "-m", "benchmarks.big_plans", "--step", step, "--url", url]
            command += ["--cells", str(chosen.cells), "--replicates", str(chosen.replicates)]
            subprocess.run(command, check=True, env=dict(os.environ))
        if not chosen.url:
            print(f"the store takes {(Path(folder) / 'big.db').stat().st_size / 1e6:.0f} MB")
    return None


if __name__ == "__main__":
    main()
