"""A tournament for LangGraph Studio; see `labmates.workflows.studio`."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from labmates.workflows.playing import Table
from labmates.workflows.studio import StudioInput, read_condition, studio_services
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.context import TournamentContext
from labmates.workflows.tournament.graph import first_state, tournament_graph
from labmates.workflows.tournament.run import metrics_of
from labmates.workflows.tournament.state import MatchData

TOURNAMENT = tournament_graph()
"""The tournament's own graph; a global, so that Studio finds and draws it inside the node that runs it."""


class StudioOutput(TypedDict):
    """What Studio shows at the end."""

    metrics: dict[str, float]
    matches: list[MatchData]


class StudioState(StudioInput, StudioOutput):
    """Both."""


async def run_tournament(state: StudioInput) -> StudioOutput:
    """Play one tournament; its matches show as subgraphs of this node."""
    condition = read_condition(TournamentCondition, state)
    seed = state.get("seed", 0)
    async with studio_services(condition, seed) as services:
        ctx = TournamentContext(condition, Table(condition, services), seed)
        ended = await TOURNAMENT.ainvoke(first_state(), context=ctx)
    return StudioOutput(metrics=dict(metrics_of(ctx)), matches=ended["matches"])


_builder = StateGraph(StudioState, input_schema=StudioInput, output_schema=StudioOutput)
_builder.add_node("tournament", run_tournament)
_builder.add_edge(START, "tournament")
_builder.add_edge("tournament", END)
graph = _builder.compile(name="tournament")
"""The exported graph."""
