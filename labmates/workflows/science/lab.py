"""The lab's graph: four teams in order, with requests to earlier teams in between; or one agent in their place."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from labmates.agents.roles import EVERY_TEAM, TEAMS
from labmates.workflows.science.context import LabContext
from labmates.workflows.science.state import LabState
from labmates.workflows.science.team import team_graph


def next_team(state: LabState) -> str:
    """Return the team whose phase comes next, or the end."""
    return state["agenda"][0]["team"] if state["agenda"] else END


def lab_graph(checkpointer: Any = None) -> CompiledStateGraph[LabState, LabContext, LabState, LabState]:
    """Return the graph of a whole run.

    Parameters
    ----------
    checkpointer
        LangGraph saver that keeps the state after each step, or None.
    """
    graph = StateGraph(LabState, context_schema=LabContext)
    for team in EVERY_TEAM.values():
        after = [END] if team.alone else [*TEAMS, END]
        graph.add_node(team.name, team_graph(team))
        graph.add_conditional_edges(team.name, next_team, after)
    graph.add_conditional_edges(START, next_team, [*EVERY_TEAM])
    return graph.compile(checkpointer=checkpointer, name="science lab")
