"""A team's graph: the steps of its phases. One pass takes all phases up to another team's.

The organisation selects the steps. If members request work from earlier teams, the pass ends after the work and those
teams run first; then the team's graph is entered again, and the waiting members continue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_parts import Team
from labmates.agents.steps import find_step
from labmates.models.tracing import hidden
from labmates.records.events import PhaseEvent
from labmates.workflows.science.lab.context import LabContext, warm_up
from labmates.workflows.science.lab.state import LabState, Phase, TeamState, WorkOrder, steps_of
from labmates.workflows.science.steps.base import LabStep, Update
from labmates.workflows.science.steps.running import StepRun, here, phase_members, with_answer
from labmates.workflows.science.steps.write import cost_to_write

TeamGraph = CompiledStateGraph[TeamState, LabContext, TeamState, LabState]


def team_graph(organisation: Organisation, team: Team) -> TeamGraph:
    """The graph of the phases of a team; that of the whole lab if there is no other team."""
    names = dict.fromkeys(step for phase in organisation.flow if phase.team == team.name for step in phase.names)
    alone = len(organisation.teams) == 1
    graph = StateGraph(TeamState, context_schema=LabContext, output_schema=LabState)
    members: list[str] = []
    nodes: list[str] = []
    for kind in map(lab_step, names):
        nodes.append(_node_name(kind))
        graph.add_node(nodes[-1], _node(in_phase, kind))
        for seat in team.seats if kind.by_each else ():
            members.append(kind.member_node.format(seat))
            graph.add_node(members[-1], _node(kind.of_member), input_schema=WorkOrder)
            graph.add_edge(members[-1], nodes[-1])
    graph.add_node("begin", _node(begin))
    follow, after = next_step if alone else next_step_of_pass, [*members, *nodes, END]
    for name in (START, "begin", *nodes):
        graph.add_conditional_edges(name, hidden(follow), ["begin", *after] if alone or name == START else after)
    return graph.compile(name="science lab" if alone else f"{team.name} team")


def lab_step(name: str) -> LabStep:
    """The kind of step `name`."""
    return cast(LabStep, find_step(name))


def _node_name(kind: LabStep) -> str:
    return kind.join_node or kind.name


def _node(function: Callable[..., Awaitable[Update]], *arguments: Any) -> Any:
    """A node whose bytecode LangGraph does not search for graphs, which takes longer than all else of compiling."""
    return partial(function, *arguments)


async def in_phase(kind: LabStep, state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Take a step that begins its phase if it is the first, and ends it if it is the last: nodes for that cost more."""
    caller = runtime.context.caller
    caller.share_reports()
    begun = {} if state["agenda"][0]["started"] else await begin(state, runtime)
    state = cast(TeamState, {**state, **begun})
    update = {**begun, **await kind.take(StepRun(kind, state, runtime.context))}
    caller.share_reports()
    if update.get("over") or update["agenda"][0]["steps"]:
        return update
    update |= end(state, update["agenda"], runtime.context)
    return update if update["over"] else update | await begin(cast(TeamState, {**state, **update}), runtime)


async def next_step_of_pass(state: TeamState) -> str | list[Send]:
    """The node of the first uncompleted step; the end of the pass before another team's phase."""
    return END if state.get("over") else await next_step(state)


async def next_step(state: TeamState) -> str | list[Send]:  # LangGraph calls an ordinary function in a thread.
    """The node of the first uncompleted step; the end after the last phase."""
    if not state["agenda"]:
        return END
    phase = state["agenda"][0]
    kind = lab_step(phase["steps"][0])
    if not kind.by_each:
        return _node_name(kind)
    if not phase["started"]:
        return "begin"
    lab = cast(LabState, {key: value for key, value in state.items() if key not in ("results", "reports", "over")})
    takers = kind.takers(phase)
    orders = (WorkOrder(agent=agent, sharers=len(takers), lab=lab) for agent in takers)
    return [Send(kind.member_node.format(order["agent"]), order) for order in orders]


async def begin(state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Start the phase; before a plan, members have their parts as tasks."""
    ctx, phase = runtime.context, state["agenda"][0]
    team = ctx.team(state)
    where = here(phase, "phase")
    ctx.recorder.once(PhaseEvent(**where, status="started", number=phase["number"], reason=phase["reason"]))
    warm_up(ctx.sandboxes, ctx.condition, team)
    begun: Phase = {**phase, "started": True, "members": phase_members(ctx, state, {})}
    update: Update = {"agenda": [begun, *state["agenda"][1:]]}
    # What earlier teams wrote is known, and reports have a length; an author's own conversation has any.
    if state["artifacts"] and team.memory == "step":
        lab = cast(LabState, {**state, **update})
        update["likely"] = state["likely"] | {team.name: cost_to_write(ctx, lab, team, reports=len(ctx.workers(lab)))}
    return update


def end(state: TeamState, agenda: Sequence[Phase], ctx: LabContext) -> Update:
    """End the first phase of the agenda, and the pass before another team's phase: entering a graph has its cost."""
    phase = agenda[0]
    team, where = phase["team"], here(phase, "end")
    ctx.recorder.once(PhaseEvent(**where, status="ended", number=phase["number"], reason=phase["reason"]))
    following = next((later for later in agenda[1:] if later["team"] == team), None)
    reopened = following is not None and any(lab_step(name).reopens for name in following["steps"])
    wrote = lab_step(steps_of(ctx.organisation, phase["place"], phase["asked"])[-1]).does == "write"
    earlier = [] if wrote and not reopened else [*state["earlier"].get(team, []), phase]
    over = [next_phase["team"] for next_phase in agenda[1:2]] != [team]
    return {
        "agenda": with_answer(ctx, phase, agenda[1:]),
        "earlier": {team: earlier},
        "over": over,
    }
