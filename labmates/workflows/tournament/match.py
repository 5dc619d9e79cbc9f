"""The graph of one match: round start, planning when due, both moves, payoffs; at the end, questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from labmates.games.iterated.match import LABELS, Action, End, Move
from labmates.games.iterated.questions import marked, questions
from labmates.records.events import DecisionEvent, PayoffEvent
from labmates.util.seeds import derive
from labmates.workflows.play.playing import together
from labmates.workflows.tournament.briefs import View, answers_form, move_form
from labmates.workflows.tournament.context import MatchData, MatchState, Outcome, PlanState, TournamentContext, seen_by
from labmates.workflows.tournament.planning import planning_graph, read_text

Update = dict[str, Any]
MOST_MESSAGE = 1_000
"""Maximum length of a message to the opponent, in characters."""
_MOVES: dict[str, Move] = {LABELS["C"]: "C", LABELS["D"]: "D", LABELS["leave"]: "leave"}


async def round_start(state: MatchState) -> Update:
    """Begin a round."""
    del state
    return {"moves": []}


def planning_or_moves(state: MatchState, runtime: Runtime[TournamentContext]) -> list[Send] | Literal["moves"]:
    """Send the players whose planning is due to plan, in parallel; else go to the moves."""
    return [_planning(runtime.context, state, seat) for seat in (0, 1) if _is_due(runtime.context, state, seat)] or (
        "moves"
    )


async def moves(state: MatchState, runtime: Runtime[TournamentContext]) -> Update:
    """Ask both players for moves, in parallel."""
    ctx = runtime.context
    messages = [*state["messages"], *await _messages(ctx, state)]
    form = move_form(ctx.actions, may_leave=bool(state["rounds"]))
    round_ = len(state["rounds"]) + 1
    decided = await together(
        ctx.table.decide(
            _step(state, player, "move"),
            ctx.speaker(player),
            ctx.briefing.move(_with_messages(_view(ctx, state, seat), messages, seat)),
            form,
            name=f"{player}, match {state['number']}, round {round_}: move",
            otherwise="Without a valid answer, the match ends before this round.",
        )
        for seat, player in enumerate(state["players"])
    )
    moves = [None if answer is None else _MOVES[ctx.meant(answer)["move"]] for answer in decided]
    return {"moves": moves, "messages": messages}


async def payoffs(state: MatchState, runtime: Runtime[TournamentContext]) -> Update:
    """The result of both moves: points, or the end of the match."""
    ctx, condition = runtime.context, runtime.context.condition
    played = [_executed(ctx, state, seat, move) for seat, move in enumerate(state["moves"]) if move in ("C", "D")]
    rounds, chosen, counts = state["rounds"], state["chosen"], state["played"]
    _record_moves(ctx, state)
    if len(played) == 2:
        first, second = played
        rounds = [*rounds, [first, second]]
        chosen = [*chosen, [move for move in state["moves"] if move in ("C", "D")]]
        counts = {player: counts.get(player, 0) + 1 for player in state["players"]}
        points = [condition.payoffs.of(first, second), condition.payoffs.of(second, first)]
        _record_payoff(ctx, state, played, points)
    end, by = _end(ctx, state, rounds, counts)
    update: Update = {"rounds": rounds, "chosen": chosen, "played": counts}
    if end is not None:
        match = MatchData(
            number=state["number"], players=state["players"], rounds=rounds, chosen=chosen, end=end, by=by
        )
        record_match(ctx, match)
        update["matches"] = [match]
    await ctx.table.recorder.flush()
    return update


def after_payoffs(
    state: MatchState, runtime: Runtime[TournamentContext]
) -> Literal["round start", "comprehension", "__end__"]:
    """Play the next round, ask the comprehension questions, or end."""
    if not state["matches"]:
        return "round start"
    return "comprehension" if state["rounds"] and runtime.context.condition.comprehension == "asked" else "__end__"


async def comprehension(state: MatchState, runtime: Runtime[TournamentContext]) -> Update:
    """Ask both players comprehension questions, without any effect on the tournament."""
    ctx = runtime.context
    await together(_examine(ctx, state, seat) for seat in (0, 1))
    return {"moves": []}


@cache
def match_graph() -> CompiledStateGraph[MatchState, TournamentContext, MatchState, Outcome]:
    """The graph of a match; compiled once, since compilation takes longer than a step."""
    graph = StateGraph(MatchState, context_schema=TournamentContext, output_schema=Outcome)
    graph.add_node("round start", round_start)
    graph.add_node("planning", planning_graph(), input_schema=PlanState)
    for node in (moves, payoffs, comprehension):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "round start")
    graph.add_conditional_edges("round start", planning_or_moves, ["planning", "moves"])
    graph.add_edge("planning", "moves")
    graph.add_edge("moves", "payoffs")
    graph.add_conditional_edges("payoffs", after_payoffs, ["round start", "comprehension", END])
    graph.add_edge("comprehension", END)
    return graph.compile(name="match")


def record_match(ctx: TournamentContext, match: MatchData) -> None:
    """Record the end of a match."""
    both = [seen_by(match["rounds"], seat) for seat in (0, 1)]
    totals = [ctx.condition.payoffs.total(rounds) for rounds in both]
    ctx.table.recorder.once(
        PayoffEvent(
            step=f"{match['number']}/end",
            match=f"match {match['number']}",
            payoffs=dict(zip(match["players"], map(float, totals), strict=True)),
            details={**match, "teams": [ctx.condition.players[player] for player in match["players"]]},
        )
    )


async def _messages(ctx: TournamentContext, state: MatchState) -> list[tuple[int, str, str]]:
    """The messages of both players before the round, if allowed; unusable ones are empty."""
    when, number = ctx.condition.messages, len(state["rounds"]) + 1
    if when == "none" or (when == "each-match" and number > 1):
        return []
    first, second = await together(_message(ctx, state, seat) for seat in (0, 1))
    return [(number, first, second)]


async def _message(ctx: TournamentContext, state: MatchState, seat: int) -> str:
    player = state["players"][seat]
    step, number = _step(state, player, "message"), len(state["rounds"]) + 1
    view = _with_messages(_view(ctx, state, seat), state["messages"], seat)
    name = f"{player}, match {state['number']}, round {number}: message"
    text = await ctx.table.say(
        step, ctx.speaker(player), ctx.briefing.message(view), read_text(MOST_MESSAGE), name=name
    )
    ctx.table.recorder.once(
        DecisionEvent(
            step=step,
            team=ctx.condition.players[player],
            agent=player,
            stage="message",
            round=number,
            match=f"match {state['number']}",
            decision={"message": text or ""},
            failed=not text,
        )
    )
    return text or ""


def _with_messages(view: View, messages: Sequence[tuple[int, str, str]], seat: int) -> View:
    """A player's knowledge with the messages of the match, its own first."""
    turned = [(number, first, second) if seat == 0 else (number, second, first) for number, first, second in messages]
    return replace(view, messages=tuple(turned))


