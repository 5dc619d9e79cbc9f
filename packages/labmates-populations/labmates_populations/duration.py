"""Estimated run time of an evolution on this machine, measured on its first generations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice

from labmates_populations.condition import EvolutionCondition
from labmates_populations.engine.evolution import Evolution
from labmates_populations.engine.workers import Cost

_LEAST_GENERATIONS = 3


def measure(evolution: Evolution, condition: EvolutionCondition, seconds: float) -> tuple[list[float], dict[str, Cost]]:
    """Play the first generations of an evolution for about `seconds`, at least three.

    They equal the generations of a run with the same seed; none is recorded. Returns the seconds of each, which fall
    as moves are memoised, and the costs of decisions by the way to play.
    """
    measured: list[float] = []
    costs: dict[str, Cost] = {}
    began = time.perf_counter()
    for generation in islice(evolution.generations((0, evolution.first(), frozenset())), condition.generations):
        costs = {way: costs.get(way, Cost()) + cost for way, cost in generation.costs.items()}
        measured.append(time.perf_counter() - began)
        if len(measured) >= _LEAST_GENERATIONS and sum(measured) >= seconds:
            break
        began = time.perf_counter()
    return measured, costs


def estimate(measured: Sequence[float], decisions: int, generations: int) -> dict[str, float]:
    """The estimate of a whole evolution as a JSON object, from the seconds of its first generations.

    Later ones are taken to last as long as the last third of these; no gene reaches the threshold before the end.
    """
    last = measured[-max(1, len(measured) // 3) :]
    later = sum(last) / len(last)
    return {
        "decisions_per_generation": decisions,
        "generations": generations,
        "generations_measured": len(measured),
        "first_microseconds_per_decision": 1e6 * measured[0] / decisions,
        "later_microseconds_per_decision": 1e6 * later / decisions,
        "seconds": sum(measured[:generations]) + max(0, generations - len(measured)) * later,
    }
