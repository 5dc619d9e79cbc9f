"""How long the command line takes to answer, against a Python that does nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "labmates --help": ["-m", "labmates.cli.main", "--help"],
    "labmates run science --help": ["-m", "labmates.cli.main", "run", "science", "--help"],
}


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(7):
        for name, arguments in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
            times[name].append(time.perf_counter() - start)
    nothing = statistics.median(times["python -c pass"])
    for name, seconds in times.items():
        middle = statistics.median(seconds)
        print(f"{name}: median {middle:.3f} s of {len(seconds)}, {middle / nothing:.1f} times python -c pass")


if __name__ == "__main__":
    main()
