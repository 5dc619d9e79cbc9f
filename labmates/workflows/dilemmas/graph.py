"""The graph of a cross-play: what is asked once for all matches, then many matches at the same time, step by step.

A match is a conversation that its mechanism leads: in each step all questions that are open are asked together, and the
answers bring the next ones.
"""

from __future__ import annotations

import operator
from functools import cache
from itertools import islice
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from labmates.workflows.dilemmas.condition import DilemmaCondition
from labmates.workflows.dilemmas.context import DilemmaContext
from labmates.workflows.playing import together

AT_ONCE = 512
"""Matches that go on at the same time: enough for any server, and few enough for memory."""


class CrossPlay(TypedDict):
    """The matches that have ended."""

    ended: Annotated[list[str], operator.add]


class MatchState(CrossPlay):
    """One match.

    Attributes
    ----------
    match
        Its name.
    """

    match: str


Update = dict[str, Any]


async def prepare(state: CrossPlay, runtime: Runtime[DilemmaContext]) -> Update:
    """Ask for what is needed once for all matches: proposals of each model at each seat."""
    del state
    ctx = runtime.context
    await together(ctx.ask(match, question) for match, question in ctx.shared_questions())
    await ctx.recorder.flush()
    return {}


def seat(state: CrossPlay, runtime: Runtime[DilemmaContext]) -> list[Send] | str:
    """Begin the next matches, or go to the end."""
    ctx = runtime.context
    begun = len(state["ended"])
    names = list(islice(ctx.matches, begun, begun + AT_ONCE))
    if not names or ctx.error is not None:
        return "finish"
    return [Send("match", {"match": name, "ended": []}) for name in names]


async def gather(state: CrossPlay) -> Update:
    """Wait for the matches that go on."""
    del state
    return {}


async def ask(state: MatchState, runtime: Runtime[DilemmaContext]) -> Update:
    """Ask all open questions of a match together."""
    ctx = runtime.context
    match = ctx.matches[state["match"]]
    if ctx.error is None:
        try:
            match.answers = await together(ctx.ask(match, question) for question in match.questions)
        except Exception as error:  # raised at the end: calls of other matches that go on are paid, and are recorded
            ctx.error = ctx.error or error
    return {}


async def settle(state: MatchState, runtime: Runtime[DilemmaContext]) -> Update:
    """Hand the answers to the mechanism and record what came of them."""
    ctx = runtime.context
    match = ctx.matches[state["match"]]
    if ctx.error is not None:
        return {"ended": [match.name]}
    match.advance()
    ctx.record(match)
    await ctx.recorder.flush()
    return {"ended": [] if match.questions else [match.name]}


async def finish(state: CrossPlay, runtime: Runtime[DilemmaContext]) -> Update:
    """End the run, with the error that has stopped it if there is one."""
    del state
    if runtime.context.error is not None:
        raise runtime.context.error
    return {}


def goes_on(state: MatchState) -> str:
    """Return the next step of a match, or its end."""
    return END if state["ended"] else "ask"


DilemmaGraph = CompiledStateGraph[CrossPlay, DilemmaContext, CrossPlay, CrossPlay]


def first_state(condition: DilemmaCondition, seed: int) -> CrossPlay:
    """The state in which a run starts."""
    del condition, seed
    return {"ended": []}


def graph(condition: DilemmaCondition) -> DilemmaGraph:
    """The graph of a run; it is the same for all conditions."""
    del condition
    return dilemma_graph()


@cache
def dilemma_graph() -> DilemmaGraph:
    """Return the graph; compiled once, since that takes longer than a step."""
    one = StateGraph(MatchState, context_schema=DilemmaContext, output_schema=CrossPlay)
    one.add_node("ask", ask)
    one.add_node("settle", settle)
    one.add_edge(START, "ask")
    one.add_edge("ask", "settle")
    one.add_conditional_edges("settle", goes_on, ["ask", END])
    graph = StateGraph(CrossPlay, context_schema=DilemmaContext)
    graph.add_node("prepare", prepare)
    graph.add_node("match", one.compile(name="match"))
    graph.add_node("gather", gather)
    graph.add_edge(START, "prepare")
    graph.add_conditional_edges("prepare", seat, ["match", "finish"])
    graph.add_edge("match", "gather")
    graph.add_conditional_edges("gather", seat, ["match", "finish"])
    graph.add_node("finish", finish)
    graph.add_edge("finish", END)
    return graph.compile(name="social dilemma")
