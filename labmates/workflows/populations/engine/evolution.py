"""Cultural evolution of genes (who writes the strategies, with which attitude), a generation at a time.

Everything random in a generation derives from the run's seed and the generation's number, so that the same seed gives
the same evolution whatever the number of processes, and a state of which only the agents' strategies are kept can be
gone on with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from labmates.games.repeated import RepeatedGame
from labmates.seeds import derive
from labmates.workflows.populations.engine.library import Gene, Population
from labmates.workflows.populations.engine.workers import Batch, Errors, Result, chunks

PlayBatches = Callable[[Sequence[Batch]], list[Result]]


@dataclass(frozen=True)
class Rules:
    """How a population evolves.

    Attributes
    ----------
    protocol
        ``paper``: the best keep what they have, all others copy genes in proportion to payoff (section 6.1).
        ``imitation``: everybody looks at one other and copies its gene with the probability of the Fermi rule.
    population
        Number of agents.
    games
        Games that each agent plays in a generation.
    elite
        Agents that keep gene and strategy (``paper``).
    mutation
        Probability that a copied gene changes in one locus (``paper``), or of a change in each locus (``imitation``).
    strength
        Selection strength of the Fermi rule, on mean payoffs per round.
    """

    game: RepeatedGame
    protocol: str
    population: int
    games: int
    elite: int
    mutation: float
    strength: float


@dataclass(frozen=True)
class Generation:
    """What a generation did.

    Attributes
    ----------
    number
        From 0.
    agents
        The agents' strategies, by number.
    payoffs
        Mean payoff per round of each agent.
    cooperation
        Share of decisions for cooperation.
    errors
        What strategies did wrong, by their number.
    """

    number: int
    agents: NDArray[np.int64]
    payoffs: NDArray[np.float64]
    cooperation: float
    errors: Mapping[int, Errors]


class Evolution:
    """The rules of an evolution and the strategies that take part.

    Parameters
    ----------
    play
        Plays batches of games.
    """

    def __init__(self, rules: Rules, population: Population, play: PlayBatches, *, seed: int) -> None:
        self.rules = rules
        self.genes = sorted(population.genes, key=str)
        self._population = population
        self._play = play
        self._seed = seed
        self._members = [np.array(population.genes[gene], dtype=np.int64) for gene in self.genes]
        self._gene_of = {int(one): place for place, members in enumerate(self._members) for one in members}
        self._places = {gene: place for place, gene in enumerate(self.genes)}

    def first(self) -> NDArray[np.int64]:
        """Return the agents of generation 0: genes in equal numbers, as far as that goes."""
        chance = self._chance("first")
        return self._drawn(np.arange(self.rules.population) % len(self.genes), chance)

    def genes_of(self, agents: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the place of each agent's gene among `genes`."""
        return np.array([self._gene_of[int(one)] for one in agents])

    def shares(self, agents: NDArray[np.int64]) -> dict[str, float]:
        """Return the share of each gene among the agents."""
        counts = np.bincount(self.genes_of(agents), minlength=len(self.genes)) / len(agents)
        return {str(gene): float(share) for gene, share in zip(self.genes, counts, strict=True)}

    def played(self, number: int, agents: NDArray[np.int64], broken: frozenset[int]) -> Generation:
        """Let the agents play a generation's games, in groups that are drawn anew for each."""
        rules, size = self.rules, self.rules.game.n_players
        chance = self._chance("groups", number)
        seats = np.concatenate([chance.permutation(len(agents)) for _ in range(rules.games)]).reshape(-1, size)
        seed = derive(self._seed, "play", number)
        cooperate = self._population.cooperate & {int(one) for one in agents}
        batch = Batch(rules.game, agents[seats], seed, cooperate=frozenset(cooperate), broken=broken)
        results = self._play(list(chunks(batch)))
        actions = np.concatenate([result.actions for result in results])
        earned = rules.game.play(actions).mean(axis=1)
        payoffs = np.bincount(seats.reshape(-1), weights=earned.reshape(-1), minlength=len(agents)) / rules.games
        return Generation(number, agents, payoffs, float(actions.mean()), merged(results))

    def next(self, generation: Generation) -> NDArray[np.int64]:
        """Return the agents of the next generation."""
        chance = self._chance("next", generation.number)
        if self.rules.protocol == "paper":
            return self._copied(generation, chance)
        return self._imitated(generation, chance)

    def _copied(self, generation: Generation, chance: np.random.Generator) -> NDArray[np.int64]:
        rules, payoffs, agents = self.rules, generation.payoffs, generation.agents
        # Ties are broken at random: the order of agents means nothing.
        order = np.lexsort((chance.random(len(agents)), -payoffs))
        weights = payoffs / payoffs.sum() if payoffs.sum() > 0 else None
        genes = self.genes_of(agents)[chance.choice(len(agents), size=len(agents), p=weights)]
        for place in np.flatnonzero(chance.random(len(agents)) < rules.mutation):
            old, model = int(genes[place]), chance.integers(2) == 0
            # With one model alone, or one attitude, it is the other locus that changes.
            genes[place] = self._mutated(old, model if self._others(old, model) else not model, chance)
        new = self._drawn(genes, chance)
        kept = order[: rules.elite]
        new[kept] = agents[kept]
        return new

    def _imitated(self, generation: Generation, chance: np.random.Generator) -> NDArray[np.int64]:
        rules, payoffs, agents = self.rules, generation.payoffs, generation.agents
        count = len(agents)
        # The strength of selection is that on payoffs from 0 to 1, whatever the game pays.
        low, high = rules.game.individual_bounds()
        fitness = (payoffs - low) / (high - low)
        others = (np.arange(count) + chance.integers(1, count, size=count)) % count
        with np.errstate(over="ignore"):  # a probability of 0 is what is meant then
            likely = 1 / (1 + np.exp(-rules.strength * (fitness[others] - fitness)))
        copies = chance.random(count) < likely
        genes = self.genes_of(agents)
        before = genes.copy()
        genes[copies] = genes[others][copies]
        for locus in (True, False):
            for place in np.flatnonzero(chance.random(count) < rules.mutation):
                genes[place] = self._mutated(int(genes[place]), locus, chance)
        new = self._drawn(genes, chance)
        kept = (genes == before) & ~copies
        new[kept] = agents[kept]
        return new

    def _mutated(self, gene: int, model: bool, chance: np.random.Generator) -> int:
        """Return a gene with another model, or another attitude, among those that have strategies."""
        others = self._others(gene, model)
        return self._places[others[chance.integers(len(others))]] if others else gene

    def _others(self, gene: int, model: bool) -> list[Gene]:
        """Return the genes that differ from one in the model alone, or in the attitude alone."""
        old = self.genes[gene]
        if model:
            return [one for one in self.genes if one.attitude == old.attitude and one != old]
        return [one for one in self.genes if one.model == old.model and one != old]

    def _drawn(self, genes: NDArray[np.int64], chance: np.random.Generator) -> NDArray[np.int64]:
        """Return a strategy of each gene, each as likely."""
        sizes = np.array([len(members) for members in self._members])[genes]
        places = (chance.random(len(genes)) * sizes).astype(np.int64)
        return np.array([self._members[gene][place] for gene, place in zip(genes, places, strict=True)])

    def _chance(self, *path: str | int) -> np.random.Generator:
        return np.random.default_rng(derive(self._seed, "evolution", *path))


