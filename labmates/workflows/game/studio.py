"""A behavioural game for LangGraph Studio; see `labmates.workflows.studio`."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph

from labmates.workflows.game.condition import GameCondition
from labmates.workflows.game.graph import game_graph
from labmates.workflows.game.run import make_context, metrics_of
from labmates.workflows.studio import (
    PlayOutput,
    PlayState,
    StudioInput,
    decisions_of,
    read_condition,
    studio_services,
)

GAME = game_graph()
"""The game's own graph; a global, so that Studio finds and draws it inside the node that runs it."""


async def run_game(state: StudioInput) -> PlayOutput:
    """Play one game; its rounds show as the steps of the subgraph of this node."""
    condition = read_condition(GameCondition, state)
    async with studio_services(condition, state.get("seed", 0)) as services:
        ctx = make_context(condition, services)
        await GAME.ainvoke({"round": 0}, context=ctx)
    return PlayOutput(metrics=dict(metrics_of(ctx)), decisions=decisions_of(services))


_builder = StateGraph(PlayState, input_schema=StudioInput, output_schema=PlayOutput)
_builder.add_node("game", run_game)
_builder.add_edge(START, "game")
_builder.add_edge("game", END)
graph = _builder.compile(name="game")
"""The exported graph."""
