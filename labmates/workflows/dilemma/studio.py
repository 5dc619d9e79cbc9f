"""A cross-play of a social dilemma for LangGraph Studio; see `labmates.workflows.studio`."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph

from labmates.workflows.dilemma.condition import DilemmaCondition
from labmates.workflows.dilemma.context import DilemmaContext
from labmates.workflows.dilemma.graph import dilemma_graph
from labmates.workflows.dilemma.run import metrics_of
from labmates.workflows.studio import (
    PlayOutput,
    PlayState,
    StudioInput,
    decisions_of,
    read_condition,
    studio_services,
)

DILEMMA = dilemma_graph()
"""The cross-play's own graph; a global, so that Studio finds and draws it inside the node that runs it."""


async def run_dilemma(state: StudioInput) -> PlayOutput:
    """Let all models play each other; matches show as subgraphs of this node."""
    condition = read_condition(DilemmaCondition, state)
    async with studio_services(condition, state.get("seed", 0)) as services:
        await DILEMMA.ainvoke({"ended": []}, context=DilemmaContext(condition, services))
    return PlayOutput(metrics=dict(metrics_of(condition, services)), decisions=decisions_of(services))


_builder = StateGraph(PlayState, input_schema=StudioInput, output_schema=PlayOutput)
_builder.add_node("dilemma", run_dilemma)
_builder.add_edge(START, "dilemma")
_builder.add_edge("dilemma", END)
graph = _builder.compile(name="dilemma")
"""The exported graph."""
