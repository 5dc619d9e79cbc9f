"""Replicator dynamics: what becomes of a society whose members change to models that earn more.

Discrete dynamics with exponential weights (Freund and Schapire 1997), from the uniform population; CoopEval, section 5
and appendix E.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from labmates.analysis.metagame import Array, as_metagame
from labmates.errors import UsageError

STEPS, RATE = 1000, 0.1


@dataclass(frozen=True)
class Dynamics:
    """What replicator dynamics came to.

    Attributes
    ----------
    population
        The last share of each model, shape ``(models,)``; adds up to 1.
    fitness
        What each model gets against that population.
    path
        The shares after each step, the first ones before any; shape ``(steps + 1, models)``.
    """

    population: Array
    fitness: Array
    path: Array

    @property
    def average(self) -> float:
        """What the population gets on average at the end."""
        return float(self.population @ self.fitness)


def replicator_dynamics(payoffs: ArrayLike, *, steps: int = STEPS, rate: float = RATE) -> Dynamics:
    """Let a uniform population of models evolve.

    In each step a model's share is multiplied by ``exp(rate * (fitness - average))``; then shares are scaled to sum up
    to 1.

    Parameters
    ----------
    payoffs
        A metagame.
    steps
        Number of steps.
    rate
        Learning rate, per unit of payoff.

    Raises
    ------
    UsageError
        If `payoffs` is no metagame, or `steps` or `rate` is negative or no finite number.
    """
    array = as_metagame(payoffs)
    if steps < 0 or not 0 <= rate < np.inf:
        raise UsageError(f"steps and rate are at least 0 and finite, not {steps} and {rate}")
    models, players = len(array), array.ndim
    # Each product with the population takes away one co-player; rows of the remaining axes are contiguous.
    shapes = [(models ** (players - 1 - taken), models) for taken in range(players - 1)]
    population = np.full(models, 1.0 / models)
    path = np.empty((steps + 1, models))
    path[0] = population

    def fitness_of(population: Array) -> Array:
        values = array
        for shape in shapes:
            values = values.reshape(shape) @ population
        return values

    # Logarithms of shares, so that a share too small for a number is not gone for ever.
    logs = np.zeros(models)
    fitness = fitness_of(population)
    for step in range(steps):
        logs += rate * fitness
        population = np.exp(logs - logs.max())
        population /= population.sum()
        path[step + 1] = population
        fitness = fitness_of(population)
    return Dynamics(population, fitness, path)