def merged(results: Sequence[Result]) -> dict[int, Errors]:
    """Return what strategies did wrong in several batches: how often in all, and what came first."""
    found: dict[int, Errors] = {}
    for result in results:
        for index, error in result.errors.items():
            before = found.get(index)
            found[index] = error if before is None else before.joined(error)
    return found


@dataclass(frozen=True)
class Invasion:
    """Whether a gene can invade another.

    Attributes
    ----------
    resident_payoff
        Mean payoff per round of a resident among residents.
    invader_payoff
        That of one invader in a group of residents.
    standard_error
        Of the difference.
    errors
        Decisions that strategies failed to make.
    """

    resident: Gene
    invader: Gene
    resident_payoff: float
    invader_payoff: float
    standard_error: float
    errors: int = 0

    @property
    def invades(self) -> bool:
        """Whether one invader does better than residents do among themselves, by two standard errors or more."""
        return self.invader_payoff - self.resident_payoff > 2 * self.standard_error

    def row(self) -> dict[str, object]:
        """It as a row of a table."""
        return {**asdict(self), "resident": str(self.resident), "invader": str(self.invader), "invades": self.invades}


def invasion(
    game: RepeatedGame,
    population: Population,
    play: PlayBatches,
    resident: Gene,
    invader: Gene,
    *,
    samples: int,
    seed: int,
) -> Invasion:
    """Whether one invader in a large population of residents does better than they do.

    In a large population with few invaders, residents meet residents, and an invader meets residents alone; so their
    payoffs are compared in such groups, `samples` of each kind.
    """
    chance = np.random.default_rng(derive(seed, "invasion", str(resident), str(invader)))
    residents = np.array(population.genes[resident])
    groups = residents[chance.integers(len(residents), size=(2 * samples, game.n_players))]
    invaders = np.array(population.genes[invader])
    groups[samples:, 0] = invaders[chance.integers(len(invaders), size=samples)]
    batch = Batch(game, groups, derive(seed, "play"), cooperate=population.cooperate)
    results = play(list(chunks(batch)))
    actions = np.concatenate([result.actions for result in results])
    errors = sum(one.count for result in results for one in result.errors.values())
    earned = game.play(actions).mean(axis=1)
    among, alone = earned[:samples].mean(axis=1), earned[samples:, 0]
    error = float(np.sqrt(among.var(ddof=1) / samples + alone.var(ddof=1) / samples))
    return Invasion(resident, invader, float(among.mean()), float(alone.mean()), error, errors)
