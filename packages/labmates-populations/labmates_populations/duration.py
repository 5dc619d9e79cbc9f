"""Estimated run time of an evolution on this machine, measured on its first generations."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from labmates_populations.condition import EvolutionCondition
from labmates_populations.engine.evolution import Evolution
from labmates_populations.engine.workers import Cost

_LEAST_GENERATIONS = 3


@dataclass(frozen=True)
class Duration:
    """The measured seconds of an evolution's first generations, and the estimates from them.

    Attributes
    ----------
    decisions
        Per generation.
    measured
        Seconds of each generation played, from the first. Generations become faster as moves are memoised.
    generations
        Maximum number of generations.
    costs
        Of the decisions by the way to play.
    """

    decisions: int
    measured: tuple[float, ...]
    generations: int
    costs: Mapping[str, Cost]

    @property
    def later(self) -> float:
        """Seconds per later generation: the mean of the last third of those measured."""
        last = self.measured[-max(1, len(self.measured) // 3) :]
        return sum(last) / len(last)

    @property
    def seconds(self) -> float:
        """Expected seconds of the whole evolution if no gene reaches the threshold earlier."""
        played = self.measured[: self.generations]
        return sum(played) + (self.generations - len(played)) * self.later

    def row(self) -> dict[str, float]:
        """The JSON object."""
        return {
            "decisions_per_generation": self.decisions,
            "generations": self.generations,
            "generations_measured": len(self.measured),
            "first_microseconds_per_decision": 1e6 * self.measured[0] / self.decisions,
            "later_microseconds_per_decision": 1e6 * self.later / self.decisions,
            "seconds": self.seconds,
        }


def measure(evolution: Evolution, condition: EvolutionCondition, seconds: float) -> Duration:
    """Play the first generations of an evolution for about `seconds`, at least three.

    They equal the generations of a run with the same seed; none is recorded.
    """
    assert condition.generations is not None
    measured: list[float] = []
    costs: dict[str, Cost] = {}
    began = time.perf_counter()
    for generation in islice(evolution.generations((0, evolution.first(), frozenset())), condition.generations):
        costs = {way: costs.get(way, Cost()) + cost for way, cost in generation.costs.items()}
        measured.append(time.perf_counter() - began)
        if len(measured) >= _LEAST_GENERATIONS and sum(measured) >= seconds:
            break
        began = time.perf_counter()
    return Duration(condition.decisions, tuple(measured), condition.generations, costs)
