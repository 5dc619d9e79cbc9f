"""Experiments as graphs for LangGraph Studio (``langgraph.json``): each takes a condition as plain data, and a seed.

The LangGraph server brings its own checkpointer. Runs started there are for looking at: they are not kept in the store,
and what a person would have to approve is approved. ``LABMATES_BASE_URL`` says how models are reached.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict  # pydantic makes the schemas that Studio asks for of these alone

from labmates.errors import explaining
from labmates.records.events import ArtifactEvent, DecisionEvent
from labmates.records.recorder import Recorder
from labmates.registry import look_up_plugins
from labmates.workflows.people.approval import approve_all
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, Experiment, Outcome
from labmates.workflows.protocol.unkept import unkept_services


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


def studio_graph(name: str) -> Any:
    """The exported graph of an experiment: inside its only node Studio draws the experiment's own graph."""
    experiment = EXPERIMENTS.get(name)
    inner = experiment.graph(None)  # Studio draws graphs among the node's closure variables.

    async def run(state: StudioState) -> dict[str, Any]:
        condition = await asyncio.to_thread(_condition, experiment, state)
        async with unkept_services(experiment, condition, state.get("seed", 0), Recorder(None, None)) as services:
            graph = experiment.graph(condition) or inner
            # A node that asks is executed again from its beginning, and there is no record to answer its calls.
            outcome = await experiment.execute(condition, replace(services, approver=approve_all), graph)
        return {**_output(outcome, services.recorder)}

    builder = StateGraph(StudioState, input_schema=StudioInput, output_schema=StudioOutput)
    builder.add_node(name, run)
    builder.add_edge(START, name)
    builder.add_edge(name, END)
    return builder.compile(name=name)


def _condition(experiment: Experiment[Any], state: StudioInput) -> Condition:
    """The checked condition; reads files, which LangGraph's server refuses on its event loop."""
    with explaining():
        condition: Condition = experiment.condition.model_validate(state.get("condition", {}))
    condition.check()
    look_up_plugins()
    return condition


def _output(outcome: Outcome, recorder: Recorder) -> StudioOutput:
    events = recorder.events
    decisions = [
        {"step": event.step, "player": event.agent, "decision": event.decision, "failed": event.failed}
        for event in events
        if isinstance(event, DecisionEvent)
    ]
    written = (event for event in events if isinstance(event, ArtifactEvent))
    artifacts = {event.name: recorder.bodies[event.content] for event in written}
    return StudioOutput(status=outcome.status, metrics=dict(outcome.metrics), decisions=decisions, artifacts=artifacts)


# LangGraph's server looks for graphs among a module's variables alone.
globals().update({name: studio_graph(name) for name in EXPERIMENTS if not EXPERIMENTS.package(name)})
