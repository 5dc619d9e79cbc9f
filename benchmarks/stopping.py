"""What stopping early saves, and what it costs: simulated studies under no, half, the planned and twice the difference.

    python -m benchmarks.stopping [--studies 20000]

Prints, for studies of 12, 20 and 40 blocks in a fixed design, the error and power of the verdict of
``study run --until settled``, its mean blocks under each, what they save of the fixed design's, and how often the
interval at the stop contains the truth; with ``--printed`` by the very p that `labmates compare` prints, else by its
form for normal differences.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np

from labmates.stats.domains import SHARE
from labmates.stats.paired import FEWEST_TOLD, Pair, difference
from labmates_design.power import POWER
from labmates_design.stopping import ERROR, INFLATION, looks, p_values

Verdict = Callable[[np.ndarray, np.ndarray], np.ndarray]
EFFECTS = (0.0, 0.5, 1.0, 2.0)
"""In planned differences."""


def printed(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The p that is printed for the first `at` values of each row."""
    rows = [[Pair("", str(place), "", float(value) / 20) for place, value in enumerate(row)] for row in values]
    p = [[difference(row[:n], SHARE.difference()).p if n >= FEWEST_TOLD else 1.0 for n in at] for row in rows]
    return np.array(p, dtype=float)


def simulated(fixed: int, studies: int, p_of: Verdict = p_values) -> tuple[list[float], list[float], list[float]]:
    """The share of studies that tell a difference, their mean blocks, and the coverage of intervals, by effect."""
    number, rng = math.ceil(fixed * INFLATION), np.random.default_rng(fixed)
    noise, planned = rng.standard_normal((studies, number)), _planned(fixed, rng)
    low, high = (np.array([getattr(look, name) for look in looks(number)]) for name in ("told", "hopeless"))
    told, blocks, held = [], [], []
    of_truth = p_of(noise, np.arange(1, number + 1))  # the interval excludes the truth where this is below the error
    for effect in EFFECTS:
        p = p_of(noise + effect * planned, np.arange(1, number + 1))
        at = np.arange(studies), ((p <= low) | (p >= high)).argmax(axis=1)
        told.append(float((p[at] <= ERROR).mean()))
        blocks.append(float((at[1] + 1).mean()))
        held.append(float((of_truth[at] > ERROR).mean()))
    return told, blocks, held


def _planned(fixed: int, rng: np.random.Generator) -> float:
    """The effect that a fixed design tells with the usual power."""
    noise, low, high = rng.standard_normal((20_000, fixed)), 0.0, 5.0
    for _ in range(30):
        middle = (low + high) / 2
        is_enough = (p_values(noise + middle, np.array([fixed])) <= ERROR).mean() >= POWER
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def main() -> None:
    """Simulate, and print a line for each design."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=20_000)
    parser.add_argument("--printed", action="store_true")
    given = parser.parse_args()
    for fixed in (12, 20) if given.printed else (12, 20, 40):
        told, blocks, held = simulated(fixed, given.studies, printed if given.printed else p_values)
        print(
            f"{fixed} blocks, at most {math.ceil(fixed * INFLATION)}: error {told[0]:.3f}, power {told[2]:.3f}; "
            f"blocks {', '.join(f'{each:.1f}' for each in blocks)}; "
            f"saved {1 - sum(blocks) / len(blocks) / fixed:.0%} on average; "
            f"coverage {', '.join(f'{each:.3f}' for each in held)}"
        )


if __name__ == "__main__":
    main()
