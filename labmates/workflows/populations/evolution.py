"""One evolution, from its condition to its metrics.

Each generation is recorded, and now and then the agents' strategies, from where a run that was taken up again goes on:
what lies between is played once more, and comes out the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labmates.records.events import PayoffEvent
from labmates.workflows.experiment import Outcome
from labmates.workflows.populations.condition import EvolutionCondition
from labmates.workflows.populations.engine.attitudes import falls_back_to_cooperation
from labmates.workflows.populations.engine.evolution import Evolution, Generation, Rules
from labmates.workflows.populations.playing import blocking, invalid_strategies, open_strategies, warn_of_errors
from labmates.workflows.services import Services

_KEEP_EACH = 10
"""Generations between those of which all agents are recorded."""
_FLUSH_SECONDS = 1.0


async def execute(condition: EvolutionCondition, services: Services) -> Outcome:
    """Let a population evolve.

    Raises
    ------
    UsageError
        If the strategies are not there.
    StoppedError
        If the run is to stop; it can be gone on with.
    """
    strategies = await open_strategies(services, condition, condition.model_names, condition.attitudes)
    evolution = Evolution(_rules(condition), strategies.population, blocking(services, strategies), seed=services.seed)
    assert condition.generations is not None
    number, agents, broken = _taken_up(services, evolution)
    flushed = -_FLUSH_SECONDS
    while True:
        generation = await asyncio.to_thread(evolution.played, number, agents, broken)
        warn_of_errors(services, strategies, generation.errors)
        services.recorder.once(_event(evolution, generation, broken))
        ends = condition.protocol == "paper" and max(evolution.shares(agents).values()) >= condition.threshold
        if ends or number + 1 >= condition.generations:
            break
        if time.monotonic() - flushed > _FLUSH_SECONDS:
            await services.recorder.flush()
            flushed = time.monotonic()
        broken |= {index for index, error in generation.errors.items() if error.stopped}
        agents = await asyncio.to_thread(evolution.next, generation)
        number += 1
    metrics = _metrics(condition, _generations(services))
    return Outcome("completed", metrics, invalid_strategies(metrics))


def _rules(condition: EvolutionCondition) -> Rules:
    assert condition.mutation is not None
    return Rules(
        game=condition.make_game(),
        protocol=condition.protocol,
        population=condition.population,
        games=condition.games,
        elite=condition.elite,
        mutation=condition.mutation,
        strength=condition.strength,
    )


def _taken_up(services: Services, evolution: Evolution) -> tuple[int, NDArray[np.int64], frozenset[int]]:
    """Return the newest generation of which all is recorded, its agents, and the strategies that are not run."""
    for event in reversed(_generations(services)):
        if "agents" in event.details:
            kept = np.array(event.details["agents"], dtype=np.int64)
            return event.round, kept, frozenset(event.details["broken"])
    return 0, evolution.first(), frozenset()


def _generations(services: Services) -> Sequence[PayoffEvent]:
    return [event for event in services.recorder.events if isinstance(event, PayoffEvent)]


def _event(evolution: Evolution, generation: Generation, broken: frozenset[int]) -> PayoffEvent:
    """Return the record of a generation: payoffs and shares of all genes."""
    places = evolution.genes_of(generation.agents)
    counts = np.bincount(places, minlength=len(evolution.genes))
    sums = np.bincount(places, weights=generation.payoffs, minlength=len(evolution.genes))
    payoffs = {str(gene): float(sums[at] / counts[at]) for at, gene in enumerate(evolution.genes) if counts[at]}
    details = {
        "shares": {gene: share for gene, share in evolution.shares(generation.agents).items() if share},
        "welfare": float(generation.payoffs.mean()),
        "cooperation": generation.cooperation,
        "errors": sum(error.count for error in generation.errors.values()),
    }
    if generation.number % _KEEP_EACH == 0:
        details |= {"agents": generation.agents.tolist(), "broken": sorted(broken)}
    number = generation.number
    return PayoffEvent(step=f"generation/{number}", round=number, payoffs=payoffs, details=details)


def _metrics(condition: EvolutionCondition, events: Sequence[PayoffEvent]) -> dict[str, float]:
    """Return the metrics: at the end (paper), or over the last generations (imitation)."""
    last = events[-condition.window :] if condition.protocol == "imitation" else events[-1:]
    shares: dict[str, float] = {}
    for event in last:
        for gene, share in event.details["shares"].items():
            shares[gene] = shares.get(gene, 0.0) + share
    # Divided in the end, so that a gene that always held all holds 1 exactly.
    shares = {gene: share / len(last) for gene, share in shares.items()}
    decisions = len(events) * condition.population * condition.games * condition.rounds
    welfare = sum(event.details["welfare"] for event in last) / len(last)
    selfish = [share for gene, share in shares.items() if not falls_back_to_cooperation(gene.rpartition("/")[2])]
    return {
        "generations": len(events),
        "threshold_reached": float(max(shares.values()) >= condition.threshold),
        "welfare_efficiency": condition.make_game().efficiency(welfare),
        "welfare": welfare,
        "cooperation": sum(event.details["cooperation"] for event in last) / len(last),
        "winner_share": max(shares.values()),
        "selfish_share": sum(selfish),
        "error_rate": sum(event.details["errors"] for event in events) / decisions,
    }
