"""Cultural evolution of genes (a strategy's author and attitude), generation by generation.

All randomness of a generation derives from the run's seed and the generation's number. So the same seed gives the same
evolution for any number of processes, and the agents' strategies suffice to continue it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates.util.seeds import derive
from labmates_populations.condition import EvolutionCondition
from labmates_populations.engine.attitudes import falls_back_to_cooperation
from labmates_populations.engine.library import Gene, Population
from labmates_populations.engine.structure import make_structure
from labmates_populations.engine.workers import Batch, Cost, Errors, Result, chunks, merged, total_costs
from labmates_populations.repeated import RepeatedGame

PlayBatches = Callable[[Sequence[Batch]], list[Result]]
State = tuple[int, NDArray[np.int64], frozenset[int]]
"""A generation to be played: its number, the index of each agent's strategy, and the strategies that are not run."""


@dataclass(frozen=True)
class Generation:
    """The results of a generation.

    Attributes
    ----------
    agents
        Index of each agent's strategy.
    payoffs
        Mean payoff per round of each agent.
    cooperation
        Proportion of cooperative decisions.
    errors
        Failures of strategies, by index.
    broken
        Strategies that were not run, since an earlier generation stopped them.
    """

    number: int
    agents: NDArray[np.int64]
    payoffs: NDArray[np.float64]
    cooperation: float
    errors: Mapping[int, Errors] = field(default_factory=dict)
    costs: Mapping[str, Cost] = field(default_factory=dict)
    broken: frozenset[int] = frozenset()


