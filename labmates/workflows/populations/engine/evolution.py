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
from labmates.workflows.populations.engine.attitudes import falls_back_to_cooperation
from labmates.workflows.populations.engine.library import Gene, Population
from labmates.workflows.populations.engine.match_ups import merged
from labmates.workflows.populations.engine.structure import Structure
from labmates.workflows.populations.engine.workers import Batch, Errors, Result, chunks

PlayBatches = Callable[[Sequence[Batch]], list[Result]]


@dataclass(frozen=True)
class Rules:
    """Rules of an evolution.

    Attributes
    ----------
    protocol
        ``paper``: the best keep what they have, all others copy genes in proportion to payoff (section 6.1).
        ``imitation``: everybody looks at one other and copies its gene with the probability of the Fermi rule.
        ``moran``: agents are chosen in proportion to fitness, and the child of each replaces another agent.
    population
        Number of agents.
    games
        Games that each agent plays in a generation, or that are played around each agent of a `structure`.
    elite
        Agents that keep gene and strategy (``paper``).
    mutation
        Probability that a copied gene changes in one locus (``paper``), or of a change in each locus (else).
    strength
        Selection strength on payoffs scaled to 0 to 1: of the Fermi rule, or the payoff's weight w in the fitness
        1 - w + wπ (``moran``).
    updates
        Agents that look at another one (``imitation``) or have a child (``moran``) in a generation; None for all.
    structure
        Who meets and imitates whom; None if anybody meets anybody.
    switching_cost
        Payoff, scaled to 0 to 1, by which an agent of another model has to do better to be as attractive
        (``imitation``).
    to_other_base
        Whether an attitude mutates to those alone that wish well to others if it does not, and the reverse.
    """

    game: RepeatedGame
    protocol: str
    population: int
    games: int
    elite: int
    mutation: float
    strength: float
    updates: int | None = None
    structure: Structure | None = None
    switching_cost: float = 0.0
    to_other_base: bool = False


