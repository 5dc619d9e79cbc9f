"""A study whose workers are killed and whose database goes away, beside the same study left in peace.

Afterwards every run must be there once, in both stores with the same outcome, and no ledger out of balance.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from typing import Any

from labmates.errors import LabmatesError
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.studies.audit import audit, begun_runs
from labmates.studies.processes import work_in_processes
from labmates.studies.ray_executor import work_on_ray
from labmates.studies.spec import StudySpec, read_spec
from labmates.studies.study import enter
from labmates.util.bounded_yaml import Source
from labmates.util.ray_cluster import import_ray
from labmates.workflows.calls.stop_signal import StopSignal
from tests.support.chaos import Chaos

STUDY = "chaos"


def a_study(runs: int, model: str) -> StudySpec:
    """Return a study of so many short science runs, whose workers may die as often as they like."""
    data = {
        "name": STUDY,
        "kind": "science",
        "models": [model],
        "fixed": {"difficulty": "easy", "task": "anomaly", "deliberation_rounds": 1},
        "grid": {"visibility": ["full", "hidden"]},
        "replicates": runs // 2,
        "sandbox": "unsafe-local",
        "concurrency": {"max_concurrent_runs": 3, "max_sandboxes": 3},
        "attempts": 1000,
    }
    return read_spec(Source(STUDY, data, {}))


def outcomes(store: Store) -> dict[tuple[str, int], Any]:
    """Return what came of each run, without times and ids."""
    found = {}
    for run in store.runs():
        events = [(event.type, event.step) for event in store.events(run.id) if event.step]
        found[run.key, run.replicate] = (run.status, run.metrics, run.usage, run.budget, sorted(events))
    return found


async def execute(url: str, spec: StudySpec, workers: int, *, on_ray: bool) -> None:
    """Let workers execute the study."""
    if on_ray:
        await work_on_ray(url, spec, workers=workers)
    else:
        await work_in_processes(url, spec.name, workers, StopSignal())


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="the store, which must be empty; by default a new SQLite file")
    parser.add_argument("--model", default="scripted:silent")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--cuts", type=int, default=10)
    parser.add_argument("--ray", action="store_true", help="workers on a Ray of this machine")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.ray:
        import_ray()
    spec = a_study(chosen.runs, chosen.model)
    with tempfile.TemporaryDirectory() as folder:
        peace, troubled = Store(f"sqlite:///{folder}/peace.db"), Store(chosen.url or f"sqlite:///{folder}/chaos.db")
        seconds = []
        for store in (peace, troubled):
            runs = enter(store, spec).runs
            chaos = Chaos(store, STUDY, runs=runs, kills=chosen.kills, cuts=chosen.cuts, seed=chosen.seed)
            started = time.perf_counter()
            async with asyncio.TaskGroup() as group:
                group.create_task(execute(store.url, spec, chosen.workers, on_ray=chosen.ray and store is troubled))
                if store is troubled:
                    group.create_task(chaos.make())
            seconds.append(time.perf_counter() - started)
        assert study_counts(troubled.database, STUDY).runs == {"completed": runs}, study_counts(
            troubled.database, STUDY
        )
        found = [fault for _, faults in audit(troubled, begun_runs(troubled)) for fault in faults]
        lost = Counter(s for run in list(troubled.runs()) for _, s, _ in troubled.attempts(run.id))
        same = outcomes(peace) == outcomes(troubled)
        print(
            f"{runs} runs on {chosen.workers} workers in {troubled.shown_url}: {chaos.killed} killed, connections cut "
            f"{chaos.cut} times; attempts that did not end: {dict(lost)}; {seconds[1]:.0f} s, in peace "
            f"{seconds[0]:.0f} s; faults found by the audit: {len(found)}; same outcomes as in peace: {same}"
        )
        for fault in found:
            print(fault)
        peace.close()
        troubled.close()
        assert same
        assert not found


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except* LabmatesError as errors:  # no Ray, or a store that workers can't use
        sys.exit("\n".join(map(str, errors.exceptions)))