class Evolution:
    """An evolution and the participating strategies.

    With the protocol ``paper``, the best agents keep gene and strategy, all others copy genes in proportion to payoff
    (section 6.1); with ``imitation``, each agent compares itself with another one and copies its gene according to the
    Fermi rule; with ``moran``, parents are drawn in proportion to fitness, and each child replaces another agent.

    Parameters
    ----------
    play
        Plays batches of games.
    seed
        Of all randomness, the structure of the population included.
    """

    def __init__(self, condition: EvolutionCondition, population: Population, play: PlayBatches, *, seed: int) -> None:
        assert condition.mutation is not None
        self.game = condition.make_game()
        self._rules, self._mutation = condition, condition.mutation
        self._structure = make_structure(
            condition.structure, condition.population, condition.degree, condition.group_size, seed
        )
        self.genes = sorted(population.genes, key=str)
        self._population = population
        self._play = play
        self._seed = seed
        members = [population.genes[gene] for gene in self.genes]
        self._members = np.concatenate([np.array(strategies, dtype=np.int64) for strategies in members])
        self._sizes = np.array([len(strategies) for strategies in members])
        self._gene_of = np.zeros(self._members.max() + 1, np.int64)
        self._gene_of[self._members] = np.repeat(np.arange(len(members)), self._sizes)
        self._places = {gene: place for place, gene in enumerate(self.genes)}

    def first(self) -> NDArray[np.int64]:
        """The agents of generation 0: genes in numbers as equal as possible."""
        chance = self._chance("first")
        genes = np.arange(self._rules.population) % len(self.genes)
        # On a graph, the order of agents matters.
        return self._drawn(genes if self._structure is None else chance.permutation(genes), chance)

    def genes_of(self, agents: NDArray[np.int64]) -> NDArray[np.int64]:
        """The index of each agent's gene in `genes`."""
        return np.asarray(self._gene_of[agents])

    def shares(self, agents: NDArray[np.int64]) -> dict[str, float]:
        """The share of each gene among the agents."""
        counts = np.bincount(self.genes_of(agents), minlength=len(self.genes)) / len(agents)
        return {str(gene): float(share) for gene, share in zip(self.genes, counts, strict=True)}

    def generations(self, state: State) -> Iterator[Generation]:
        """Play generation after generation."""
        while True:
            generation = self.played(*state)
            yield generation
            state = self.after(generation)

    def after(self, generation: Generation) -> State:
        """The next generation, without the strategies that this one stopped."""
        stopped = {index for index, error in generation.errors.items() if error.stopped}
        return generation.number + 1, self.next(generation), generation.broken | stopped

    def played(self, number: int, agents: NDArray[np.int64], broken: frozenset[int]) -> Generation:
        """Play a generation's games, with new random groups for each game."""
        seats, batch = self.games(number, agents, broken)
        results = self._play(list(chunks(batch)))
        earned = np.concatenate([self.game.counted(result.actions).mean(axis=1) for result in results])
        games = np.bincount(seats.reshape(-1))
        payoffs = np.bincount(seats.reshape(-1), weights=earned.reshape(-1)) / games
        cooperated = sum(int(self.game.cooperates(result.actions).sum()) for result in results)
        cooperation = cooperated / (seats.size * self.game.n_rounds)
        return Generation(number, agents, payoffs, cooperation, merged(results), total_costs(results), broken)

    def games(self, number: int, agents: NDArray[np.int64], broken: frozenset[int]) -> tuple[NDArray[np.int64], Batch]:
        """The games of a generation: the agent on each seat, ``(groups, players)``, and the batch."""
        seats = self._groups(len(agents), self._chance("groups", number))
        seed = derive(self._seed, "play", number, self._population.digest)
        cooperate = self._population.cooperate & {*np.unique(agents).tolist()}
        return seats, Batch(self.game, agents[seats], seed, cooperate=frozenset(cooperate), broken=broken)

    def _groups(self, agents: int, chance: np.random.Generator) -> NDArray[np.int64]:
        """The groups of a generation, ``(groups, players)``."""
        size, structure = self.game.n_players, self._structure
        if structure is None:
            drawn = [chance.permutation(agents).reshape(-1, size) for _ in range(self._rules.games)]
        else:
            drawn = [structure.groups(size, chance) for _ in range(self._rules.games)]
        return np.concatenate(drawn)

    def next(self, generation: Generation) -> NDArray[np.int64]:
        """The agents of the next generation."""
        chance = self._chance("next", generation.number)
        steps = {"paper": self._copied, "imitation": self._imitated, "moran": self._born}
        return steps[self._rules.protocol](generation, chance)

    def _copied(self, generation: Generation, chance: np.random.Generator) -> NDArray[np.int64]:
        rules, payoffs, agents = self._rules, generation.payoffs, generation.agents
        # Ties are broken at random: the order of agents has no meaning.
        order = np.lexsort((chance.random(len(agents)), -payoffs))
        # With negative payoffs, weights are relative to the minimum.
        lead = payoffs - min(0.0, self.game.individual_bounds()[0], payoffs.min())
        weights = lead / lead.sum() if lead.sum() > 0 else None
        genes = self.genes_of(agents)[chance.choice(len(agents), size=len(agents), p=weights)]
        for place in np.flatnonzero(chance.random(len(agents)) < self._mutation):
            old, model = int(genes[place]), chance.integers(2) == 0
            # With a single model or attitude, the other locus changes.
            genes[place] = self._mutated(old, model if self._others(old, model) else not model, chance)
        new = self._drawn(genes, chance)
        best = order[: rules.elite]
        new[best] = agents[best]
        return new

    def _imitated(self, generation: Generation, chance: np.random.Generator) -> NDArray[np.int64]:
        agents, fitness = generation.agents, self._scaled(generation.payoffs)
        count = len(agents)
        updated = np.full(count, self._rules.updates is None)
        if self._rules.updates is not None:
            updated[chance.choice(count, size=self._rules.updates, replace=False)] = True
        others = self._others_of(np.arange(count), chance)
        genes = self.genes_of(agents)
        lead = fitness[others] - fitness
        if self._rules.switching_cost:
            models = np.array([gene.model for gene in self.genes])[genes]
            lead -= self._rules.switching_cost * (models[others] != models)
        with np.errstate(over="ignore"):  # the result is then a probability of 0
            likely = 1 / (1 + np.exp(-self._rules.strength * lead))
        copies = (chance.random(count) < likely) & updated
        genes[copies] = genes[others][copies]
        # A copier of its own gene keeps its strategy, as in the published program.
        return self._replaced(agents, genes, np.zeros(count, bool), updated, chance)

    def _born(self, generation: Generation, chance: np.random.Generator) -> NDArray[np.int64]:
        rules, agents = self._rules, generation.agents
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
        """Payoffs scaled to 0 to 1 by the game's bounds, so selection strength is comparable across games."""
        low, high = self.game.individual_bounds()
        return np.asarray((payoffs - low) / (high - low))

    def _others_of(self, agents: NDArray[np.int64], chance: np.random.Generator) -> NDArray[np.int64]:
        """A random other agent for each of these: a neighbour, if there is a graph."""
        if self._structure is not None:
            return self._structure.neighbour(agents, chance)
        count = self._rules.population
        return np.asarray((agents + chance.integers(1, count, size=len(agents))) % count)

    def _replaced(
        self,
        agents: NDArray[np.int64],
        genes: NDArray[np.int64],
        anew: NDArray[np.bool_],
        mutable: NDArray[np.bool_],
        chance: np.random.Generator,
    ) -> NDArray[np.int64]:
        """Agents after mutation where `mutable`; agents with a new gene, or `anew`, draw a new strategy."""
        for locus in (True, False):
            for place in np.flatnonzero((chance.random(len(agents)) < self._mutation) & mutable):
                genes[place] = self._mutated(int(genes[place]), locus, chance)
        new = self._drawn(genes, chance)
        unchanged = (genes == self.genes_of(agents)) & ~anew
        new[unchanged] = agents[unchanged]
        return new

    def _mutated(self, gene: int, model: bool, chance: np.random.Generator) -> int:
        """A gene with another model or another attitude, if there is one with strategies."""
        others = self._others(gene, model)
        return self._places[others[chance.integers(len(others))]] if others else gene

    def _others(self, gene: int, model: bool) -> list[Gene]:
        """The genes that differ only in the model, or only in the attitude."""
        old = self.genes[gene]
        if model:
            return [gene for gene in self.genes if gene.attitude == old.attitude and gene != old]
        others = [gene for gene in self.genes if gene.model == old.model and gene != old]
        if self._rules.mutates_to == "any":
            return others
        base = falls_back_to_cooperation(old.attitude)
        return [gene for gene in others if falls_back_to_cooperation(gene.attitude) != base]

    def _drawn(self, genes: NDArray[np.int64], chance: np.random.Generator) -> NDArray[np.int64]:
        """A random strategy of each gene, with equal probabilities."""
        places = (chance.random(len(genes)) * self._sizes[genes]).astype(np.int64)
        starts = np.cumsum(self._sizes) - self._sizes
        return np.asarray(self._members[starts[genes] + places])

    def _chance(self, *path: str | int) -> np.random.Generator:
        return np.random.default_rng(derive(self._seed, "evolution", *path))


