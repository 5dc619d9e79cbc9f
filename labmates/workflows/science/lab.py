"""The lab's graph: four teams in order, with requests to earlier teams in between; or one agent in their place."""

from __future__ import annotations

from functools import cache

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from labmates.agents.roles import EVERY_TEAM, TEAMS
from labmates.workflows.science.condition import ScienceCondition
from labmates.workflows.science.context import LabContext
from labmates.workflows.science.state import LabState
from labmates.workflows.science.team import team_graph


def next_team(state: LabState) -> str:
    """Return the team whose phase comes next, or the end."""
    return state["agenda"][0]["team"] if state["agenda"] else END


LabGraph = CompiledStateGraph[LabState, LabContext, LabState, LabState]


def graph(condition: ScienceCondition) -> LabGraph:
    """The graph of a run; it is the same for all conditions."""
    del condition
    return lab_graph()


@cache
def lab_graph() -> LabGraph:
    """The graph of a whole run; compiled once, since that takes longer than a step."""
    graph = StateGraph(LabState, context_schema=LabContext)
    for team in EVERY_TEAM.values():
        after = [END] if team.alone else [*TEAMS, END]
        graph.add_node(team.name, team_graph(team))
        graph.add_conditional_edges(team.name, next_team, after)
    graph.add_conditional_edges(START, next_team, [*EVERY_TEAM])
    return graph.compile(name="science lab")
