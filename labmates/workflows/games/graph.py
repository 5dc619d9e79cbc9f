"""The graph of a behavioural game: in each round deliberation, decisions, sanctions and payoffs; then the last draw."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, TypedDict

import numpy as np
from langchain_core.messages import BaseMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from labmates.agents.decisions import Form, numbers_form
from labmates.games.base import Array, Game
from labmates.models.objects import UnusableAnswerError
from labmates.models.reply import Reply
from labmates.records.events import DecisionEvent, MessageEvent, PayoffEvent
from labmates.stats.validity import Tally, tallies
from labmates.util.grouping import grouped
from labmates.util.seeds import derive
from labmates.workflows.calls.call import Speaker
from labmates.workflows.games.briefs import Briefing, Round, Said, history, payoffs
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.play.playing import Table, together

NO_TOKENS = "Without a valid answer, you spend no token."
MOST_SAID_CHARS = 600
"""Maximum length of a player's message in deliberation."""


@dataclass(frozen=True)
class GameContext:
    """The context of one run."""

    condition: GameCondition
    game: Game
    table: Table
    seed: int

    @cached_property
    def seats(self) -> list[tuple[str, str]]:
        """Group and name of every player, in order."""
        return self.condition.seats()

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The players of each group."""
        return grouped((group, player) for group, player in self.seats)

    @cached_property
    def briefing(self) -> Briefing:
        """The prompts of the run."""
        return Briefing(self.condition, self.game)

    @cached_property
    def speakers(self) -> dict[str, Speaker]:
        """The players as speakers."""
        return {player: Speaker(group, player, self.condition.model_of(group, player)) for group, player in self.seats}

    def by_player(self, values: Array) -> dict[str, float]:
        """An array of shape ``(groups, group_size)`` by player."""
        return dict(zip((player for _, player in self.seats), map(float, values.ravel()), strict=True))

    def failures(self) -> dict[str, Tally]:
        """Tallies of decisions and failures, by model."""
        events = self.table.recorder.events
        decisions = (event for event in events if isinstance(event, DecisionEvent))
        return tallies((self.condition.model_of(event.team, event.agent), event.failed) for event in decisions)


class GameState(TypedDict):
    """All rounds of the game so far, the present one last."""

    rounds: Sequence[Round]


Update = dict[str, Any]


async def deliberate(state: GameState, runtime: Runtime[GameContext]) -> Update:
    """Begin a round: the members of each group speak in turn, all groups in parallel."""
    ctx, rounds = runtime.context, state["rounds"]
    if not ctx.condition.deliberation:
        return {"rounds": [*rounds, Round()]}
    messages = await together(_talk(ctx, group, rounds) for group in ctx.groups)
    return {"rounds": [*rounds, Round(dict(zip(ctx.groups, messages, strict=True)))]}


async def decide(state: GameState, runtime: Runtime[GameContext]) -> Update:
    """Ask all players for decisions, in parallel."""
    ctx, game = runtime.context, runtime.context.game
    *past, now = state["rounds"]
    players = [player for _, player in ctx.seats]
    forms, defaults = dict.fromkeys(players, decision_form(game)), dict.fromkeys(players, _default(game))
    ask = partial(ctx.briefing.decide, rounds=state["rounds"])
    played, usable = await _stage(
        ctx, len(state["rounds"]), "decide", ask, forms, defaults, default_words(game), game.completed
    )
    decisions = np.array([list(each.values()) for each in played]).reshape(game.groups, game.group_size, -1)
    payoffs = np.asarray(game.payoffs(decisions), dtype=float)
    return {"rounds": [*past, replace(now, decisions=decisions, usable=usable, payoffs=payoffs)]}


async def sanction(state: GameState, runtime: Runtime[GameContext]) -> Update:
    """Ask all players for tokens to spend on members of their groups, if the game has sanctions."""
    ctx, game = runtime.context, runtime.context.game
    *past, now = state["rounds"]
    if not game.sanction_limit:
        return {}
    assert now.payoffs is not None
    others = {player: [name for name in ctx.briefing.members(player) if name != player] for _, player in ctx.seats}
    forms = {player: sanction_form(game, player, names) for player, names in others.items()}
    defaults = {player: dict.fromkeys(names, 0) for player, names in others.items()}
    ask = partial(ctx.briefing.sanction, rounds=state["rounds"])
    spent, made = await _stage(ctx, len(state["rounds"]), "sanction", ask, forms, defaults, NO_TOKENS)
    tokens = _tokens(ctx, spent)
    sanctioned = np.asarray(game.sanctioned(now.payoffs, tokens), dtype=float)
    return {"rounds": [*past, replace(now, tokens=tokens, spent=made, payoffs=sanctioned)]}


def decision_form(game: Game) -> type[Form]:
    """The form of a decision in a game."""
    return numbers_form({each.name: (each.low, each.high) for each in game.asked}, most=game.total)


def default_words(game: Game) -> str:
    """What a player without a decision is told."""
    default = _default(game)
    played = {each.name: default[each.name] for each in game.asked}
    return f"Without a valid answer, this is played for you: {json.dumps(played)}"


def _default(game: Game) -> dict[str, int]:
    return dict(zip((each.name for each in game.quantities), game.default_decision, strict=True))


def sanction_form(game: Game, player: str, others: Iterable[str]) -> type[Form]:
    """The form of a player's tokens for the other members of its group."""
    limit = game.sanction_limit
    return numbers_form(
        dict.fromkeys(others, (0, limit)), most=limit, not_keys={player: "is yourself: tokens go to others only"}
    )


