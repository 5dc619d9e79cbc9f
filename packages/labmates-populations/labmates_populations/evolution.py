"""Evolution as a graph: a generation plays, then the agents of the next one take genes and strategies.

Each generation is recorded, every tenth one with its agents, and the last with its strategies by name. A resumed run
starts from the newest recorded agents and replays the generations since then, with equal results.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache, cached_property
from typing import TypedDict

import numpy as np
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from numpy.typing import NDArray

from labmates.records.events import PayoffEvent
from labmates.workflows.protocol.experiment import Outcome
from labmates_populations.condition import EvolutionCondition
from labmates_populations.engine.attitudes import falls_back_to_cooperation
from labmates_populations.engine.evolution import Evolution, Generation, Rules
from labmates_populations.engine.library import Gene
from labmates_populations.engine.structure import make_structure
from labmates_populations.playing import Arena, invalid_strategies, opens

_RECORD_AGENTS_EVERY = 10
"""Generations."""
_FLUSH_SECONDS = 1.0
_MOST_STEPS = 3_000_000
"""Steps of the graph: two per generation."""


def rules_of(condition: EvolutionCondition, seed: int) -> Rules:
    """The rules of an evolution; the seed determines random graphs."""
    assert condition.mutation is not None
    return Rules(
        game=condition.make_game(),
        protocol=condition.protocol,
        population=condition.population,
        games=condition.games,
        elite=condition.elite,
        mutation=condition.mutation,
        strength=condition.strength,
        updates=condition.updates,
        switching_cost=condition.switching_cost,
        to_other_base=condition.mutates_to == "other-base",
        structure=make_structure(
            condition.structure, condition.population, condition.degree, condition.group_size, seed
        ),
    )


class EvolutionArena(Arena[EvolutionCondition]):
    """The context of an evolution."""

    @cached_property
    def evolution(self) -> Evolution:
        """The rules with the strategies that take part."""
        rules = rules_of(self.condition, self.services.seed)
        return Evolution(rules, self.population, self.play, seed=self.services.seed)

    @property
    def recorded(self) -> Sequence[PayoffEvent]:
        """The records of the generations so far."""
        return [event for event in self.services.recorder.events if isinstance(event, PayoffEvent)]


context = opens(EvolutionArena)


class EvolutionState(TypedDict, total=False):
    """The current generation.

    Attributes
    ----------
    number
        From 0.
    agents
        The strategy index of each agent.
    broken
        Strategies that are no longer run.
    played
        The generation's result, once it has played.
    flushed
        Time of the last flush of the record, in seconds of the monotonic clock.
    """

    number: int
    agents: NDArray[np.int64]
    broken: frozenset[int]
    played: Generation
    flushed: float


EvolutionGraph = CompiledStateGraph[EvolutionState, EvolutionArena, EvolutionState, EvolutionState]


async def begin(state: EvolutionState, runtime: Runtime[EvolutionArena]) -> EvolutionState:
    """Begin with the newest generation with recorded agents, or with the first."""
    del state
    arena = runtime.context
    for event in reversed(arena.recorded):
        if "agents" in event.details:
            agents = np.array(event.details["agents"], dtype=np.int64)
            broken = frozenset(event.details["broken"])
            return EvolutionState(number=event.round, agents=agents, broken=broken, flushed=0.0)
    return EvolutionState(number=0, agents=arena.evolution.first(), broken=frozenset(), flushed=0.0)


async def play(state: EvolutionState, runtime: Runtime[EvolutionArena]) -> EvolutionState:
    """Play the games of the generation and record it."""
    arena = runtime.context
    generation = await asyncio.to_thread(arena.evolution.played, state["number"], state["agents"], state["broken"])
    arena.warn_of_errors(generation.errors)
    event = _event(arena.evolution, generation, state["broken"])
    if after_play(state, runtime) == END:
        counts = Counter(arena.population.names[index] for index in state["agents"].tolist())
        event.details["strategies"] = dict(counts.most_common())
    arena.services.recorder.once(event)
    return EvolutionState(played=generation)


def after_play(state: EvolutionState, runtime: Runtime[EvolutionArena]) -> str:
    """End at the threshold (paper, moran) or at the last generation."""
    condition, evolution = runtime.context.condition, runtime.context.evolution
    assert condition.generations is not None
    if condition.protocol != "imitation" and max(evolution.shares(state["agents"]).values()) >= condition.threshold:
        return END
    return END if state["number"] + 1 >= condition.generations else "select"


async def select(state: EvolutionState, runtime: Runtime[EvolutionArena]) -> EvolutionState:
    """Select the agents of the next generation."""
    arena, generation, flushed = runtime.context, state["played"], state["flushed"]
    if time.monotonic() - flushed > _FLUSH_SECONDS:
        await arena.services.recorder.flush()
        flushed = time.monotonic()
    agents = await asyncio.to_thread(arena.evolution.next, generation)
    stopped = {index for index, error in generation.errors.items() if error.stopped}
    return EvolutionState(number=state["number"] + 1, agents=agents, broken=state["broken"] | stopped, flushed=flushed)


def graph(_condition: EvolutionCondition) -> EvolutionGraph:
    """The graph of an evolution, the same for all conditions."""
    return _graph()


@cache
def _graph() -> EvolutionGraph:
    builder = StateGraph(EvolutionState, context_schema=EvolutionArena)
    builder.add_node("begin", begin)
    builder.add_node("play", play)
    builder.add_node("select", select)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "play")
    builder.add_conditional_edges("play", after_play, ["select", END])
    builder.add_edge("select", "play")
    return builder.compile(name="evolution", checkpointer=False).with_config(recursion_limit=_MOST_STEPS)


def outcome(_state: EvolutionState, arena: EvolutionArena) -> Outcome:
    """The outcome of an ended evolution, from its record."""
    metrics = _metrics(arena.condition, arena.recorded, arena.population.genes)
    return Outcome("completed", metrics, invalid_strategies(metrics))


def _event(evolution: Evolution, generation: Generation, broken: frozenset[int]) -> PayoffEvent:
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
        details |= {"agents": generation.agents.tolist(), "broken": sorted(broken)}
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