def _is_due(ctx: TournamentContext, state: MatchState, seat: int) -> bool:
    """Whether a player plans now: after every `plan_every` rounds played, if more than one is left."""
    player, condition = state["players"][seat], ctx.condition
    played = state["played"].get(player, 0)
    # After an abandoned match, the count is unchanged since the player's last plan.
    is_new = played > state["planned"].get(player, 0)
    is_time = played % condition.plan_every == 0 and ctx.left(player, state["played"]) > 1
    return condition.critique_turns > 0 and is_new and is_time


def _planning(ctx: TournamentContext, state: MatchState, seat: int) -> Send:
    view = _view(ctx, state, seat)
    return Send(
        "planning",
        PlanState(
            number=state["number"],
            player=view.player,
            memory=[match for match in state["memory"] if view.player in match["players"]],
            rounds=[list(both) for both in view.rounds],
            chosen=list(view.chosen),
            opponent=view.opponent,
            plan=view.plan,
            left=view.left,
            draft="",
            critique="",
            turn=0,
            plans={},
            planned={},
        ),
    )


def _view(ctx: TournamentContext, state: MatchState, seat: int) -> View:
    player, opponent = state["players"][seat], state["players"][1 - seat]
    plan, left = state["plans"].get(player, ""), ctx.left(player, state["played"])
    chosen = [both[seat] for both in state["chosen"]]
    view = ctx.view(player, state["memory"], seen_by(state["rounds"], seat), opponent, left, plan, chosen)
    if ctx.condition.reputation == "none":
        return view
    moves = [
        both[match["players"].index(opponent)]
        for match in state["memory"]
        if opponent in match["players"]
        for both in match["rounds"]
    ]
    return replace(view, reputation=(moves.count("C"), len(moves)))


