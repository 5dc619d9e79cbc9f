"""The lab's graph: the teams of an organisation in the order of its flow, and requests to earlier teams."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_files import find_organisation
from labmates.models.tracing import hidden
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.science.lab.context import LabContext
from labmates.workflows.science.lab.outside import OWN_GRAPHS
from labmates.workflows.science.lab.state import LabState
from labmates.workflows.science.team import team_graph

LabGraph = CompiledStateGraph[Any, LabContext, Any, LabState]


async def next_team(state: LabState) -> str:  # LangGraph calls an ordinary function in a thread.
    """The team of the next phase, or the end."""
    return state["agenda"][0]["team"] if state["agenda"] else END


def graph(condition: ScienceCondition | None) -> LabGraph:
    """The graph of the condition's organisation, or of the pipeline without a condition."""
    if condition is not None and condition.organisation.graph:
        made: LabGraph = OWN_GRAPHS.get("code")()
        return made
    return lab_graph(find_organisation("pipeline") if condition is None else condition.crew)


@lru_cache(maxsize=64)
def lab_graph(organisation: Organisation) -> LabGraph:
    """The graph of an organisation; cached, since compiling takes longer than a step.

    A single team needs no graph around its own: entering one takes as long as two steps.
    """
    graphs = [team_graph(organisation, team) for team in organisation.teams.values()]
    if len(graphs) == 1:
        return graphs[0]
    graph = StateGraph(LabState, context_schema=LabContext)
    for team, inner in zip(organisation.teams.values(), graphs, strict=True):
        graph.add_node(team.name, inner)
        graph.add_conditional_edges(team.name, hidden(next_team), [*organisation.teams, END])
    graph.add_conditional_edges(START, hidden(next_team), [*organisation.teams])
    return graph.compile(name="science lab")
