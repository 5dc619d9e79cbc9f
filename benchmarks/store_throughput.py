"""How many short runs a store takes a second, and how long a large study takes to look at and to export.

A run is like one game: two calls of a model that takes no time, two decisions and two charges.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sqlalchemy as sa

from benchmarks.duels import a_study
from labmates.records import schema
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.studies.study import enter, stored_spec, work_on


def work(url: str) -> None:
    """Be a worker."""
    store = Store(url)
    asyncio.run(work_on(store, stored_spec(store, None)))
    store.close()


def throughput(url: str, runs: int, processes: int) -> float:
    """Return the runs per second of so many processes."""
    store = Store(url)
    started = time.perf_counter()
    entered = enter(store, a_study(runs))
    entering = time.perf_counter() - started
    command = [sys.executable, "-m", "benchmarks.store_throughput", "--work", url]
    started = time.perf_counter()
    workers = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(processes)]
    assert [worker.wait() for worker in workers] == [0] * processes
    seconds = time.perf_counter() - started
    assert study_counts(store.database, "duels").runs == {"completed": entered.runs}
    store.close()
    print(
        f"{processes} processes: {runs} runs of 2 calls in {seconds:.1f} s, start-up included: "
        f"{runs / seconds:.0f} runs/s (entering them took {entering:.1f} s)"
    )
    return runs / seconds


def blow_up(url: str, runs: int) -> None:
    """Copy the ended runs of a store until there are so many."""
    store = Store(url)

    def copy(connection: sa.Connection) -> None:
        rows = [dict(row._mapping) for row in connection.execute(sa.select(schema.runs))]
        scores = {"type": "score", "at": 1.0, "step": "", "team": "", "agent": "", "seq": 100}
        said = {"judge": "verified", "version": "1", "metric": "accuracy", "value": 0.5, "reason": "so"}
        new, events = [], []
        for number in range(len(rows), runs):
            run_id = f"copy{number}"
            new.append({**rows[number % len(rows)], "id": run_id, "replicate": number})
            events.append({**scores, "run": run_id, "data": said})
        connection.execute(sa.insert(schema.runs), new)
        connection.execute(sa.insert(schema.events), events)

    store.database.write(copy)
    store.close()


def timed(name: str, *arguments: str, url: str) -> None:
    """Print how long a command takes and how much memory."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "labmates.cli.main", *arguments],
        env={**os.environ, "LABMATES_STORE": url},
        check=True,
        capture_output=True,
    )
    assert done.returncode == 0
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{name}: {time.perf_counter() - started:.2f} s (most memory of any command so far: {peak:.0f} MB)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", metavar="URL", help="be a worker")
    parser.add_argument("--url", help="another store, for instance in PostgreSQL; it must be empty")
    parser.add_argument("--runs", type=int, default=10_000)
    chosen = parser.parse_args()
    if chosen.work:
        return work(chosen.work)
    with tempfile.TemporaryDirectory() as folder:
        for processes in (1, 2):
            url = f"sqlite:///{folder}/{processes}.db"
            throughput(url, chosen.runs, processes)
        if chosen.url:
            throughput(chosen.url, chosen.runs, 2)
        size = (Path(folder) / "2.db").stat().st_size
        print(f"a run takes {size / chosen.runs / 1024:.1f} KB in the store")
        blow_up(url, 100_000)
        timed("status of 100,000 runs", "study", "status", "duels", url=url)
        for form in ("csv", "jsonl", "parquet"):
            timed(f"export of 100,000 runs as {form}", "export", "duels", "--out", f"{folder}/x.{form}", url=url)
    return None


if __name__ == "__main__":
    main()
