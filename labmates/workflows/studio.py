"""What the graphs for LangGraph Studio share: they take a condition as plain data and open their own services.

They are exported (``langgraph.json``) without a checkpointer, since the LangGraph server brings its own. Runs started
there are for looking at: they are not kept in the store. Settings of the model connection come from the environment
(``LABMATES_BASE_URL``).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

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
async def studio_services(condition: Condition, seed: int) -> AsyncIterator[Services]:
    """Give the services of a kind whose agents run no code."""
    async with studio_hub() as hub:
        yield Services(new_run_id(), condition.key, seed, hub, Recorder(None, None), None, None, Path.cwd)


def decisions_of(services: Services) -> list[dict[str, Any]]:
    """Return what players decided, in order."""
    return [
        {"step": one.step, "player": one.agent, "decision": one.decision, "failed": one.failed}
        for one in services.recorder.events
        if isinstance(one, DecisionEvent)
    ]
