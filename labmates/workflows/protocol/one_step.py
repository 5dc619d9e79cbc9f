"""A flow that is one function, as a graph of a single step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
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


async def play(state: StepState, runtime: Runtime[Step]) -> StepState:
    """Execute the run."""
    del state
    step = runtime.context
    return {"outcome": await step.play(step.condition, step.services)}


def graph(_condition: Any) -> CompiledStateGraph[StepState, Step, StepState, StepState]:
    """The graph of a run, the same for all conditions."""
    return _graph()


@cache
def _graph() -> CompiledStateGraph[StepState, Step, StepState, StepState]:
    builder = StateGraph(StepState, context_schema=Step)
    builder.add_node("play", play)
    builder.add_edge(START, "play")
    return builder.compile(name="one step")


def outcome(state: StepState, _step: Step) -> Outcome:
    """The outcome of a run that has ended."""
    return state["outcome"]
