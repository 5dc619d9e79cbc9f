"""A flow that is one function, as a graph of a single step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from labmates.workflows.protocol.experiment import Outcome
from labmates.workflows.protocol.services import Services


@dataclass(frozen=True)
class Step:
    """The context of a run: its function with what it takes."""

    play: Callable[[Any, Services], Awaitable[Outcome]]
    condition: Any
    services: Services


class StepState(TypedDict, total=False):
    """The outcome, once there is one."""

    outcome: Outcome


StepGraph = CompiledStateGraph[StepState, Step, StepState, StepState]


async def play(state: StepState, runtime: Runtime[Step]) -> dict[str, Any]:
    """Execute the run."""
    del state
    step = runtime.context
    return {"outcome": await step.play(step.condition, step.services)}


def graph(condition: Any) -> StepGraph:
    """The graph of a run; it is the same for all conditions."""
    del condition
    return _graph()


@cache
def _graph() -> StepGraph:
    builder = StateGraph(StepState, context_schema=Step)
    builder.add_node("play", play)
    builder.add_edge(START, "play")
    builder.add_edge("play", END)
    return builder.compile(name="one step")


def outcome(state: StepState, step: Step) -> Outcome:
    """The outcome of a run that has ended."""
    del step
    return state["outcome"]
