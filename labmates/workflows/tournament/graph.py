"""The graph of a tournament: the rounds of its schedule in sequence, the matches of a round in parallel.

If players choose their teams, introductions, wishes and the formation of teams come first.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from labmates.games.iterated.schedule import Pairing, form_teams
from labmates.records.events import DecisionEvent
from labmates.util.seeds import derive
from labmates.workflows.play.playing import together
from labmates.workflows.tournament.briefs import wishes_form
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.context import MatchState, TournamentContext, TournamentState
from labmates.workflows.tournament.match import MOST_MESSAGE, match_graph, record_match
from labmates.workflows.tournament.planning import read_text

Update = dict[str, Any]


async def pairing(state: TournamentState, runtime: Runtime[TournamentContext]) -> Update:
    """Begin a round of the schedule; matches of players without rounds left are recorded as not played."""
    ctx = runtime.context
    off = [
        ctx.ended(number, pair, "not_played", spent)
        for number, pair in ctx.schedule[state["turn"]]
        if (spent := _spent(ctx, state, pair))
    ]
    for match in off:
        record_match(ctx, match)
    return {"turn": state["turn"] + 1, "matches": off}


def to_matches(state: TournamentState, runtime: Runtime[TournamentContext]) -> list[Send] | str:
    """Send the pairs of the round to their matches, or go to the next round if there are none."""
    ctx = runtime.context
    pairs = [(number, pair) for number, pair in ctx.schedule[state["turn"] - 1] if not _spent(ctx, state, pair)]
    return [_match(ctx, state, number, pair) for number, pair in pairs] or next_round(state, runtime)


def next_round(state: TournamentState, runtime: Runtime[TournamentContext]) -> str:
    """The next node: pairing, until the schedule is completed."""
    return "pairing" if state["turn"] < len(runtime.context.schedule) else END


TournamentGraph = CompiledStateGraph[TournamentState, TournamentContext, TournamentState, TournamentState]


@cache
def tournament_graph() -> TournamentGraph:
    """The graph of a whole tournament; compiled once, since compilation takes longer than a step."""
    graph = StateGraph(TournamentState, context_schema=TournamentContext)
    graph.add_node("pairing", pairing)
    graph.add_node("match", match_graph(), input_schema=MatchState)
    graph.add_node("round end", round_end)
    graph.add_edge(START, "pairing")
    graph.add_conditional_edges("pairing", to_matches, ["match", "pairing", END])
    graph.add_edge("match", "round end")
    graph.add_conditional_edges("round end", next_round, ["pairing", END])
    return graph.compile(name="tournament")


async def round_end(state: TournamentState) -> Update:
    """Wait for all matches of the round."""
    return {"turn": state["turn"]}


def first_state(_condition: TournamentCondition, _seed: int) -> TournamentState:
    """The initial state of a tournament."""
    return TournamentState(turn=0, matches=[], plans={}, played={}, planned={})


def _spent(ctx: TournamentContext, state: TournamentState, pair: Pairing) -> list[str]:
    return [player for player in pair if not ctx.left(player, state["played"])]


def _match(ctx: TournamentContext, state: TournamentState, number: int, pair: Pairing) -> Send:
    points = dict.fromkeys(ctx.condition.players if ctx.condition.standings == "shown" else (), 0)
    for match in state["matches"] if points else ():
        for player in match.players:
            points[player] += ctx.condition.payoffs.total(match.seen_by(player))
    return Send(
        "match",
        MatchState(
            number=number,
            players=list(pair),
            memory=[match for match in state["matches"] if not set(pair).isdisjoint(match.players)],
            rounds=[],
            chosen=[],
            messages=[],
            moves=[],
            plans={player: state["plans"][player] for player in pair if player in state["plans"]},
            played={player: state["played"].get(player, 0) for player in pair},
            planned={player: state["planned"].get(player, 0) for player in pair},
            matches=[],
            points=points,
            shared=state["plans"] if ctx.condition.plans == "shared" else {},
        ),
    )


class ChoiceState(TournamentState, total=False):
    """State of a tournament before its teams are formed."""

    introductions: dict[str, str]  # each player's introduction; empty if unusable
    wishes: dict[str, list[str]]  # each player's desired teammates


async def introductions(state: ChoiceState, runtime: Runtime[TournamentContext]) -> Update:
    """Ask all players for introductions, in parallel."""
    del state
    ctx = runtime.context
    written = await together(_introduction(ctx, player) for player in ctx.condition.players)
    return {"introductions": dict(zip(ctx.condition.players, written, strict=True))}


async def wishes(state: ChoiceState, runtime: Runtime[TournamentContext]) -> Update:
    """Ask all players for their desired teammates."""
    ctx = runtime.context
    answers = await together(_wishes(ctx, player, state["introductions"]) for player in ctx.condition.players)
    return {"wishes": dict(zip(ctx.condition.players, answers, strict=True))}


async def tournament(state: ChoiceState, runtime: Runtime[TournamentContext]) -> Update:
    """Form the teams, and play the tournament with them."""
    ctx = runtime.context
    sizes = {team: len(players) for team, players in ctx.condition.players_of.items()}
    teams, fulfilled = form_teams(sizes, state["wishes"], seed=derive(ctx.seed, "teams"))
    formed = {"teams": teams, "wishes": sum(map(len, state["wishes"].values())), "fulfilled": fulfilled}
    ctx.table.recorder.once(DecisionEvent(step="teams", stage="teams", decision=formed))
    played = replace(ctx, condition=ctx.condition.with_teams(teams))
    return dict(await tournament_graph().ainvoke(first_state(ctx.condition, ctx.seed), context=played))


def graph(condition: TournamentCondition | None) -> TournamentGraph | ChoosingGraph:
    """The graph of a tournament, with or without the choice of teams; without a condition the common one."""
    return tournament_graph() if condition is None or condition.team_choice == "given" else choosing_graph()


ChoosingGraph = CompiledStateGraph[ChoiceState, TournamentContext, ChoiceState, ChoiceState]


@cache
def choosing_graph() -> ChoosingGraph:
    """The graph with the choice of teams; compiled once, since compilation takes longer than a step."""
    graph = StateGraph(ChoiceState, context_schema=TournamentContext)
    graph.add_sequence((introductions, wishes, tournament))
    graph.add_edge(START, "introductions")
    graph.add_edge("tournament", END)
    return graph.compile(name="tournament with chosen teams")


async def _introduction(ctx: TournamentContext, player: str) -> str:
    step = f"teams/{player}/introduction"
    messages = ctx.briefing.introduction(player)
    text = await ctx.table.say(
        step, ctx.speakers[player], messages, read_text(MOST_MESSAGE), name=f"{player}: introduction"
    )
    ctx.decided(step, player, "introduction", {"message": text or ""}, failed=not text)
    return text or ""


async def _wishes(ctx: TournamentContext, player: str, introductions: dict[str, str]) -> list[str]:
    others = [other for other in ctx.condition.players if other != player]
    step = f"teams/{player}/wishes"
    chosen = await ctx.table.decide(
        step,
        ctx.speakers[player],
        ctx.briefing.wishes(player, introductions),
        wishes_form(tuple(others)),
        name=f"{player}: choice of team",
        otherwise="Without a valid answer, you name nobody.",
    )
    most = len(next(iter(ctx.condition.players_of.values()))) - 1
    wanted = [] if chosen is None else list(dict.fromkeys(chosen.model_dump()["wanted"]))[:most]
    ctx.decided(step, player, "wishes", {"wanted": wanted}, failed=chosen is None)
    return wanted
