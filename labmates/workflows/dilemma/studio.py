"""A cross-play of a social dilemma for LangGraph Studio; see `labmates.workflows.studio`."""

from __future__ import annotations

from labmates.workflows.dilemma.condition import DilemmaCondition
from labmates.workflows.dilemma.context import DilemmaContext
from labmates.workflows.dilemma.graph import dilemma_graph
from labmates.workflows.dilemma.run import metrics_of
from labmates.workflows.studio import PlayOutput, PlayState, StudioInput, exported, play_output, playing

DILEMMA = dilemma_graph()


async def run_dilemma(state: StudioInput) -> PlayOutput:
    """Let all models play each other; matches show as subgraphs of this node."""
    async with playing(DilemmaCondition, state) as (condition, services):
        await DILEMMA.ainvoke({"ended": []}, context=DilemmaContext(condition, services))
        return play_output(metrics_of(condition, services), services)


graph = exported("dilemma", "dilemma", run_dilemma, PlayState, PlayOutput)
"""The exported graph."""
