"""Self-play: welfare of groups that mix strategies of two attitudes, for each mixture (paper, section 5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from labmates.errors import UsageError
from labmates.records.events import PayoffEvent
from labmates.stats.domains import Domain
from labmates.stats.intervals import mean
from labmates.util.seeds import derive
from labmates.workflows.protocol.experiment import Outcome
from labmates.workflows.protocol.services import Services
from labmates_populations.condition import SelfplayCondition
from labmates_populations.engine.library import Gene, Population, only_gene
from labmates_populations.engine.workers import Batch, Errors, chunks, merged
from labmates_populations.playing import Arena, invalid_strategies, open_arena


async def play(condition: SelfplayCondition, services: Services) -> Outcome:
    """Play one mixture after the other, except those in the record."""
    size, recorder = condition.group_size, services.recorder
    step = condition.step or max(1, size // 64)
    played: list[PayoffEvent] = []
    async with open_arena(condition, services) as arena:
        for selfish in sorted({*range(0, size + 1, step), size}):
            recorded = recorder.done("payoff", f"mixture/{selfish}")
            if isinstance(recorded, PayoffEvent):
                played.append(recorded)
                continue
            event, errors = await asyncio.to_thread(_played, arena, selfish, played)
            arena.warn_of_errors(errors)
            recorder.emit(event)
            await recorder.flush()
            played.append(event)
    return _outcome(condition, played)


def _played(
    arena: Arena[SelfplayCondition], selfish: int, earlier: Sequence[PayoffEvent]
) -> tuple[PayoffEvent, dict[int, Errors]]:
    """Play the games of a mixture; its record, and the errors of strategies."""
    batch = games_of(arena.condition, arena.population, arena.services.seed, selfish, earlier)
    results = arena.play(list(chunks(batch)))
    errors = merged(results)
    actions = np.concatenate([result.actions for result in results])
    welfare = mean(batch.game.counted(actions).mean(axis=(1, 2)).tolist(), Domain(*batch.game.bounds()))
    details = {
        "selfish": selfish,
        **{name: getattr(welfare, name) for name in ("low", "high", "n", "df", "method", "reason")},
        "cooperation": float(batch.game.cooperates(actions).mean()),
        "errors": sum(error.count for error in errors.values()),
        "model": select_genes(arena.population, arena.condition.chosen[1])[0].model,
    }
    if stopped := [index for index, error in errors.items() if error.stopped]:
        details["stopped"] = sorted(stopped)
    step = f"mixture/{selfish}"
    return PayoffEvent(step=step, match=step, payoffs={"welfare": welfare.value}, details=details), errors


def games_of(
    condition: SelfplayCondition, population: Population, seed: int, selfish: int, earlier: Sequence[PayoffEvent]
) -> Batch:
    """The games of one mixture, without the strategies stopped in `earlier` mixtures.

    Each group is drawn without replacement; UsageError if an attitude has too few strategies for it.
    """
    game, chance = condition.make_game(), np.random.default_rng(derive(seed, "mixture", selfish))
    drawn = []
    for gene, count in zip(
        select_genes(population, condition.chosen[1]), (game.n_players - selfish, selfish), strict=True
    ):
        members = np.array(population.genes[gene])
        if count > len(members):
            text = f"{gene} has {len(members)} strategies; a group of {game.n_players} needs {count} of them"
            raise UsageError(text)
        drawn.append((members, count))
    groups = np.array(
        [
            np.concatenate([chance.choice(members, size=count, replace=False) for members, count in drawn])
            for _ in range(condition.samples)
        ]
    )
    broken = frozenset(number for event in earlier for number in event.details.get("stopped", ()))
    played = derive(seed, "play", selfish, population.digest)
    return Batch(game, groups, played, cooperate=population.cooperate, broken=broken)


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
    return only_gene(population.genes, attitudes[0]), only_gene(population.genes, attitudes[1])


def _outcome(condition: SelfplayCondition, events: Sequence[PayoffEvent]) -> Outcome:
    """The outcome of a self-play with all mixtures played."""
    game = condition.make_game()
    means = [event.payoffs["welfare"] for event in events]
    decisions = len(events) * condition.samples * condition.group_size * condition.rounds
    ends = {"collective": means[0], "selfish": means[-1], "": sum(means) / len(means)}
    metrics = {f"welfare_{name}".rstrip("_"): value for name, value in ends.items()}
    metrics |= {f"efficiency_{name}".rstrip("_"): game.efficiency(value) for name, value in ends.items()}
    metrics["cooperation"] = sum(event.details["cooperation"] for event in events) / len(events)
    metrics["error_rate"] = sum(event.details["errors"] for event in events) / decisions
    return Outcome("completed", metrics, invalid_strategies(metrics))
