"""How long ratings of random metagames take: deviation ratings, and 1,000 steps of replicator dynamics."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from labmates.analysis.deviation import deviation_ratings
from labmates.analysis.metagame import Array
from labmates.analysis.replicator import replicator_dynamics

SIZES = ((6, 3), (35, 2), (24, 3), (35, 3), (60, 3))
"""Models and players."""


def main(repeats: int = 5) -> None:
    """Print the median over random metagames, in seconds."""
    rng = np.random.default_rng(0)
    deviation_ratings(rng.normal(size=(3, 3)))  # imports the solver
    print("models  players  deviation ratings  replicator dynamics   (median seconds)")
    for models, players in SIZES:
        metagames = [_random(rng, models, players) for _ in range(repeats)]
        ratings, dynamics = (_median(function, metagames) for function in (deviation_ratings, replicator_dynamics))
        print(f"{models:6d}  {players:7d}  {ratings:17.4f}  {dynamics:19.4f}")


def _random(rng: np.random.Generator, models: int, players: int) -> Array:
    payoffs = rng.normal(size=(models,) * players)
    return (payoffs + np.swapaxes(payoffs, 1, 2)) / 2 if players == 3 else payoffs


def _median(function: Callable[[Array], object], metagames: list[Array]) -> float:
    seconds = []
    for payoffs in metagames:
        start = time.perf_counter()
        function(payoffs)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    main(parser.parse_args().repeats)