def _end(
    ctx: TournamentContext, state: MatchState, rounds: list[list[Action]], counts: dict[str, int]
) -> tuple[End | None, list[str]]:
    """Why a match is over (None if not), and the players who ended it."""
    chosen = dict(zip(state["players"], state["moves"], strict=True))
    if failed := [player for player, move in chosen.items() if move is None]:
        return "forfeit", failed
    if left := [player for player, move in chosen.items() if move == "leave"]:
        return "leave", left
    if len(rounds) == ctx.condition.rounds:
        return "length", []
    if ctx.condition.continuation < 1 and _chance(ctx, state, "end") >= ctx.condition.continuation:
        return "chance", []
    if spent := [player for player in chosen if not ctx.left(player, counts)]:
        return "rounds", spent
    return None, []


def _executed(ctx: TournamentContext, state: MatchState, seat: int, move: Action) -> Action:
    """The executed move: with the probability of the noise it is flipped."""
    noise = ctx.condition.noise
    if not noise or _chance(ctx, state, state["players"][seat]) >= noise:
        return move
    return "D" if move == "C" else "C"


def _chance(ctx: TournamentContext, state: MatchState, *path: str) -> float:
    """A uniform random number from 0 to 1 of the present round, determined by the run's seed."""
    return derive(ctx.seed, "chance", state["number"], len(state["rounds"]) + 1, *path) / (1 << 31)


def _record_moves(ctx: TournamentContext, state: MatchState) -> None:
    round_ = len(state["rounds"]) + 1
    ctx.table.recorder.once(
        *(
            DecisionEvent(
                step=_step(state, player, "move"),
                team=ctx.condition.players[player],
                agent=player,
                stage="move",
                round=round_,
                match=f"match {state['number']}",
                decision={} if move is None else {"move": LABELS[move]},
                failed=move is None,
            )
            for player, move in zip(state["players"], state["moves"], strict=True)
        )
    )


def _record_payoff(ctx: TournamentContext, state: MatchState, executed: list[Action], points: list[int]) -> None:
    round_ = len(state["rounds"]) + 1
    ctx.table.recorder.once(
        PayoffEvent(
            step=f"{state['number']}/{round_}/payoffs",
            round=round_,
            match=f"match {state['number']}",
            payoffs=dict(zip(state["players"], map(float, points), strict=True)),
            details={"executed": executed} if ctx.condition.noise else {},
        )
    )


async def _examine(ctx: TournamentContext, state: MatchState, seat: int) -> None:
    view, step = _view(ctx, state, seat), f"{state['number']}/{state['players'][seat]}/questions"
    has_noise = ctx.condition.noise > 0
    asked = questions(view.rounds, ctx.condition.payoffs, has_noise=has_noise, seed=derive(ctx.seed, step))
    decided = await ctx.table.decide(
        step,
        ctx.speaker(view.player),
        ctx.briefing.questions(view, asked),
        answers_form(asked, ctx.actions),
        name=f"{view.player}, match {state['number']}: questions",
        otherwise="Without a valid answer, all of your answers count as wrong.",
    )
    ctx.table.recorder.once(
        DecisionEvent(
            step=step,
            team=ctx.condition.players[view.player],
            agent=view.player,
            stage="questions",
            match=f"match {state['number']}",
            decision=marked(asked, None if decided is None else ctx.meant(decided)),
            failed=decided is None,
        )
    )


def _step(state: MatchState, player: str, stage: str) -> str:
    return f"{state['number']}/{len(state['rounds']) + 1}/{player}/{stage}"
