"""Processor seconds and memory that `labmates.load` takes for the runs of a large store, in a process of its own."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile

from benchmarks.viewer import fill
from labmates.records.store import Store

CODE = """
import resource, sys, time
import labmates
labmates.load  # imports are not what is measured
import pandas
used = resource.getrusage(resource.RUSAGE_SELF)
frame = labmates.load("runs", store=sys.argv[1])
end = resource.getrusage(resource.RUSAGE_SELF)
seconds = end.ru_utime + end.ru_stime - used.ru_utime - used.ru_stime
print(f"{len(frame):,} rows of {len(frame.columns)} columns: {seconds:.1f} s of the processor,"
      f" at most {end.ru_maxrss / 1024:.0f} MiB in memory, {used.ru_maxrss / 1024:.0f} before")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/runs.db"
        with Store(url) as store:
            fill(store, chosen.runs)
        subprocess.run([sys.executable, "-c", CODE, url], check=True)


if __name__ == "__main__":
    main()
