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

from labmates.games.iterated.match import LABELS, Action, End, Match, Move, Round
from labmates.games.iterated.questions import marked, questions
from labmates.records.events import PayoffEvent
from labmates.util.seeds import derive
from labmates.workflows.play.playing import together
from labmates.workflows.tournament.briefs import View, answers_form, move_form
from labmates.workflows.tournament.context import MatchState, PlanState, Progress, TournamentContext, seen_by
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
            ctx.speakers[player],
            ctx.briefing.move(_in_round(ctx, state, seat, messages)),
            form,
            name=f"{player}, match {state['number']}, round {round_}: move",
            otherwise="Without a valid answer, the match ends before this round.",
        )
        for seat, player in enumerate(state["players"])
    )
    moves = [None if answer is None else _MOVES[ctx.meant(answer)["move"]] for answer in decided]
    for player, move in zip(state["players"], moves, strict=True):
        decision = {} if move is None else {"move": LABELS[move]}
        step = _step(state, player, "move")
        ctx.decided(step, player, "move", decision, failed=move is None, match=state["number"], round_=round_)
    return {"moves": moves, "messages": messages}


async def payoffs(state: MatchState, runtime: Runtime[TournamentContext]) -> Update:
    """The result of both moves: points, or the end of the match."""
    ctx = runtime.context
    rounds, chosen, counts = state["rounds"], state["chosen"], state["played"]
    own, other = state["moves"]
    if own in ("C", "D") and other in ("C", "D"):
        first, second = _executed(ctx, state, 0, own), _executed(ctx, state, 1, other)
        rounds, chosen = [*rounds, (first, second)], [*chosen, (own, other)]
        counts = {player: counts.get(player, 0) + 1 for player in state["players"]}
        points = [ctx.condition.payoffs.of(first, second), ctx.condition.payoffs.of(second, first)]
        _record_payoff(ctx, state, [first, second], points)
    end, by = _end(ctx, state, rounds, counts)
    update: Update = {"rounds": rounds, "chosen": chosen, "played": counts}
    if end is not None:
        match = ctx.ended(state["number"], state["players"], end, by, rounds, chosen)
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
def match_graph() -> CompiledStateGraph[MatchState, TournamentContext, MatchState, Progress]:
    """The graph of a match; compiled once, since compilation takes longer than a step."""
    graph = StateGraph(MatchState, context_schema=TournamentContext, output_schema=Progress)
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


def record_match(ctx: TournamentContext, match: Match) -> None:
    """Record the end of a match."""
    details = {
        "number": match.number,
        "players": list(match.players),
        "rounds": list(map(list, match.rounds)),
        "chosen": list(map(list, match.chosen)),
        "end": match.end,
        "by": list(match.by),
        "teams": list(match.teams),
    }
    points = {player: float(ctx.condition.payoffs.total(match.seen_by(player))) for player in match.players}
    ctx.table.recorder.once(
        PayoffEvent(step=f"{match.number}/end", match=f"match {match.number}", payoffs=points, details=details)
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
    view = _in_round(ctx, state, seat, state["messages"])
    name = f"{player}, match {state['number']}, round {number}: message"
    text = await ctx.table.say(
        step, ctx.speakers[player], ctx.briefing.message(view), read_text(MOST_MESSAGE), name=name
    )
    decision = {"message": text or ""}
    ctx.decided(step, player, "message", decision, failed=not text, match=state["number"], round_=number)
    return text or ""


def _is_due(ctx: TournamentContext, state: MatchState, seat: int) -> bool:
    """Whether a player plans now: after every `plan_every` rounds played, if more than one is left."""
    player, condition = state["players"][seat], ctx.condition
    played = state["played"].get(player, 0)
    # After an abandoned match, the count is unchanged since the player's last plan.
    is_new = played > state["planned"].get(player, 0)
    is_time = played % condition.plan_every == 0 and ctx.left(player, state["played"]) > 1
    return condition.critique_turns > 0 and is_new and is_time


def _planning(ctx: TournamentContext, state: MatchState, seat: int) -> Send:
    return Send(
        "planning",
        PlanState(
            number=state["number"],
            view=view_of(ctx, state, seat),
            draft="",
            critique="",
            turn=0,
            plans={},
            planned={},
        ),
    )


def view_of(ctx: TournamentContext, state: MatchState, seat: int) -> View:
    """A player's knowledge: its own matches, and before a round nothing of its opponent."""
    player, opponent = state["players"][seat], state["players"][1 - seat]
    rounds = seen_by(state["rounds"], seat)
    return View(
        player,
        tuple(match for match in state["memory"] if player in match.players),
        tuple(rounds),
        opponent if rounds else "",
        ctx.left(player, state["played"]),
        state["plans"].get(player, ""),
        chosen=tuple(both[seat] for both in state["chosen"]),
        points=tuple(state["points"].items()),
        shared=tuple((mate, plan) for mate in ctx.condition.mates(player) if (plan := state["shared"].get(mate))),
    )


def _in_round(ctx: TournamentContext, state: MatchState, seat: int, messages: Sequence[tuple[int, str, str]]) -> View:
    """A player's knowledge with the messages of the match, its own first, and with the opponent's reputation."""
    turned = [(number, first, second) if seat == 0 else (number, second, first) for number, first, second in messages]
    view, opponent = replace(view_of(ctx, state, seat), messages=tuple(turned)), state["players"][1 - seat]
    if ctx.condition.reputation == "none":
        return view
    moves = [own for match in state["memory"] if opponent in match.players for own, _ in match.seen_by(opponent)]
    return replace(view, reputation=(moves.count("C"), len(moves)))


def _end(
    ctx: TournamentContext, state: MatchState, rounds: list[Round], counts: dict[str, int]
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
    view, step = view_of(ctx, state, seat), f"{state['number']}/{state['players'][seat]}/questions"
    has_noise = ctx.condition.noise > 0
    asked = questions(view.rounds, ctx.condition.payoffs, has_noise=has_noise, seed=derive(ctx.seed, step))
    decided = await ctx.table.decide(
        step,
        ctx.speakers[view.player],
        ctx.briefing.questions(view, asked),
        answers_form(asked, ctx.actions),
        name=f"{view.player}, match {state['number']}: questions",
        otherwise="Without a valid answer, all of your answers count as wrong.",
    )
    decision = marked(asked, None if decided is None else ctx.meant(decided))
    ctx.decided(step, view.player, "questions", decision, failed=decided is None, match=state["number"])


def _step(state: MatchState, player: str, stage: str) -> str:
    return f"{state['number']}/{len(state['rounds']) + 1}/{player}/{stage}"
