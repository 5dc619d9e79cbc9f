"""The graph of a cross-play: shared questions first, then many matches in parallel, step by step.

A match is a conversation led by its mechanism: in each step all open questions are asked together, and the answers lead
to the next ones.
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

from labmates.mechanisms.base import Question
from labmates.mechanisms.wording import Answer
from labmates.workflows.dilemmas.condition import DilemmaCondition
from labmates.workflows.dilemmas.context import DilemmaContext
from labmates.workflows.play.playing import together

AT_ONCE = 512
"""Maximum number of parallel matches: enough for any server, and bounded for memory."""


class Ended(TypedDict):
    """The matches that have ended, and errors that stopped matches."""

    ended: Annotated[list[str], operator.add]
    errors: Annotated[list[Exception], operator.add]


class CrossPlay(Ended):
    """All matches."""

    opened: dict[str, list[Question]]  # their first questions, by name


class MatchState(Ended):
    """One match."""

    match: str  # its name
    # The open questions, and the players' answers in the same order.
    questions: list[Question]
    answers: list[Answer]
    recorded: int  # number of log entries recorded


Update = dict[str, Any]


async def prepare(state: CrossPlay, runtime: Runtime[DilemmaContext]) -> Update:
    """Open all matches, and ask the shared questions: proposals of each model at each seat."""
    del state
    ctx = runtime.context
    opened = {match.name: match.advance([]) for match in ctx.matches.values()}
    await together(ctx.ask(match, question) for match, question in ctx.shared_questions(opened))
    await ctx.recorder.flush()
    return {"opened": opened}


def seat(state: CrossPlay) -> list[Send] | str:
    """The next matches, or the end."""
    begun = len(state["ended"])
    if state["errors"] or begun == len(state["opened"]):
        return "finish"
    batch = islice(state["opened"].items(), begun, begun + AT_ONCE)
    return [
        Send("match", MatchState(match=name, questions=questions, answers=[], recorded=0, ended=[], errors=[]))
        for name, questions in batch
    ]


async def gather(state: CrossPlay) -> Update:
    """Wait for the running matches."""
    del state
    return {}


async def ask(state: MatchState, runtime: Runtime[DilemmaContext]) -> Update:
    """Ask all open questions of a match; an error ends the match, and the run when all other matches have ended."""
    ctx = runtime.context
    match = ctx.matches[state["match"]]
    try:
        return {"answers": await together(ctx.ask(match, question) for question in state["questions"])}
    except Exception as error:
        return {"errors": [error]}


def after_ask(state: MatchState) -> str:
    """Settle complete answers."""
    return END if state["errors"] else "settle"


async def settle(state: MatchState, runtime: Runtime[DilemmaContext]) -> Update:
    """Pass the answers to the mechanism and record the result."""
    ctx = runtime.context
    match = ctx.matches[state["match"]]
    questions = match.advance(state["answers"])
    ctx.record(match, state["recorded"])
    await ctx.recorder.flush()
    return {"questions": questions, "recorded": len(match.log), "ended": [] if questions else [match.name]}


async def finish(state: CrossPlay) -> Update:
    """Raise the first error, if any."""
    if state["errors"]:
        raise state["errors"][0]
    return {}


def after_settle(state: MatchState) -> str:
    """Ask while questions are open."""
    return "ask" if state["questions"] else END


DilemmaGraph = CompiledStateGraph[CrossPlay, DilemmaContext, CrossPlay, CrossPlay]


def first_state(_condition: DilemmaCondition, _seed: int) -> CrossPlay:
    """The state in which a run starts."""
    return CrossPlay(ended=[], errors=[], opened={})


def graph(_condition: DilemmaCondition) -> DilemmaGraph:
    """The graph of a run, the same for all conditions."""
    return dilemma_graph()


@cache
def dilemma_graph() -> DilemmaGraph:
    """The graph; compiled once, since compilation takes longer than a step."""
    match_graph = StateGraph(MatchState, context_schema=DilemmaContext, output_schema=Ended)
    match_graph.add_node("ask", ask)
    match_graph.add_node("settle", settle)
    match_graph.add_edge(START, "ask")
    match_graph.add_conditional_edges("ask", after_ask, ["settle", END])
    match_graph.add_conditional_edges("settle", after_settle, ["ask", END])
    graph = StateGraph(CrossPlay, context_schema=DilemmaContext)
    graph.add_node("prepare", prepare)
    graph.add_node("match", match_graph.compile(name="match"), input_schema=MatchState)
    graph.add_node("gather", gather)
    graph.add_edge(START, "prepare")
    graph.add_conditional_edges("prepare", seat, ["match", "finish"])
    graph.add_edge("match", "gather")
    graph.add_conditional_edges("gather", seat, ["match", "finish"])
    graph.add_node("finish", finish)
    graph.add_edge("finish", END)
    return graph.compile(name="social dilemma")
