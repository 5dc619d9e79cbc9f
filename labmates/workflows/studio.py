"""What the graphs for LangGraph Studio share: they take a condition as plain data and open their own services.

They are exported (``langgraph.json``) for the LangGraph server, which brings its own checkpointer. Runs started
there are for looking at: they are not kept in the store. Settings of the model connection come from the environment
(``LABMATES_BASE_URL``).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from langgraph.graph import END, START, StateGraph
from pydantic import ValidationError
from typing_extensions import TypedDict  # pydantic makes the schemas that Studio asks for of these alone

from labmates.errors import UsageError, explain
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.records.events import DecisionEvent
from labmates.records.recorder import Recorder
from labmates.records.run import new_run_id
from labmates.workflows.kinds import Condition
from labmates.workflows.services import Services

C = TypeVar("C", bound=Condition)


class StudioInput(TypedDict, total=False):
    """What Studio asks for: the fields of the kind's condition as an object, and a seed."""

    condition: dict[str, Any]
    seed: int


class PlayOutput(TypedDict):
    """What Studio shows at the end of a game: its metrics, and who decided what."""

    metrics: dict[str, float]
    decisions: list[dict[str, Any]]


class PlayState(StudioInput, PlayOutput):
    """Both."""


class StudioNode(Protocol):
    """What the one node of an exported graph does."""

    async def __call__(self, state: StudioInput) -> Any:
        """Execute one run."""


def read_condition(model: type[C], state: StudioInput) -> C:
    """Return the condition that Studio was given, checked.

    Raises
    ------
    UsageError
        If something is wrong with it.
    """
    try:
        condition = model.model_validate(state.get("condition", {}))
    except ValidationError as error:
        raise UsageError(explain(error)) from error
    condition.check()
    return condition


def studio_hub() -> ModelHub:
    """Return the way to models, by the environment."""
    return ModelHub(ModelOptions(base_url=os.environ.get("LABMATES_BASE_URL")))


@asynccontextmanager
async def playing(model: type[C], state: StudioInput) -> AsyncIterator[tuple[C, Services]]:
    """Give the condition that Studio was given, and the services of a kind whose agents run no code.

    Raises
    ------
    UsageError
        If something is wrong with the condition.
    """
    condition = read_condition(model, state)
    seed = state.get("seed", 0)
    async with studio_hub() as hub:
        yield condition, Services(new_run_id(), condition.key, seed, hub, Recorder(None, None), None, Path.cwd)


def play_output(metrics: Mapping[str, float], services: Services) -> PlayOutput:
    """Return what Studio shows at the end of a game: its metrics, and what players decided, in order."""
    decisions = [
        {"step": one.step, "player": one.agent, "decision": one.decision, "failed": one.failed}
        for one in services.recorder.events
        if isinstance(one, DecisionEvent)
    ]
    return PlayOutput(metrics=dict(metrics), decisions=decisions)


def exported(kind: str, node: str, run: StudioNode, state: Any, output: Any) -> Any:
    """Return the graph that is exported for a kind: one node, inside which Studio draws the kind's own graph.

    Parameters
    ----------
    run
        The node; it names the kind's graph as a global of its module, which is where Studio looks for it.
    state, output
        The types of what it keeps and of what it shows at the end.
    """
    builder = StateGraph(state, input_schema=StudioInput, output_schema=output)
    builder.add_node(node, run)
    builder.add_edge(START, node)
    builder.add_edge(node, END)
    return builder.compile(name=kind)
