"""Self-play: welfare of groups that mix strategies of two attitudes, for each mixture (paper, section 5).

Its graph plays one mixture after the other and skips recorded ones.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, TypedDict

import numpy as np
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from labmates.errors import UsageError
from labmates.records.events import PayoffEvent
from labmates.stats.domains import Domain
from labmates.stats.intervals import mean
from labmates.util.seeds import derive
from labmates.workflows.protocol.experiment import Outcome
from labmates_populations.condition import SelfplayCondition
from labmates_populations.engine.library import Gene, Population, only_gene
from labmates_populations.engine.workers import Batch, Errors, chunks, merged
from labmates_populations.playing import Arena, invalid_strategies, opens

MOST_STEPS = 10_000


class SelfplayArena(Arena[SelfplayCondition]):
    """The context of a self-play."""


context = opens(SelfplayArena)


class Mixtures(TypedDict):
    """The mixtures of a self-play.

    Attributes
    ----------
    left
        The numbers of selfish players in the mixtures still to play.
    played
        The records of the others, in order.
    """

    left: list[int]
    played: Annotated[list[PayoffEvent], operator.add]


SelfplayGraph = CompiledStateGraph[Mixtures, SelfplayArena, Mixtures, Mixtures]


def first_state(condition: SelfplayCondition, _seed: int) -> Mixtures:
    """The state in which a self-play starts."""
    size = condition.group_size
    step = condition.step or max(1, size // 64)
    return Mixtures(left=sorted({*range(0, size + 1, step), size}), played=[])


async def play(state: Mixtures, runtime: Runtime[SelfplayArena]) -> dict[str, Any]:
    """Play the next mixture."""
    arena = runtime.context
    selfish, *left = state["left"]
    recorder = arena.services.recorder
    event = recorder.done("payoff", f"mixture/{selfish}")
    if event is None:
        played, errors = await asyncio.to_thread(_played, arena, selfish, state["played"])
        arena.warn_of_errors(errors)
        recorder.emit(played)
        event = played
        await recorder.flush()
    return {"left": left, "played": [event]}


def next_mixture(state: Mixtures) -> str:
    """The next node: play while mixtures are left."""
    return "play" if state["left"] else END


def graph(_condition: SelfplayCondition) -> SelfplayGraph:
    """The graph of a self-play, the same for all conditions."""
    return _graph()


@cache
def _graph() -> SelfplayGraph:
    builder = StateGraph(Mixtures, context_schema=SelfplayArena)
    builder.add_node("play", play)
    builder.add_edge(START, "play")
    builder.add_conditional_edges("play", next_mixture, ["play", END])
    return builder.compile(name="self-play", checkpointer=False).with_config(recursion_limit=MOST_STEPS)


def _played(
    arena: SelfplayArena, selfish: int, earlier: Sequence[PayoffEvent]
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


def outcome(state: Mixtures, arena: SelfplayArena) -> Outcome:
    """The outcome of a self-play with all mixtures played."""
    condition, events = arena.condition, state["played"]
    game = condition.make_game()
    means = [event.payoffs["welfare"] for event in events]
    decisions = len(events) * condition.samples * condition.group_size * condition.rounds
    ends = {"collective": means[0], "selfish": means[-1], "": sum(means) / len(means)}
    metrics = {f"welfare_{name}".rstrip("_"): value for name, value in ends.items()}
    metrics |= {f"efficiency_{name}".rstrip("_"): game.efficiency(value) for name, value in ends.items()}
    metrics["cooperation"] = sum(event.details["cooperation"] for event in events) / len(events)
    metrics["error_rate"] = sum(event.details["errors"] for event in events) / decisions
    return Outcome("completed", metrics, invalid_strategies(metrics))
