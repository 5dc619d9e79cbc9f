"""Experiments as graphs for LangGraph Studio (``langgraph.json``): each takes a condition as plain data, and a seed.

The LangGraph server brings its own checkpointer. Runs started there are for looking at: they are not kept in the store.
The environment says how models are reached (``LABMATES_BASE_URL``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from langgraph.graph import END, START, StateGraph
from pydantic import ValidationError
from typing_extensions import TypedDict  # pydantic makes the schemas that Studio asks for of these alone

from labmates.errors import UsageError, explain
from labmates.models.hub import ModelHub
from labmates.models.names import is_own_baseline
from labmates.models.options import ModelOptions
from labmates.records.events import ArtifactEvent, DecisionEvent
from labmates.records.recorder import Recorder
from labmates.records.run import new_run_id
from labmates.registry import look_up_plugins
from labmates.sandboxes.choose import choose_backend
from labmates.sandboxes.folders import new_folder, remove_folder
from labmates.workflows.approval import approve_all
from labmates.workflows.experiment import EXPERIMENTS, Condition, Experiment
from labmates.workflows.sandbox_pool import SandboxPool, default_sandboxes
from labmates.workflows.services import Services


class StudioInput(TypedDict, total=False):
    """The fields of the experiment's condition as an object, and a seed."""

    condition: dict[str, Any]
    seed: int


class StudioOutput(TypedDict):
    """The end of a run: its status, its metrics, the decisions of its players and the artifacts of its teams."""

    status: str
    metrics: dict[str, float]
    decisions: list[dict[str, Any]]
    artifacts: dict[str, Any]


class StudioState(StudioInput, StudioOutput):
    """The state of an exported graph."""


@dataclass(frozen=True)
class _Settings:
    """The settings of a session in Studio."""

    processes: int | None = None
    sandbox: str = "auto"


def studio_graph(name: str) -> Any:
    """The exported graph of an experiment: one node, inside which Studio draws the experiment's own graph."""
    experiment = EXPERIMENTS.get(name)
    inner = experiment.graph(None)  # Studio draws what it finds among the variables that the node closes over.

    async def run(state: StudioInput) -> StudioOutput:
        condition = await asyncio.to_thread(_condition, experiment, state)
        async with unkept_services(experiment, condition, state.get("seed", 0)) as services:
            outcome = await experiment.execute(condition, services, experiment.graph(condition) or inner)
        return _output(outcome.status, outcome.metrics, services.recorder)

    builder = StateGraph(StudioState, input_schema=StudioInput, output_schema=StudioOutput)
    builder.add_node(name, run)
    builder.add_edge(START, name)
    builder.add_edge(name, END)
    return builder.compile(name=name)


def _condition(experiment: Experiment[Any], state: StudioInput) -> Condition:
    """The checked condition; reads files, which LangGraph's server refuses on its event loop."""
    try:
        condition: Condition = experiment.condition.model_validate(state.get("condition", {}))
    except ValidationError as error:
        raise UsageError(explain(error)) from error
    condition.check()
    look_up_plugins()
    return condition


@asynccontextmanager
async def unkept_services(experiment: Experiment[Any], condition: Condition, seed: int) -> AsyncIterator[Services]:
    """The services of a run that is not kept in a store."""
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(ModelHub(ModelOptions(base_url=os.environ.get("LABMATES_BASE_URL"))))
        folder = await asyncio.to_thread(new_folder)
        stack.push_async_callback(asyncio.to_thread, remove_folder, folder)
        sandbox_pool = None
        if experiment.needs_sandbox:
            trusted = all(map(is_own_baseline, condition.models()))
            choice = await asyncio.to_thread(choose_backend, "auto", trusted_code=trusted)
            stack.push_async_callback(choice.backend.close)
            sandbox_pool = SandboxPool(choice.backend, default_sandboxes())
        shared = stack.enter_context(experiment.shared(_Settings())) if experiment.shared else None
        yield Services(
            hub=hub,
            sandbox_pool=sandbox_pool,
            run_id=new_run_id(),
            key=condition.key,
            seed=seed,
            recorder=Recorder(None, None),
            folder=lambda: folder,
            shared=shared,
            approver=approve_all,
        )


def _output(status: str, metrics: Any, recorder: Recorder) -> StudioOutput:
    events = recorder.events
    decisions = [
        {"step": event.step, "player": event.agent, "decision": event.decision, "failed": event.failed}
        for event in events
        if isinstance(event, DecisionEvent)
    ]
    written = (event for event in events if isinstance(event, ArtifactEvent))
    artifacts = {event.name: recorder.bodies[event.content] for event in written}
    return StudioOutput(status=status, metrics=dict(metrics), decisions=decisions, artifacts=artifacts)


# LangGraph's server looks for graphs among a module's variables alone.
globals().update({name: studio_graph(name) for name in EXPERIMENTS if not EXPERIMENTS.package(name)})
