"""Self-play as a graph that plays one mixture after the other and skips recorded ones."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from labmates.records.events import PayoffEvent
from labmates.stats.domains import Domain
from labmates.stats.intervals import mean
from labmates.workflows.protocol.experiment import Outcome
from labmates_populations.condition import SelfplayCondition
from labmates_populations.engine.library import Population
from labmates_populations.engine.selfplay import (
    Mixture,
    mixture_games,
    mixtures,
    play_mixture,
    select_genes,
)
from labmates_populations.engine.workers import Batch
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
    return Mixtures(left=mixtures(condition.group_size, condition.step), played=[])


async def play(state: Mixtures, runtime: Runtime[SelfplayArena]) -> dict[str, Any]:
    """Play the next mixture."""
    arena = runtime.context
    selfish, *left = state["left"]
    recorder = arena.services.recorder
    event = recorder.done("payoff", f"mixture/{selfish}")
    if event is None:
        mixture = await asyncio.to_thread(_played, arena, selfish, state["played"])
        arena.warn_of_errors(mixture.errors)
        event = _event(arena, mixture, select_genes(arena.population, arena.condition.chosen[1])[0].model)
        recorder.emit(event)
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


def _played(arena: SelfplayArena, selfish: int, earlier: Sequence[PayoffEvent]) -> Mixture:
    batch = games_of(arena.condition, arena.population, arena.services.seed, selfish, earlier)
    return play_mixture(batch, arena.play, selfish)


def games_of(
    condition: SelfplayCondition, population: Population, seed: int, selfish: int, earlier: Sequence[PayoffEvent]
) -> Batch:
    """The games of one mixture, without the strategies stopped in `earlier` mixtures."""
    stopped = frozenset(number for event in earlier for number in event.details.get("stopped", ()))
    return mixture_games(
        condition.make_game(),
        population,
        select_genes(population, condition.chosen[1]),
        selfish,
        samples=condition.samples,
        seed=seed,
        broken=stopped,
    )


def _event(arena: SelfplayArena, mixture: Mixture, model: str) -> PayoffEvent:
    welfare = mean(mixture.groups, Domain(*arena.condition.make_game().bounds()))
    details = {
        "selfish": mixture.selfish,
        **{name: getattr(welfare, name) for name in ("low", "high", "n", "df", "method", "reason")},
        "cooperation": mixture.cooperation,
        "errors": sum(error.count for error in mixture.errors.values()),
        "model": model,
    }
    if stopped := [index for index, error in mixture.errors.items() if error.stopped]:
        details["stopped"] = sorted(stopped)
    step = f"mixture/{mixture.selfish}"
    return PayoffEvent(step=step, match=step, payoffs={"welfare": welfare.value}, details=details)


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
