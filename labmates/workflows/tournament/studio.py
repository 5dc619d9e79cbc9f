"""A tournament for LangGraph Studio: a graph that takes a condition as plain data and opens its own services.

It is exported without a checkpointer, since the LangGraph server brings its own. Runs started here are for looking
at: they are not kept in the store. Settings of the model connection come from the environment
(``LABMATES_BASE_URL``).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from labmates.errors import UsageError, explain
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.records.recorder import Recorder
from labmates.records.run import new_run_id
from labmates.workflows.playing import Table
from labmates.workflows.services import Services
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.context import TournamentContext
from labmates.workflows.tournament.graph import first_state, tournament_graph
from labmates.workflows.tournament.run import metrics_of
from labmates.workflows.tournament.state import MatchData

TOURNAMENT = tournament_graph()
"""The tournament's own graph; a global, so that Studio finds and draws it inside the node that runs it."""


class StudioInput(TypedDict, total=False):
    """What Studio asks for: the fields of `TournamentCondition` as an object, and a seed."""

    condition: dict[str, Any]
    seed: int


class StudioOutput(TypedDict):
    """What Studio shows at the end."""

    metrics: dict[str, float]
    matches: list[MatchData]


class StudioState(StudioInput, StudioOutput):
    """Both."""


async def run_tournament(state: StudioInput) -> StudioOutput:
    """Play one tournament; its matches show as subgraphs of this node."""
    try:
        condition = TournamentCondition.model_validate(state.get("condition", {}))
    except ValueError as error:
        raise UsageError(explain(error)) from error  # type: ignore[arg-type]
    condition.check()
    seed = state.get("seed", 0)
    async with ModelHub(ModelOptions(base_url=os.environ.get("LABMATES_BASE_URL"))) as hub:
        services = Services(new_run_id(), condition.key, seed, hub, Recorder(None, None), None, None, Path.cwd)
        ctx = TournamentContext(condition, Table(condition, services), seed)
        ended = await TOURNAMENT.ainvoke(first_state(), context=ctx)
    return StudioOutput(metrics=dict(metrics_of(ctx)), matches=ended["matches"])


_builder = StateGraph(StudioState, input_schema=StudioInput, output_schema=StudioOutput)
_builder.add_node("tournament", run_tournament)
_builder.add_edge(START, "tournament")
_builder.add_edge("tournament", END)
graph = _builder.compile(name="tournament")
"""The exported graph."""
