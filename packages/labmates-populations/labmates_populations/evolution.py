"""Evolution: a generation plays, then the agents of the next one take genes and strategies.

Each generation is recorded, every tenth one with its agents, and the last with its strategies by name. A resumed run
starts from the newest recorded agents and replays the generations since then, with equal results.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from labmates.records.events import PayoffEvent
from labmates.records.recorder import Recorder
from labmates.workflows.protocol.experiment import Outcome
from labmates.workflows.protocol.services import Services
from labmates_populations.condition import EvolutionCondition
from labmates_populations.engine.attitudes import falls_back_to_cooperation
from labmates_populations.engine.evolution import Evolution, Generation, State
from labmates_populations.engine.library import Gene
from labmates_populations.playing import invalid_strategies, open_arena

_RECORD_AGENTS_EVERY = 10
"""Generations."""
_FLUSH_SECONDS = 1.0


async def play(condition: EvolutionCondition, services: Services) -> Outcome:
    """Play generation after generation until the threshold (paper, moran) or the last one."""
    recorder, flushed = services.recorder, 0.0
    async with open_arena(condition, services) as arena:
        evolution = Evolution(condition, arena.population, arena.play, seed=services.seed)
        generations = evolution.generations(newest(evolution, _recorded(recorder)))
        is_last = False
        while not is_last:
            generation = await asyncio.to_thread(next, generations)
            arena.warn_of_errors(generation.errors)
            event = _event(evolution, generation)
            is_last = _is_last(condition, evolution, generation)
            if is_last:
                counts = Counter(arena.population.names[index] for index in generation.agents.tolist())
                event.details["strategies"] = dict(counts.most_common())
            recorder.once(event)
            if not is_last and time.monotonic() - flushed > _FLUSH_SECONDS:
                await recorder.flush()
                flushed = time.monotonic()
        metrics = _metrics(condition, _recorded(recorder), arena.population.genes)
    return Outcome("completed", metrics, invalid_strategies(metrics))


def _recorded(recorder: Recorder) -> list[PayoffEvent]:
    """The records of the generations so far."""
    return [event for event in recorder.events if isinstance(event, PayoffEvent)]


def newest(evolution: Evolution, events: Sequence[PayoffEvent]) -> State:
    """The newest generation with recorded agents, or the first."""
    for event in reversed(events):
        if "agents" in event.details:
            agents = np.array(event.details["agents"], dtype=np.int64)
            return event.round, agents, frozenset(event.details["broken"])
    return 0, evolution.first(), frozenset()


def _is_last(condition: EvolutionCondition, evolution: Evolution, generation: Generation) -> bool:
    """Whether the evolution ends: at the threshold (paper, moran) or at the last generation."""
    assert condition.generations is not None
    most = max(evolution.shares(generation.agents).values())
    has_won = condition.protocol != "imitation" and most >= condition.threshold
    return has_won or generation.number + 1 >= condition.generations


def _event(evolution: Evolution, generation: Generation) -> PayoffEvent:
    """The record of a generation: payoffs and shares of all genes."""
    genes = evolution.genes_of(generation.agents)
    counts = np.bincount(genes, minlength=len(evolution.genes))
    sums = np.bincount(genes, weights=generation.payoffs, minlength=len(evolution.genes))
    payoffs = {str(gene): float(sums[at] / counts[at]) for at, gene in enumerate(evolution.genes) if counts[at]}
    details = {
        "shares": {gene: share for gene, share in evolution.shares(generation.agents).items() if share},
        "welfare": float(generation.payoffs.mean()),
        "cooperation": generation.cooperation,
        "errors": sum(error.count for error in generation.errors.values()),
    }
    if generation.number % _RECORD_AGENTS_EVERY == 0:
        details |= {"agents": generation.agents.tolist(), "broken": sorted(generation.broken)}
    number = generation.number
    return PayoffEvent(step=f"generation/{number}", round=number, payoffs=payoffs, details=details)


def _metrics(condition: EvolutionCondition, events: Sequence[PayoffEvent], genes: Collection[Gene]) -> dict[str, float]:
    """The metrics: at the end (paper, moran), or over the last generations (imitation)."""
    last = events[-condition.window :] if condition.protocol == "imitation" else events[-1:]
    totals: Counter[str] = Counter()
    for event in last:
        totals.update(event.details["shares"])
    # Divided at the end, so that a gene with all agents throughout has the share 1 exactly.
    shares = {gene: total / len(last) for gene, total in totals.items()}
    decisions = len(events) * condition.decisions
    welfare = sum(event.details["welfare"] for event in last) / len(last)
    selfish = [shares.get(str(gene), 0.0) for gene in genes if not falls_back_to_cooperation(gene.attitude)]
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