def _tokens(ctx: GameContext, spent: Sequence[dict[str, int]]) -> Array:
    """Sanctions by player and member of its group; shape ``(groups, group_size, group_size)``."""
    tokens = np.zeros((ctx.game.groups, ctx.game.group_size, ctx.game.group_size), dtype=int)
    for (_, player), by_name in zip(ctx.seats, spent, strict=True):
        group, seat = ctx.briefing.seat(player)
        for name, number in by_name.items():
            tokens[group, seat, ctx.briefing.seat(name)[1]] = number
    return tokens


async def settle(state: GameState, runtime: Runtime[GameContext]) -> Update:
    """Record the result of the round."""
    ctx, rounds = runtime.context, state["rounds"]
    assert rounds[-1].payoffs is not None
    ctx.table.recorder.once(
        PayoffEvent(
            step=f"{len(rounds)}/payoff",
            round=len(rounds),
            payoffs=ctx.by_player(rounds[-1].payoffs),
            details=ctx.game.notes(history(rounds)),
        )
    )
    await ctx.table.recorder.flush()
    return {}


async def finish(state: GameState, runtime: Runtime[GameContext]) -> Update:
    """Draw whether the players keep their payoffs, if the rules leave it to chance."""
    ctx, rounds = runtime.context, state["rounds"]
    chance = float(ctx.game.keeps(history(rounds)))
    kept = is_kept(ctx.seed, chance)
    ctx.table.recorder.once(
        PayoffEvent(
            step="end",
            payoffs=ctx.by_player(payoffs(rounds).sum(axis=0) * kept),
            details={} if chance == 1 else {"kept_with_probability": chance, "kept": kept},
        )
    )
    return {}


def is_kept(seed: int, chance: float) -> bool:
    """Whether the players of a run keep their payoffs, given the probability."""
    return random.Random(derive(seed, "draw")).random() < chance


async def _talk(ctx: GameContext, group: str, past: Sequence[Round]) -> list[Said]:
    """The messages of the members of a group, in turn."""
    round_ = len(past) + 1
    messages: list[Said] = []
    for player in ctx.groups[group]:
        step = f"{round_}/{player}/deliberation"
        text = await ctx.table.say(
            step,
            ctx.speakers[player],
            ctx.briefing.deliberate(player, [*past, Round({group: messages})]),
            _sentences,
            name=f"{player}, round {round_}: deliberation",
        )
        if text:
            messages.append((player, text))
            body = ctx.table.recorder.bodies.keep(text)
            ctx.table.recorder.once(MessageEvent(step=step, team=group, agent=player, to=group, text=body))
    return messages


def _sentences(reply: Reply, _last: bool) -> str:
    text = " ".join(reply.text.split())
    if not text:
        raise UnusableAnswerError("it has no text", form="Answer with one to three sentences.")
    return text if len(text) <= MOST_SAID_CHARS else f"{text[:MOST_SAID_CHARS]} …"


async def _stage(
    ctx: GameContext,
    round_: int,
    stage: str,
    ask: Callable[[str], list[BaseMessage]],
    forms: Mapping[str, type[Form]],
    defaults: Mapping[str, dict[str, int]],
    otherwise: str,
    completed: Callable[[dict[str, int]], dict[str, int]] = dict,
) -> tuple[list[dict[str, int]], Array]:
    """Ask all players in a stage of a round: what is played of each, and which of it is its own, by group and seat."""
    answers = await together(
        ctx.table.decide(
            f"{round_}/{player}/{stage}",
            ctx.speakers[player],
            ask(player),
            forms[player],
            name=f"{player}, round {round_}: {stage}",
            otherwise=otherwise,
            reasoned=ctx.condition.reasoning != "none",
        )
        for _, player in ctx.seats
    )
    played = [
        defaults[player] if answer is None else completed(answer.values)
        for (_, player), answer in zip(ctx.seats, answers, strict=True)
    ]
    ctx.table.recorder.once(
        *(
            DecisionEvent(
                step=f"{round_}/{player}/{stage}",
                team=group,
                agent=player,
                stage=stage,
                round=round_,
                decision=decision,
                failed=answer is None,
            )
            for (group, player), decision, answer in zip(ctx.seats, played, answers, strict=True)
        )
    )
    made = np.array([answer is not None for answer in answers]).reshape(ctx.game.groups, ctx.game.group_size)
    return played, made


GameGraph = CompiledStateGraph[GameState, GameContext, GameState, GameState]


def first_state(_condition: GameCondition, _seed: int) -> GameState:
    """The state in which a run starts."""
    return {"rounds": ()}


def graph(_condition: GameCondition) -> GameGraph:
    """The graph of a run, the same for all conditions."""
    return game_graph()


@cache
def game_graph() -> GameGraph:
    """The graph; compiled once, since compilation takes longer than a step."""

    def next_round(state: GameState, runtime: Runtime[GameContext]) -> str:
        return "deliberate" if len(state["rounds"]) < runtime.context.game.rounds else "finish"

    graph = StateGraph(GameState, context_schema=GameContext)
    graph.add_sequence([deliberate, decide, sanction, settle])
    graph.add_node(finish)
    graph.add_edge(START, "deliberate")
    graph.add_conditional_edges("settle", next_round, ["deliberate", "finish"])
    graph.add_edge("finish", END)
    return graph.compile(name="behavioural game")
