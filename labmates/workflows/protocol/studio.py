"""Experiments as graphs for LangGraph Studio (``langgraph.json``): each takes a condition as plain data, and a seed.

The LangGraph server brings its own checkpointer. Runs started there are for looking at: they are not kept in the store.
What a person has to approve is an interrupt; a run that waits for the answer has its record in the state of the graph,
and resumes from it. The environment says how models are reached (``LABMATES_BASE_URL``).
"""

from __future__ import annotations

import asyncio
import base64
from contextvars import copy_context
from dataclasses import asdict, replace
from typing import Any

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphInterrupt
from langgraph.graph import END, START, StateGraph
from langgraph.types import Interrupt, interrupt
from pydantic import ValidationError
from typing_extensions import TypedDict  # pydantic makes the schemas that Studio asks for of these alone

from labmates.errors import UsageError, explain
from labmates.records.bodies import Body, Media
from labmates.records.events import ArtifactEvent, DecisionEvent, Event, event_data, make_event
from labmates.records.recorder import Recorder
from labmates.registry import look_up_plugins
from labmates.workflows.people.approval import Answer, Question, approval_event, read_reply
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, Experiment, Outcome
from labmates.workflows.protocol.services import Services
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


class Record(TypedDict):
    """The progress of an interrupted run.

    Attributes
    ----------
    run
        The condition's key and the seed: other input on the same thread starts another run.
    events, bodies
        As plain data; of each body the media type and the stored bytes in base64.
    """

    run: str
    events: list[dict[str, Any]]
    bodies: list[tuple[Media, str]]


class StudioState(StudioInput, StudioOutput):
    """The state of an exported graph; a person has to answer the questions before the run goes on."""

    record: Record
    questions: list[dict[str, Any]]


def studio_graph(name: str) -> Any:
    """The exported graph of an experiment: inside its first node Studio draws the experiment's own graph."""
    experiment = EXPERIMENTS.get(name)
    inner = experiment.graph(None)  # Studio draws graphs among the node's closure variables.

    async def run(state: StudioState) -> dict[str, Any]:
        condition = await asyncio.to_thread(_condition, experiment, state)
        seed = state.get("seed", 0)
        empty = Record(run=f"{condition.key} {seed}", events=[], bodies=[])
        record = state.get("record", empty)
        record = record if record["run"] == empty["run"] else empty
        async with unkept_services(experiment, condition, seed, _recorder(record)) as services:
            try:
                outcome = await _executed(experiment, condition, services, inner)
            except GraphInterrupt as interrupted:
                questions = [question.value for question in interrupted.args[0]]
                return {"record": _longer(record, services.recorder), "questions": questions}
        return {**_output(outcome.status, outcome.metrics, services.recorder), "record": empty, "questions": []}

    builder = StateGraph(StudioState, input_schema=StudioInput, output_schema=StudioOutput)
    builder.add_node(name, run)
    builder.add_edge(START, name)
    if experiment.condition.approvals is Condition.approvals:
        builder.add_edge(name, END)
    else:
        builder.add_node("approval", approval)
        builder.add_conditional_edges(name, _next, ["approval", END])
        builder.add_edge("approval", name)
    return builder.compile(name=name)


async def _executed(experiment: Experiment[Any], condition: Condition, services: Services, inner: Any) -> Outcome:
    """The outcome of a run; a question without an answer interrupts the exported graph."""
    graph = experiment.graph(condition) or inner
    if not condition.interrupts:
        return await experiment.execute(condition, services, graph)
    # The interrupts of a user's graph are answered one by one from the record, so it is no part of the exported graph.
    context = copy_context()
    context.run(var_child_runnable_config.set, None)
    executing = experiment.execute(condition, replace(services, approver=_leave_open), graph)
    return await asyncio.get_running_loop().create_task(executing, context=context)


async def _leave_open(question: Question) -> Answer:
    raise GraphInterrupt((Interrupt(value=asdict(question)),))


async def _next(state: StudioState) -> str:
    return "approval" if state["questions"] else END


async def approval(state: StudioState) -> dict[str, Any]:
    """Let a person answer the questions of a run, each an interrupt, which is repeated after an unclear answer."""
    events = []
    for asked in state["questions"]:
        question, answer = Question(**asked), None
        while answer is None:
            answer = read_reply(question, interrupt({**asked, "answer": question.how}))
        events.append(approval_event(question, answer))
    record = state["record"]
    return {"record": {**record, "events": [*record["events"], *map(_event_row, events)]}, "questions": []}


def _recorder(record: Record) -> Recorder:
    """The recorder of a run that goes on from its record."""
    bodies = (Body(number, media, base64.b64decode(data)) for number, (media, data) in enumerate(record["bodies"], 1))
    return Recorder(None, None, events=[make_event(**row) for row in record["events"]], bodies=[*bodies])


def _longer(record: Record, recorder: Recorder) -> Record:
    """The record of a run that went on from `record`."""
    new = ((body.media, base64.b64encode(body.data).decode()) for body in recorder.bodies.take_new())
    events = [_event_row(event) for event in recorder.events]
    return Record(run=record["run"], events=events, bodies=[*record["bodies"], *new])


def _event_row(event: Event) -> dict[str, Any]:
    """An event as plain data, as `make_event` takes it."""
    where = {"step": event.step, "team": event.team, "agent": event.agent}
    return {"kind": event.type, "at": event.at, **where, "data": event_data(event)}


def _condition(experiment: Experiment[Any], state: StudioInput) -> Condition:
    """The checked condition; reads files, which LangGraph's server refuses on its event loop."""
    try:
        condition: Condition = experiment.condition.model_validate(state.get("condition", {}))
    except ValidationError as error:
        raise UsageError(explain(error)) from error
    condition.check()
    look_up_plugins()
    return condition


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
