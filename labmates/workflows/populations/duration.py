"""Estimated run time of an evolution on this machine, from a few generations played for it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from labmates.workflows.populations.condition import EvolutionCondition
from labmates.workflows.populations.engine.evolution import Evolution

_LEAST_GENERATIONS = 3


@dataclass(frozen=True)
class Duration:
    """The measured curve of an evolution's generations, and what follows from it.

    Attributes
    ----------
    decisions
        Of a generation.
    measured
        Seconds of each generation that was played, from the first. Generations become faster while moves are
        remembered.
    generations
        The most that the evolution has.
    """

    decisions: int
    measured: tuple[float, ...]
    generations: int

    @property
    def later(self) -> float:
        """Seconds of a generation from now on: the mean of the last third of those measured."""
        last = self.measured[-max(1, len(self.measured) // 3) :]
        return sum(last) / len(last)

    @property
    def seconds(self) -> float:
        """Expected seconds of the whole evolution if no gene reaches the threshold before its last generation."""
        played = self.measured[: self.generations]
        return sum(played) + (self.generations - len(played)) * self.later

    def row(self) -> dict[str, float]:
        """It as an object of JSON."""
        return {
            "decisions_per_generation": self.decisions,
            "generations": self.generations,
            "generations_measured": len(self.measured),
            "first_microseconds_per_decision": 1e6 * self.measured[0] / self.decisions,
            "later_microseconds_per_decision": 1e6 * self.later / self.decisions,
            "seconds": self.seconds,
        }


def measure(evolution: Evolution, condition: EvolutionCondition, seconds: float) -> Duration:
    """Play the first generations of an evolution for about so many seconds, three at least.

    These are the generations of a run with the same seed; nothing of them is kept.
    """
    assert condition.generations is not None
    agents, broken = evolution.first(), frozenset[int]()
    measured: list[float] = []
    while len(measured) < condition.generations:
        began = time.perf_counter()
        generation = evolution.played(len(measured), agents, broken)
        agents = evolution.next(generation)
        broken |= {index for index, error in generation.errors.items() if error.stopped}
        measured.append(time.perf_counter() - began)
        if len(measured) >= _LEAST_GENERATIONS and sum(measured) >= seconds:
            break
    return Duration(condition.decisions, tuple(measured), condition.generations)