def invasion(
    game: RepeatedGame,
    population: Population,
    play: PlayBatches,
    resident: Gene,
    invader: Gene,
    *,
    samples: int,
    seed: int,
) -> dict[str, Any]:
    """Compare the payoff of one invader in a large population of residents with theirs; a table row.

    A gene invades if one invader earns more than residents among residents, by at least two standard errors of the
    difference. With few invaders, residents meet only residents, and so does an invader; `samples` groups of each kind
    are played.
    """
    chance = np.random.default_rng(derive(seed, "invasion", str(resident), str(invader)))
    residents = np.array(population.genes[resident])
    groups = residents[chance.integers(len(residents), size=(2 * samples, game.n_players))]
    invaders = np.array(population.genes[invader])
    groups[samples:, 0] = invaders[chance.integers(len(invaders), size=samples)]
    batch = Batch(game, groups, derive(seed, "play", population.digest), cooperate=population.cooperate)
    results = play(list(chunks(batch)))
    actions = np.concatenate([result.actions for result in results])
    errors = sum(error.count for result in results for error in result.errors.values())
    earned = game.counted(actions).mean(axis=1)
    among, alone = earned[:samples].mean(axis=1), earned[samples:, 0]
    error = float(np.sqrt(among.var(ddof=1) / samples + alone.var(ddof=1) / samples))
    earned_by = {"resident_payoff": float(among.mean()), "invader_payoff": float(alone.mean())}
    invades = earned_by["invader_payoff"] - earned_by["resident_payoff"] > 2 * error
    names = {"resident": str(resident), "invader": str(invader)}
    return {**names, **earned_by, "standard_error": error, "errors": errors, "invades": invades}
