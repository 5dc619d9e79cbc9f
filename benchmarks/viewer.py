"""How long pages of a large run and of a large store take, beside those of small ones and of a page without any data.

Seconds are those of a request over HTTP to a viewer in a thread of this process, the median of a few; the first one is
told apart, since only that one finds nothing in memory.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time

import sqlalchemy as sa

from labmates.records import schema
from labmates.records.bodies import Bodies
from labmates.records.rows import run_row
from labmates.records.store import Store
from tests.support.recorded import a_record, long_run
from tests.support.site import Site, served

TIMES = 7
KINDS, STATUSES = ("science", "game", "dilemma", "tournament"), ("completed", "completed", "completed", "failed")


def fill(store: Store, runs: int) -> None:
    """Enter many runs with conditions and metrics as large as real ones."""
    condition = {"task": "ecology", **{f"parameter_{at}": "x" * 20 for at in range(25)}}
    metrics = {f"metric_{at}": 0.123456789 for at in range(10)}
    for first in range(0, runs, 5_000):
        rows = [
            run_row(
                a_record(
                    KINDS[at % 4],
                    id=f"{at * 2654435761 % 2**40:010x}",
                    key=str(at),
                    study=f"study-{at % 9}",
                    status=STATUSES[at // 4 % 4],
                    started=1.7e9 + at,
                    condition=condition,
                    metrics=metrics,
                )
            )
            for at in range(first, min(runs, first + 5_000))
        ]
        with store.database.engine.begin() as connection:
            connection.execute(sa.insert(schema.runs), rows)


def timed(site: Site, name: str, path: str, base: float = 0.0) -> float:
    """Print how long a page takes at first and then; return the latter."""
    seconds = []
    for _ in range(TIMES):
        started = time.perf_counter()
        answer = site.get(path)
        seconds.append(time.perf_counter() - started)
        assert answer.status == 200, (path, answer.text[:300])
    usual = statistics.median(seconds[1:])
    ratio = f", {usual / base:.1f} times a page of a small one" if base else ""
    print(f"{name}: {seconds[0]:.3f} s at first, then {usual:.3f} s, {len(answer.body) / 1024:.0f} KB{ratio}")
    return usual


def whole(store: Store, run_id: str) -> None:
    """Print how long it takes to read a whole run, as a viewer without pages would have to."""
    started = time.perf_counter()
    store.events(run_id)
    Bodies(store.bodies(run_id))
    print(f"all events and bodies of that run, read and not even shown: {time.perf_counter() - started:.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=100_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{folder}/runs.db")
        small, large = long_run(store, 200), long_run(store, chosen.events)
        with served(store) as site:
            timed(site, "an asset", "/static/viewer.css")
            for name, rest in (("overview", ""), ("story", "/story"), ("one event", "/events/150")):
                base = timed(site, f"{name} of a run of 200 events", f"/runs/{small}{rest}")
                timed(site, f"{name} of a run of {chosen.events:,} events", f"/runs/{large}{rest}", base)
            timed(site, "the last page of its story", f"/runs/{large}/story?at={chosen.events}")
            timed(site, "its last event", f"/runs/{large}/events/{chosen.events - 1}")
            timed(site, "what is new in it", f"/runs/{large}/live?after={chosen.events - 50}&mode=append")
            whole(store, large)
            base = timed(site, "the list of 2 runs", "/")
            fill(store, chosen.runs)
            timed(site, f"the list of {chosen.runs:,} runs", "/", base)
            for query in (
                "kind=game&status=failed",
                "study=study-3&sort=seconds",
                "text=nothing",
                "model=diligent&sort=spent",
            ):
                timed(site, f"the same, {query}", f"/?{query}", base)
        store.close()


if __name__ == "__main__":
    main()
