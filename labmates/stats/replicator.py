"""Replicator dynamics: what becomes of a society whose members change to models that earn more.

Discrete dynamics with exponential weights (Freund and Schapire 1997), from the uniform population; CoopEval, section 5
and appendix E.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np
from numpy.typing import ArrayLike

from labmates.errors import UsageError
from labmates.stats.metagame import Array, as_metagame

STEPS, RATE = 1000, 0.1
AT_REST = 0.01
"""A population is at rest if no model gets more than this share of the payoffs' range above the average."""


@dataclass(frozen=True)
class Dynamics:
    """The result of replicator dynamics.

    Attributes
    ----------
    population
        The last share of each model, shape ``(models,)``; adds up to 1.
    fitness
        What each model gets against that population.
    gain
        By how much the best model against that population exceeds its average, as a share of the range of payoffs: 0 at
        an equilibrium, whatever payoffs are counted in.
    path
        The shares after each step, the first ones before any; shape ``(steps + 1, models)``.
    """

    population: Array
    fitness: Array
    gain: float
    path: Array

    @property
    def average(self) -> float:
        """The population's mean payoff at the end."""
        return float(self.population @ self.fitness)

    @property
    def converged(self) -> bool:
        """Whether the population has come to rest (`AT_REST`).

        The rate is per unit of payoff, so that societies of games with small payoffs move little in as many steps; and
        some go round for ever.
        """
        return self.gain <= AT_REST


def replicator_dynamics(
    payoffs: ArrayLike, *, steps: int = STEPS, rate: float = RATE, start: Sequence[float] | None = None
) -> Dynamics:
    """Let a population of models evolve.

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
    start
        The share of each model at first, positive and with the sum 1; by default all are alike.

    Raises
    ------
    UsageError
        If `payoffs` is no metagame, `steps` or `rate` is negative or no finite number, or `start` is no population.
    """
    array = as_metagame(payoffs)
    if steps < 0 or not 0 <= rate < np.inf:
        raise UsageError(f"steps and rate are at least 0 and finite, not {steps} and {rate}")
    models = len(array)
    fitness_of = _fitness(array)
    population = np.full(models, 1.0 / models) if start is None else np.array(start, dtype=float)
    if len(population) != models or not (population > 0).all() or not np.isclose(population.sum(), 1):
        raise UsageError(f"a population has a positive share of each of {models} models, with the sum 1")
    path = np.empty((steps + 1, models))
    path[0] = population

    # Logarithms of shares, so that a share too small for a number is not gone for ever.
    logs = np.zeros(models) if start is None else np.log(population)
    fitness = fitness_of(population)
    for step in range(steps):
        logs += rate * fitness
        population = np.exp(logs - logs.max())
        population /= population.sum()
        path[step + 1] = population
        fitness = fitness_of(population)
    width = float(np.ptp(array))
    gain = float(fitness.max() - population @ fitness) / width if width else 0.0
    return Dynamics(population, fitness, gain, path)


def _fitness(array: Array) -> Callable[[Array], Array]:
    """A function that gives the payoff of each model against a population.

    The order of co-players makes no difference, so that each set of them is looked at once, with its number of orders.
    """
    models, others = len(array), array.ndim - 1
    if others == 1:
        return lambda population: np.asarray(array @ population)
    sets = np.array(list(combinations_with_replacement(range(models), others)), dtype=np.intp)
    orders = [factorial(others) / prod(map(factorial, np.unique(one, return_counts=True)[1].tolist())) for one in sets]
    places = tuple(sets.T)
    payoffs = np.ascontiguousarray(array[(slice(None), *places)] * orders)

    def fitness(population: Array) -> Array:
        chance = population[places[0]]
        for place in places[1:]:
            chance = chance * population[place]
        return np.asarray(payoffs @ chance)

    return fitness