@dataclass(frozen=True)
class Generation:
    """The results of a generation.

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
        members = [population.genes[gene] for gene in self.genes]
        self._members = np.concatenate([np.array(one, dtype=np.int64) for one in members])
        self._sizes = np.array([len(one) for one in members])
        self._gene_of = np.zeros(self._members.max() + 1, np.int64)
        self._gene_of[self._members] = np.repeat(np.arange(len(members)), self._sizes)
        self._places = {gene: place for place, gene in enumerate(self.genes)}

    def first(self) -> NDArray[np.int64]:
        """The agents of generation 0: genes in equal numbers, as far as that goes."""
        chance = self._chance("first")
        genes = np.arange(self.rules.population) % len(self.genes)
        # On a graph, places have a meaning.
        return self._drawn(genes if self.rules.structure is None else chance.permutation(genes), chance)

    def genes_of(self, agents: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of each agent's gene among `genes`."""
        return np.asarray(self._gene_of[agents])

    def shares(self, agents: NDArray[np.int64]) -> dict[str, float]:
        """The share of each gene among the agents."""
        counts = np.bincount(self.genes_of(agents), minlength=len(self.genes)) / len(agents)
        return {str(gene): float(share) for gene, share in zip(self.genes, counts, strict=True)}

    def played(self, number: int, agents: NDArray[np.int64], broken: frozenset[int]) -> Generation:
        """Play a generation's games, in new random groups for each."""
        rules = self.rules
        seats, batch = self.games(number, agents, broken)
        results = self._play(list(chunks(batch)))
        earned = np.concatenate([rules.game.counted(result.actions).mean(axis=1) for result in results])
        games = np.bincount(seats.reshape(-1))
        payoffs = np.bincount(seats.reshape(-1), weights=earned.reshape(-1)) / games
        cooperated = sum(int(rules.game.cooperates(result.actions).sum()) for result in results)
        return Generation(number, agents, payoffs, cooperated / (seats.size * rules.game.n_rounds), merged(results))

    def games(self, number: int, agents: NDArray[np.int64], broken: frozenset[int]) -> tuple[NDArray[np.int64], Batch]:
        """The games of a generation: the agent on each seat, ``(groups, players)``, and the batch."""
        seats = self._groups(len(agents), self._chance("groups", number))
        seed = derive(self._seed, "play", number)
        cooperate = self._population.cooperate & {*np.unique(agents).tolist()}
        return seats, Batch(self.rules.game, agents[seats], seed, cooperate=frozenset(cooperate), broken=broken)

    def _groups(self, agents: int, chance: np.random.Generator) -> NDArray[np.int64]:
        """The groups of a generation, ``(groups, players)``."""
        size, structure = self.rules.game.n_players, self.rules.structure
        if structure is None:
            drawn = [chance.permutation(agents).reshape(-1, size) for _ in range(self.rules.games)]
        else:
            drawn = [structure.groups(size, chance) for _ in range(self.rules.games)]
        return np.concatenate(drawn)

    def next(self, generation: Generation) -> NDArray[np.int64]:
        """The agents of the next generation."""
        chance = self._chance("next", generation.number)
        steps = {"paper": self._copied, "imitation": self._imitated, "moran": self._born}
        return steps[self.rules.protocol](generation, chance)

    def _copied(self, generation: Generation, chance: np.random.Generator) -> NDArray[np.int64]:
        rules, payoffs, agents = self.rules, generation.payoffs, generation.agents
        # Ties are broken at random: the order of agents means nothing.
        order = np.lexsort((chance.random(len(agents)), -payoffs))
        # In games with negative payoffs, what counts is the lead over the least.
        lead = payoffs - min(0.0, self.rules.game.individual_bounds()[0], payoffs.min())
        weights = lead / lead.sum() if lead.sum() > 0 else None
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
        agents, fitness = generation.agents, self._scaled(generation.payoffs)
        count = len(agents)
        updated = np.full(count, self.rules.updates is None)
        if self.rules.updates is not None:
            updated[chance.choice(count, size=self.rules.updates, replace=False)] = True
        others = self._others_of(np.arange(count), chance)
        genes = self.genes_of(agents)
        lead = fitness[others] - fitness
        if self.rules.switching_cost:
            models = np.array([gene.model for gene in self.genes])[genes]
            lead -= self.rules.switching_cost * (models[others] != models)
        with np.errstate(over="ignore"):  # the result is then a probability of 0
            likely = 1 / (1 + np.exp(-self.rules.strength * lead))
        copies = (chance.random(count) < likely) & updated
        genes[copies] = genes[others][copies]
        return self._replaced(agents, genes, copies, updated, chance)

    def _born(self, generation: Generation, chance: np.random.Generator) -> NDArray[np.int64]:
        rules, agents = self.rules, generation.agents
        fitness = np.maximum(1 - rules.strength + rules.strength * self._scaled(generation.payoffs), 0)
        weights = fitness / fitness.sum() if fitness.any() else None
        parents = chance.choice(len(agents), size=rules.updates or len(agents), p=weights)
        places = self._others_of(parents, chance)
        genes = self.genes_of(agents)
        genes[places] = genes[parents]
        born = np.zeros(len(agents), bool)
        born[places] = True
        return self._replaced(agents, genes, born, born, chance)

    def _scaled(self, payoffs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Payoffs from 0 to 1, whatever the game pays, so that a strength of selection means the same."""
        low, high = self.rules.game.individual_bounds()
        return np.asarray((payoffs - low) / (high - low))

    def _others_of(self, agents: NDArray[np.int64], chance: np.random.Generator) -> NDArray[np.int64]:
        """Another agent for each of these: any, or a neighbour."""
        if self.rules.structure is not None:
            return self.rules.structure.neighbour(agents, chance)
        count = self.rules.population
        return np.asarray((agents + chance.integers(1, count, size=len(agents))) % count)

    def _replaced(
        self,
        agents: NDArray[np.int64],
        genes: NDArray[np.int64],
        anew: NDArray[np.bool_],
        mutable: NDArray[np.bool_],
        chance: np.random.Generator,
    ) -> NDArray[np.int64]:
        """Agents whose genes have mutated where `mutable`; those with another gene, or `anew`, draw a strategy."""
        for locus in (True, False):
            for place in np.flatnonzero((chance.random(len(agents)) < self.rules.mutation) & mutable):
                genes[place] = self._mutated(int(genes[place]), locus, chance)
        new = self._drawn(genes, chance)
        kept = (genes == self.genes_of(agents)) & ~anew
        new[kept] = agents[kept]
        return new

    def _mutated(self, gene: int, model: bool, chance: np.random.Generator) -> int:
        """A gene with another model, or another attitude, among those that have strategies."""
        others = self._others(gene, model)
        return self._places[others[chance.integers(len(others))]] if others else gene

    def _others(self, gene: int, model: bool) -> list[Gene]:
        """The genes that differ from one in the model alone, or in the attitude alone."""
        old = self.genes[gene]
        if model:
            return [one for one in self.genes if one.attitude == old.attitude and one != old]
        others = [one for one in self.genes if one.model == old.model and one != old]
        if not self.rules.to_other_base:
            return others
        base = falls_back_to_cooperation(old.attitude)
        return [one for one in others if falls_back_to_cooperation(one.attitude) != base]

    def _drawn(self, genes: NDArray[np.int64], chance: np.random.Generator) -> NDArray[np.int64]:
        """A strategy of each gene, each as likely."""
        places = (chance.random(len(genes)) * self._sizes[genes]).astype(np.int64)
        starts = np.cumsum(self._sizes) - self._sizes
        return np.asarray(self._members[starts[genes] + places])

    def _chance(self, *path: str | int) -> np.random.Generator:
        return np.random.default_rng(derive(self._seed, "evolution", *path))


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
    earned = game.counted(actions).mean(axis=1)
    among, alone = earned[:samples].mean(axis=1), earned[samples:, 0]
    error = float(np.sqrt(among.var(ddof=1) / samples + alone.var(ddof=1) / samples))
    return Invasion(resident, invader, float(among.mean()), float(alone.mean()), error, errors)
