"""A behavioural game for LangGraph Studio; see `labmates.workflows.studio`."""

from __future__ import annotations

from labmates.workflows.game.condition import GameCondition
from labmates.workflows.game.graph import game_graph
from labmates.workflows.game.run import make_context, metrics_of
from labmates.workflows.studio import PlayOutput, PlayState, StudioInput, exported, play_output, playing

GAME = game_graph()


async def run_game(state: StudioInput) -> PlayOutput:
    """Play one game; its rounds show as the steps of the subgraph of this node."""
    async with playing(GameCondition, state) as (condition, services):
        ctx = make_context(condition, services)
        await GAME.ainvoke({"round": 0}, context=ctx)
        return play_output(metrics_of(ctx), services)


graph = exported("game", "game", run_game, PlayState, PlayOutput)
"""The exported graph."""
