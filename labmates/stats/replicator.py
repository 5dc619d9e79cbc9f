"""Replicator dynamics: evolution of a society whose members switch to models that earn more.

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
"""Maximum gain of a model over the average in a population at rest, as a share of the payoffs' range."""


@dataclass(frozen=True)
class Dynamics:
    """The result of replicator dynamics.

    Attributes
    ----------
    population
        The final share of each model, shape ``(models,)``.
    fitness
        Each model's payoff against that population.
    gain
        The excess of the best model's fitness over the average, as a share of the range of payoffs; 0 at an
        equilibrium.
    path
        The shares before the first and after each step; shape ``(steps + 1, models)``.
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
        """Whether the population is at rest (`AT_REST`).

        The rate is per unit of payoff, so populations in games with small payoffs move little in the same number of
        steps; and some cycle.
        """
        return self.gain <= AT_REST


def replicator_dynamics(
    payoffs: ArrayLike, *, steps: int = STEPS, rate: float = RATE, start: Sequence[float] | None = None
) -> Dynamics:
    """The evolution of a population of models.

    In each step a model's share is multiplied by ``exp(rate * (fitness - average))``; then shares are normalised.

    Parameters
    ----------
    payoffs
        A metagame.
    rate
        Learning rate, per unit of payoff.
    start
        The initial shares of models, positive with the sum 1; by default equal.

    Raises
    ------
    UsageError
        If `payoffs` is not a metagame, `steps` or `rate` is negative or infinite, or `start` is invalid.
    """
    array = as_metagame(payoffs)
    if steps < 0 or not 0 <= rate < np.inf:
        raise UsageError(f"steps and rate must be at least 0 and finite, not {steps} and {rate}")
    models = len(array)
    earned = fitness_of(array)
    population = np.full(models, 1.0 / models) if start is None else np.array(start, dtype=float)
    if len(population) != models or not (population > 0).all() or not np.isclose(population.sum(), 1):
        raise UsageError(f"a population needs a positive share of each of {models} models, with the sum 1")
    path = np.empty((steps + 1, models))
    path[0] = population

    # Logarithms of shares, so that shares can recover from underflow.
    logs = np.zeros(models) if start is None else np.log(population)
    fitness = earned(population)
    for step in range(steps):
        logs += rate * fitness
        population = np.exp(logs - logs.max())
        population /= population.sum()
        path[step + 1] = population
        fitness = earned(population)
    width = float(np.ptp(array))
    gain = float(fitness.max() - population @ fitness) / width if width else 0.0
    return Dynamics(population, fitness, gain, path)


def fitness_of(array: Array) -> Callable[[Array], Array]:
    """A function from populations to the payoff of each model.

    The order of co-players does not matter, so each multiset is evaluated once, weighted by its number of orders.
    """
    models, others = len(array), array.ndim - 1
    if others == 1:
        return lambda population: np.asarray(array @ population)
    sets = np.array(list(combinations_with_replacement(range(models), others)), dtype=np.intp)
    orders = [
        factorial(others) / prod(map(factorial, np.unique(each, return_counts=True)[1].tolist())) for each in sets
    ]
    places = tuple(sets.T)
    payoffs = np.ascontiguousarray(array[(slice(None), *places)] * orders)

    def fitness(population: Array) -> Array:
        chance = population[places[0]]
        for place in places[1:]:
            chance = chance * population[place]
        return np.asarray(payoffs @ chance)

    return fitness
