"""The graph of a behavioural game: in each round deliberation, decisions, sanctions and payoffs; then the last draw."""

from __future__ import annotations

from functools import cache
from typing import Any, TypedDict

import numpy as np
from langchain_core.messages import BaseMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from labmates.agents.decisions import Numbers, numbers_form
from labmates.models.objects import UnusableAnswerError
from labmates.models.reply import Reply
from labmates.records.events import DecisionEvent, MessageEvent, PayoffEvent
from labmates.workflows.games.briefs import Round
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.games.context import GameContext
from labmates.workflows.playing import together

MOST_SAID_CHARS = 600
"""So much of what a player says in deliberation is heard."""


class GameState(TypedDict):
    """How far the game is; what happened stands in the context.

    Attributes
    ----------
    round
        Rounds that have been settled.
    """

    round: int


Update = dict[str, Any]


async def deliberate(state: GameState, runtime: Runtime[GameContext]) -> Update:
    """Let the members of each group speak in turn, all groups at the same time."""
    del state
    ctx = runtime.context
    ctx.rounds.append(Round())
    if ctx.condition.deliberation:
        await together(_talk(ctx, group) for group in ctx.groups)
    return {}


async def decide(state: GameState, runtime: Runtime[GameContext]) -> Update:
    """Let all players decide at the same time."""
    del state
    ctx, game = runtime.context, runtime.context.game
    form = numbers_form({one.name: (one.low, one.high) for one in game.quantities}, total=game.total)
    asked = {player: ctx.briefing.decide(player, ctx.rounds) for _, player in ctx.seats}
    decided = await _decisions(ctx, "decide", asked, dict.fromkeys(asked, form))
    default = dict(zip(form.model_fields, game.default_decision, strict=True))
    last = ctx.rounds[-1]
    last.usable = np.array([found is not None for found in decided]).reshape(game.groups, game.group_size)
    played = [found or default for found in decided]
    last.decisions = np.array([list(one.values()) for one in played]).reshape(game.groups, game.group_size, -1)
    last.payoffs = np.asarray(game.payoffs(last.decisions), dtype=float)
    _record(ctx, "decide", played, decided)
    return {}


async def sanction(state: GameState, runtime: Runtime[GameContext]) -> Update:
    """Let all players spend tokens on members of their groups, if the game has such a stage."""
    del state
    ctx, game = runtime.context, runtime.context.game
    last = ctx.rounds[-1]
    if not game.sanction_limit:
        return {}
    assert last.payoffs is not None
    others = {player: [one for one in ctx.briefing.members(player) if one != player] for _, player in ctx.seats}
    forms = {
        player: numbers_form(dict.fromkeys(names, (0, game.sanction_limit)), most=game.sanction_limit)
        for player, names in others.items()
    }
    asked = {player: ctx.briefing.sanction(player, ctx.rounds) for player in others}
    decided = await _decisions(ctx, "sanction", asked, forms)
    spent = [found or dict.fromkeys(names, 0) for found, names in zip(decided, others.values(), strict=True)]
    tokens = np.zeros((game.groups, game.group_size, game.group_size), dtype=int)
    for (_, player), one in zip(ctx.seats, spent, strict=True):
        group, seat = ctx.briefing.seat(player)
        for name, number in one.items():
            tokens[group, seat, ctx.briefing.seat(name)[1]] = number
    last.tokens = tokens
    last.spent = np.array([found is not None for found in decided]).reshape(game.groups, game.group_size)
    last.payoffs = np.asarray(game.sanctioned(last.payoffs, tokens), dtype=float)
    _record(ctx, "sanction", spent, decided)
    return {}


async def settle(state: GameState, runtime: Runtime[GameContext]) -> Update:
    """Record what came of the round."""
    ctx = runtime.context
    last = ctx.rounds[-1]
    assert last.payoffs is not None
    ctx.table.recorder.once(
        PayoffEvent(
            step=f"{state['round'] + 1}/payoff",
            round=state["round"] + 1,
            payoffs=ctx.by_player(last.payoffs),
            details=ctx.game.notes(ctx.history()),
        )
    )
    await ctx.table.recorder.flush()
    return {"round": state["round"] + 1}


