"""A tournament for LangGraph Studio; see `labmates.workflows.studio`."""

from __future__ import annotations

from typing_extensions import TypedDict

from labmates.workflows.playing import Table
from labmates.workflows.studio import StudioInput, exported, playing
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.context import TournamentContext
from labmates.workflows.tournament.graph import first_state, tournament_graph
from labmates.workflows.tournament.run import metrics_of
from labmates.workflows.tournament.state import MatchData

TOURNAMENT = tournament_graph()


class StudioOutput(TypedDict):
    """What Studio shows at the end."""

    metrics: dict[str, float]
    matches: list[MatchData]


class StudioState(StudioInput, StudioOutput):
    """Both."""


async def run_tournament(state: StudioInput) -> StudioOutput:
    """Play one tournament; its matches show as subgraphs of this node."""
    async with playing(TournamentCondition, state) as (condition, services):
        ctx = TournamentContext(condition, Table(condition, services), services.seed)
        ended = await TOURNAMENT.ainvoke(first_state(), context=ctx)
    return StudioOutput(metrics=dict(metrics_of(ctx)), matches=ended["matches"])


graph = exported("tournament", "tournament", run_tournament, StudioState, StudioOutput)
"""The exported graph."""
