"""Self-play: welfare of groups that mix strategies of two attitudes, for each mixture (paper, section 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labmates.errors import UsageError
from labmates.util.seeds import derive
from labmates_populations.engine.evolution import PlayBatches
from labmates_populations.engine.library import Gene, Population
from labmates_populations.engine.workers import Batch, Errors, chunks, merged
from labmates_populations.repeated import RepeatedGame


@dataclass(frozen=True)
class Mixture:
    """Results of groups with a given number of selfish players.

    Attributes
    ----------
    groups
        Mean payoff per player and round of each group.
    cooperation
        Proportion of cooperative decisions.
    errors
        Failures of strategies, by index.
    """

    selfish: int
    groups: tuple[float, ...]
    cooperation: float
    errors: dict[int, Errors]


def mixtures(players: int, step: int | None = None) -> list[int]:
    """The analysed numbers of selfish players: from 0 to all, by default about 64 values."""
    by = step or max(1, players // 64)
    return sorted({*range(0, players + 1, by), players})


def mixture_games(
    game: RepeatedGame,
    population: Population,
    genes: tuple[Gene, Gene],
    selfish: int,
    *,
    samples: int,
    seed: int,
    broken: frozenset[int] = frozenset(),
) -> Batch:
    """The games of one mixture; each group is drawn without replacement.

    Parameters
    ----------
    genes
        Of the collective and of the selfish players; UsageError if one has too few strategies for a group.
    broken
        Strategies that are not run: they fall back in each round.
    """
    chance = np.random.default_rng(derive(seed, "mixture", selfish))
    counts = game.n_players - selfish, selfish
    for gene, count in zip(genes, counts, strict=True):
        if count > len(population.genes[gene]):
            has = len(population.genes[gene])
            raise UsageError(f"{gene} has {has} strategies; a group of {game.n_players} needs {count} of them")
    members = [np.array(population.genes[gene]) for gene in genes]
    groups = np.array(
        [
            np.concatenate(
                [chance.choice(m, size=count, replace=False) for m, count in zip(members, counts, strict=True)]
            )
            for _ in range(samples)
        ]
    )
    return Batch(game, groups, derive(seed, "play", selfish), cooperate=population.cooperate, broken=broken)


def play_mixture(batch: Batch, play: PlayBatches, selfish: int) -> Mixture:
    """Play the games of one mixture."""
    results = play(list(chunks(batch)))
    actions = np.concatenate([result.actions for result in results])
    welfare = batch.game.counted(actions).mean(axis=(1, 2))
    return Mixture(selfish, tuple(map(float, welfare)), float(batch.game.cooperates(actions).mean()), merged(results))


def select_genes(population: Population, attitudes: tuple[str, str]) -> tuple[Gene, Gene]:
    """The genes of a self-play with these attitudes.

    Raises
    ------
    UsageError
        If there are several models, or not exactly one set of strategies for each attitude.
    """
    known = sorted({gene.model for gene in population.genes})
    if len(known) != 1:
        raise UsageError(f"self-play needs the strategies of one model; choose one of: {', '.join(known)}")
    return _only(population, attitudes[0]), _only(population, attitudes[1])


def _only(population: Population, name: str) -> Gene:
    """The gene with an attitude, or with an attitude and a variant."""
    found = [gene for gene in population.genes if name in (gene.attitude, gene.set_name)]
    if not found:
        raise UsageError(f"there are no strategies with the attitude '{name}'")
    if len(found) > 1:
        sets = " or ".join(f"'{gene.set_name}'" for gene in found)
        raise UsageError(f"strategies with the attitude '{name}' form several sets: choose one, {sets}")
    return found[0]