async def finish(state: GameState, runtime: Runtime[GameContext]) -> Update:
    """Draw by chance whether the players keep what they have got, where the rules leave it to chance."""
    ctx = runtime.context
    chance = ctx.game.keeps(ctx.history())
    ctx.kept = ctx.draw() < chance
    totals = ctx.payoffs().sum(axis=0) * ctx.kept
    ctx.table.recorder.once(
        PayoffEvent(
            step="end",
            payoffs=ctx.by_player(totals),
            details={} if chance == 1 else {"kept_with_probability": float(chance), "kept": ctx.kept},
        )
    )
    return {"round": state["round"]}


async def _talk(ctx: GameContext, group: str) -> None:
    round_ = len(ctx.rounds)
    said = ctx.rounds[-1].said.setdefault(group, [])
    for player in ctx.groups[group]:
        step = f"{round_}/{player}/deliberation"
        text = await ctx.table.say(
            step,
            ctx.speaker(player),
            ctx.briefing.deliberate(player, ctx.rounds),
            _sentences,
            name=f"{player}, round {round_}: deliberation",
        )
        if text:
            said.append((player, text))
            body = ctx.table.recorder.bodies.keep(text)
            ctx.table.recorder.once(MessageEvent(step=step, team=group, agent=player, to=group, text=body))


def _sentences(reply: Reply, last: bool) -> str:
    del last
    text = " ".join(reply.text.split())
    if not text:
        raise UnusableAnswerError("it has no text.")
    return text if len(text) <= MOST_SAID_CHARS else f"{text[:MOST_SAID_CHARS]} …"


async def _decisions(
    ctx: GameContext, stage: str, asked: dict[str, list[BaseMessage]], forms: dict[str, type[Numbers]]
) -> list[dict[str, int] | None]:
    round_ = len(ctx.rounds)
    found = await together(
        ctx.table.decide(
            f"{round_}/{player}/{stage}",
            ctx.speaker(player),
            messages,
            forms[player],
            name=f"{player}, round {round_}: {stage}",
        )
        for player, messages in asked.items()
    )
    return [None if one is None else one.values for one in found]


def _record(ctx: GameContext, stage: str, played: list[dict[str, int]], decided: list[dict[str, int] | None]) -> None:
    round_ = len(ctx.rounds)
    ctx.table.recorder.once(
        *(
            DecisionEvent(
                step=f"{round_}/{player}/{stage}",
                team=group,
                agent=player,
                stage=stage,
                round=round_,
                decision=decision,
                failed=found is None,
            )
            for (group, player), decision, found in zip(ctx.seats, played, decided, strict=True)
        )
    )


GameGraph = CompiledStateGraph[GameState, GameContext, GameState, GameState]


def first_state(condition: GameCondition, seed: int) -> GameState:
    """The state in which a run starts."""
    del condition, seed
    return {"round": 0}


def graph(condition: GameCondition) -> GameGraph:
    """The graph of a run; it is the same for all conditions."""
    del condition
    return game_graph()


@cache
def game_graph() -> GameGraph:
    """Return the graph; compiled once, since that takes longer than a step."""

    def goes_on(state: GameState, runtime: Runtime[GameContext]) -> str:
        return "deliberate" if state["round"] < runtime.context.game.rounds else "finish"

    graph = StateGraph(GameState, context_schema=GameContext)
    for node in (deliberate, decide, sanction, settle, finish):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "deliberate")
    graph.add_edge("deliberate", "decide")
    graph.add_edge("decide", "sanction")
    graph.add_edge("sanction", "settle")
    graph.add_conditional_edges("settle", goes_on, ["deliberate", "finish"])
    graph.add_edge("finish", END)
    return graph.compile(name="behavioural game")
