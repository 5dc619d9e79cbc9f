"""How often intervals of pooled ratings hold the truth, for runs with noise of matches and of models.

python -m benchmarks.ratings [--data-sets 50]
"""

from __future__ import annotations

import argparse

import numpy as np

from labmates.stats.deviation import deviation_ratings, ranks
from labmates.stats.pooled_ratings import pooled_ratings


def coverage(data_sets: int) -> None:
    """Print the coverage of each world and number of runs."""
    rng = np.random.default_rng(5)
    tied = np.zeros((5, 5))
    tied[:2], tied[2] = 1, 0.5
    for name, truth in (("4 equal", np.ones((4, 4))), ("6 distinct", rng.normal(size=(6, 6))), ("2 best tied", tied)):
        models = len(truth)
        ratings = deviation_ratings(truth)
        places = {"deviation": ratings, "rank": ranks(ratings, unit=float(np.ptp(truth)) or 1.0)}
        for runs in (3, 5, 10, 20):
            held = dict.fromkeys(places, 0)
            for _ in range(data_sets):
                noise = rng.normal(0, 0.5, (runs, models, models)) + rng.normal(0, 0.3, (runs, models, 1))
                for kind, estimates in pooled_ratings(list(truth + noise)).items():
                    pairs = zip(estimates, places[kind], strict=False)
                    held[kind] += sum(_within(*one.ends(), value) for one, value in pairs)
            shares = "  ".join(f"{kind} {number / (data_sets * models):.3f}" for kind, number in held.items())
            print(f"{name}, {runs} runs: {shares}")


def _within(low: float, high: float, value: float) -> bool:
    return low - 1e-9 <= value <= high + 1e-9


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-sets", type=int, default=50, help="per world")
    coverage(parser.parse_args().data_sets)
