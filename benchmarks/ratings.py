"""How long ratings of random metagames take: deviation ratings, and 1,000 steps of replicator dynamics.

Replicator dynamics stand beside a plain contraction of the whole array with the population, co-player by co-player.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import permutations

import numpy as np

from labmates.stats.deviation import deviation_ratings, ranks
from labmates.stats.metagame import Array
from labmates.stats.pooled_ratings import pooled_ratings
from labmates.stats.replicator import RATE, STEPS, replicator_dynamics

SIZES = ((6, 3), (35, 2), (24, 3), (35, 3), (60, 3), (35, 4))
"""Models and players."""
LARGE = 1_000_000
"""Metagames with more entries have no deviation ratings here, which take minutes."""


def main(repeats: int = 5) -> None:
    """Print the median over random metagames, in seconds."""
    rng = np.random.default_rng(0)
    deviation_ratings(rng.normal(size=(3, 3)))  # imports the solver
    print(
        "models  players  deviation ratings  replicator dynamics  contraction  ratio  difference  (median CPU seconds)"
    )
    for models, players in SIZES:
        metagames = [_random(rng, models, players) for _ in range(repeats)]
        ratings = _median(deviation_ratings, metagames) if models**players < LARGE else float("nan")
        dynamics, plain = (_median(function, metagames) for function in (replicator_dynamics, _contracted))
        off = max(np.abs(replicator_dynamics(one).population - _contracted(one)).max() for one in metagames[:1])
        seconds = f"{ratings:17.4f}  {dynamics:19.4f}  {plain:11.4f}  {plain / dynamics:5.1f}"
        print(f"{models:6d}  {players:7d}  {seconds}  {off:10.1e}")


def _contracted(payoffs: Array) -> Array:
    """Return the population after replicator dynamics, from the whole array."""
    logs = np.zeros(len(payoffs))
    for _ in range(STEPS + 1):
        population = np.exp(logs - logs.max())
        population /= population.sum()
        values = payoffs
        for _ in range(payoffs.ndim - 1):
            values = values.reshape(-1, len(payoffs)) @ population
        logs += RATE * values
    return np.asarray(population)


def _random(rng: np.random.Generator, models: int, players: int) -> Array:
    payoffs = rng.normal(size=(models,) * players)
    return np.asarray(
        np.mean([np.transpose(payoffs, (0, *order)) for order in permutations(range(1, players))], axis=0)
    )


def coverage(data_sets: int) -> None:
    """Print how often intervals of pooled ratings hold the truth, for runs with noise of matches and of models."""
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


def _median(function: Callable[[Array], object], metagames: list[Array]) -> float:
    seconds = []
    for payoffs in metagames:
        start = time.process_time()
        function(payoffs)
        seconds.append(time.process_time() - start)
    return float(np.median(seconds))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--coverage", type=int, default=0, help="data sets per world, for the coverage of intervals")
    arguments = parser.parse_args()
    coverage(arguments.coverage) if arguments.coverage else main(arguments.repeats)
