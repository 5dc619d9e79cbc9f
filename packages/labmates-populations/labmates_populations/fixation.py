"""Selection in finite populations with rare mutations: fixation probabilities, stationary distribution, alpha-rank.

With rare mutations a population has at most two types: a mutant takes over or dies out before the next one appears
(Fudenberg and Imhof 2006). The population thus moves between states of a single type, and a type's share of time is the
stationary distribution of that small Markov chain. Groups are drawn from the population without replacement.

Payoffs of pairs of types are an array of shape ``(types, types, players)``: the payoff of a player of the first type in
a group with as many others of its type as the last index, and the rest of the second type.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import logsumexp
from scipy.stats import hypergeom

from labmates.errors import UsageError
from labmates.stats.metagame import Array

Process = Literal["pairwise", "moran"]

ALPHA_RANK_POPULATION, ALPHA = 50, 1e6
"""Population of alpha-rank, and the selection strength, on payoffs scaled to 0 to 1, that approximates infinity."""
_MOST_POPULATION = 100_000


def population_payoffs(pairs: Array, population: int) -> Array:
    """Expected payoffs in populations of two types.

    Returns
    -------
    payoffs
        Of the first type when 1, 2, … ``population - 1`` members have it and all others the second type; shape
        ``(types, types, population - 1)``.

    Raises
    ------
    UsageError
        If the population is smaller than a group, or larger than 100,000.
    """
    players = pairs.shape[2]
    if not max(2, players) <= population <= _MOST_POPULATION:
        raise UsageError(f"population: from {max(2, players)} to {_MOST_POPULATION} for groups of {players}")
    others = np.arange(population - 1)[:, None]
    chances = hypergeom.pmf(np.arange(players), population - 1, others, players - 1)
    return np.asarray(pairs @ chances.T)


def log_fixation(pairs: Array, population: int, strength: float, process: Process = "pairwise") -> Array:
    """The logarithm of each fixation probability: that of a single mutant's takeover of a population.

    Parameters
    ----------
    pairs
        Payoffs of pairs of types.
    strength
        Selection strength: β of the Fermi rule 1/(1 + exp(-β(π' - π))) of a pairwise comparison (Traulsen, Nowak and
        Pacheco 2006), or the weight w of the payoff in the fitness 1 - w + wπ of a Moran process (Nowak et al. 2004).

    Returns
    -------
    logarithms
        Shape ``(types, types)``: residents in rows, mutants in columns. The diagonal is for a neutral mutant.

    Raises
    ------
    UsageError
        If the population or the strength is out of bounds, or a fitness is not positive.
    """
    own = population_payoffs(pairs, population)
    others = own.swapaxes(0, 1)[:, :, ::-1]
    if not 0 <= strength < np.inf:
        raise UsageError(f"strength: at least 0 and finite, not {strength:g}")
    if process == "pairwise":
        steps = strength * (others - own)
    else:
        fitness, others_fitness = (1 - strength + strength * payoffs for payoffs in (own, others))
        if strength > 1 or fitness.min() <= 0:
            raise UsageError(f"strength: {strength:g} makes a fitness 1 - w + wπ of zero or less (try a smaller one)")
        steps = np.log(others_fitness) - np.log(fitness)
    sums = np.concatenate([np.zeros((*steps.shape[:2], 1)), np.cumsum(steps, axis=2)], axis=2)
    return np.asarray(-logsumexp(sums, axis=2).T)


def stationary_distribution(log_rates: Array) -> Array:
    """The stationary distribution of a Markov chain, exact for rates of any size.

    Elimination without subtractions (Grassmann, Taksar and Heyman 1985), in logarithms, since strong selection leads to
    rates outside the range of floats.

    Parameters
    ----------
    log_rates
        Logarithms of the rates from rows to columns, up to a common factor; the diagonal is ignored.
    """
    rates = np.array(log_rates, dtype=float)
    for state in range(len(rates) - 1, 0, -1):
        rates[:state, state] -= logsumexp(rates[state, :state])
        through = rates[:state, state, None] + rates[state, None, :state]
        rates[:state, :state] = np.logaddexp(rates[:state, :state], through)
    logs = np.zeros(len(rates))
    for state in range(1, len(rates)):
        logs[state] = logsumexp(logs[:state] + rates[:state, state])
    return np.asarray(np.exp(logs - logsumexp(logs)))


def drift(pairs: Array, population: int) -> Array:
    """The payoff advantage of mutants (columns) over residents (rows), summed over all compositions of a population."""
    own = population_payoffs(pairs, population)
    return np.asarray((own.swapaxes(0, 1)[:, :, ::-1] - own).sum(axis=2))


def alpha_rank(pairs: Array, tied: Array | None = None) -> Array:
    """The alpha-rank of types in one population: their shares of time under infinitely strong selection.

    Source: Omidshafiei et al. 2019, "α-Rank: multi-agent evaluation by evolution", with a single population.

    Parameters
    ----------
    pairs
        Payoffs of pairs of types.
    tied
        Whether two types count as equally fit, shape ``(types, types)``, since infinite strength would turn any noise
        between them into certainty; by default none do.
    """
    width = float(np.ptp(pairs))
    scaled = (pairs - pairs.min()) / width if width else np.zeros_like(pairs)
    population = max(ALPHA_RANK_POPULATION, pairs.shape[2])
    rates = log_fixation(scaled, population, ALPHA)
    return stationary_distribution(rates if tied is None else np.where(tied, -np.log(population), rates))
