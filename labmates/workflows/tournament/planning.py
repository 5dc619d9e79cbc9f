"""The planner and critic of a player: plan, critique of the plan, improved plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Literal

from langchain_core.messages import BaseMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from labmates.models.objects import UnusableAnswerError
from labmates.models.reply import Reply
from labmates.records.bodies import Bodies
from labmates.records.events import DecisionEvent, Event, LLMCallEvent
from labmates.workflows.calls.remarks import fault_text
from labmates.workflows.tournament.context import Plans, PlanState, TournamentContext

MOST_CHARS = 6_000
"""Maximum length of a plan and of a critique, in characters."""

_STAGES = ("plan", "improved plan")

Update = dict[str, Any]


async def plan(state: PlanState, runtime: Runtime[TournamentContext]) -> Update:
    """Ask the planner for a draft."""
    ctx = runtime.context
    return {"draft": await _say(ctx, state, "plan", ctx.briefing.plan(state["view"]))}


async def critique(state: PlanState, runtime: Runtime[TournamentContext]) -> Update:
    """Ask the critic for a critique of the latest draft."""
    ctx = runtime.context
    messages = ctx.briefing.critique(state["view"], state["draft"])
    return {"critique": await _say(ctx, state, "critique", messages), "turn": state["turn"] + 1}


async def improve(state: PlanState, runtime: Runtime[TournamentContext]) -> Update:
    """Ask the planner for an improved draft. Without a usable one the draft is kept."""
    ctx = runtime.context
    messages = ctx.briefing.improve(state["view"], state["draft"], state["critique"])
    return {"draft": await _say(ctx, state, "improved plan", messages) or state["draft"]}


async def adopt(state: PlanState, runtime: Runtime[TournamentContext]) -> Update:
    """Adopt the latest draft as the player's plan; without one, the previous plan stays."""
    view = state["view"]
    played = runtime.context.condition.total_rounds - view.left
    return {"plans": {view.player: state["draft"] or view.plan}, "planned": {view.player: played}}


def after_draft(state: PlanState, runtime: Runtime[TournamentContext]) -> Literal["critique", "adopt"]:
    """The next node after a draft: a critique, as often as the condition allows."""
    has_turn = state["draft"] and state["turn"] < runtime.context.condition.critique_turns
    return "critique" if has_turn else "adopt"


def after_critique(state: PlanState) -> Literal["improve", "adopt"]:
    """The next node after a critique: an improvement, unless the critique is empty."""
    return "improve" if state["critique"] else "adopt"


@cache
def planning_graph() -> CompiledStateGraph[PlanState, TournamentContext, PlanState, Plans]:
    """The graph; compiled once, since compilation takes longer than a step."""
    graph = StateGraph(PlanState, context_schema=TournamentContext, output_schema=Plans)
    for node in (plan, critique, improve, adopt):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", after_draft, ["critique", "adopt"])
    graph.add_conditional_edges("critique", after_critique, ["improve", "adopt"])
    graph.add_conditional_edges("improve", after_draft, ["critique", "adopt"])
    graph.add_edge("adopt", END)
    return graph.compile(name="planner and critic")


def read_text(most: int) -> Callable[[Reply, bool], str]:
    """A reader of plain-text replies that truncates them to a number of characters."""

    def read(reply: Reply, last: bool) -> str:
        fault = fault_text(reply)
        text = reply.text.strip()
        if fault and not (last and text):
            raise UnusableAnswerError(fault, remark=fault)
        return text[:most]

    return read


async def _say(ctx: TournamentContext, state: PlanState, stage: str, messages: list[BaseMessage]) -> str:
    player, match, round_ = state["view"].player, state["number"], len(state["view"].rounds) + 1
    step = f"{match}/{round_}/{player}/{stage}/{state['turn']}"
    name = f"{player}, match {match}, round {round_}: {stage}"
    text = await ctx.table.say(step, ctx.speakers[player], messages, read_text(MOST_CHARS), name=name)
    if not text:
        ctx.decided(step, player, stage, {}, failed=True, match=match, round_=round_)
    return text or ""


def final_plans(events: Iterable[Event], bodies: Bodies) -> Mapping[str, str]:
    """The final plan of each player with one."""
    calls: list[tuple[tuple[int, int, int, int, int], LLMCallEvent]] = []
    failed = set()
    for event in events:
        if isinstance(event, DecisionEvent) and event.failed:
            failed.add(event.step)
        elif isinstance(event, LLMCallEvent) and (when := _when(event.step)) is not None:
            calls.append((when, event))
    plans = {}
    for _, call in sorted(calls, key=lambda call: call[0]):
        reply = bodies[call.reply]
        text = str(reply.get("content", "")).strip() if isinstance(reply, Mapping) else ""
        if text and call.step.rpartition("/")[0] not in failed:
            plans[call.agent] = text[:MOST_CHARS]
    return plans


def _when(step: str) -> tuple[int, int, int, int, int] | None:
    """The order of a call for a plan (match, round, critiques before it, stage, repair turn); None for other calls."""
    match step.split("/"):
        case [number, round_, _, stage, turn, repair] if stage in _STAGES:
            return int(number), int(round_), int(turn), _STAGES.index(stage), int(repair)
        case _:
            return None
