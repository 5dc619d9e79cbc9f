"""The graph of a tournament whose players choose their teams: introductions, wishes, teams, then the tournament."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from labmates.games.iterated.teams import form_teams
from labmates.records.events import DecisionEvent
from labmates.seeds import derive
from labmates.workflows.playing import together
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.context import TournamentContext
from labmates.workflows.tournament.forms import wishes_form
from labmates.workflows.tournament.graph import TournamentGraph, first_state, tournament_graph
from labmates.workflows.tournament.match import MOST_MESSAGE
from labmates.workflows.tournament.planning import read_text
from labmates.workflows.tournament.state import TournamentState

Update = dict[str, Any]


class ChoiceState(TournamentState, total=False):
    """State of a tournament before its teams are there.

    Attributes
    ----------
    introductions
        What each player tells all others of itself; empty for a player without a usable message.
    wishes
        Whom each player wants in its team.
    """

    introductions: dict[str, str]
    wishes: dict[str, list[str]]


async def introductions(state: ChoiceState, runtime: Runtime[TournamentContext]) -> Update:
    """Let all players introduce themselves at the same time."""
    del state
    ctx = runtime.context
    written = await together(_introduction(ctx, player) for player in ctx.condition.players)
    return {"introductions": dict(zip(ctx.condition.players, written, strict=True))}


async def wishes(state: ChoiceState, runtime: Runtime[TournamentContext]) -> Update:
    """Ask all players whom they want in their team."""
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
    """The graph of a tournament, without a condition the usual one; another if players choose their teams."""
    return tournament_graph() if condition is None or condition.team_choice == "given" else choosing_graph()


ChoosingGraph = CompiledStateGraph[ChoiceState, TournamentContext, ChoiceState, ChoiceState]


@cache
def choosing_graph() -> ChoosingGraph:
    """The graph with the choice of teams; compiled once, since that takes longer than a step."""
    graph = StateGraph(ChoiceState, context_schema=TournamentContext)
    graph.add_sequence((introductions, wishes, tournament))
    graph.add_edge(START, "introductions")
    graph.add_edge("tournament", END)
    return graph.compile(name="tournament with chosen teams")


async def _introduction(ctx: TournamentContext, player: str) -> str:
    step = f"teams/{player}/introduction"
    messages = ctx.briefing.introduction(player)
    text = await ctx.table.say(
        step, ctx.speaker(player), messages, read_text(MOST_MESSAGE), name=f"{player}: introduction"
    )
    _record(ctx, player, "introduction", {"message": text or ""}, failed=not text)
    return text or ""


async def _wishes(ctx: TournamentContext, player: str, introductions: dict[str, str]) -> list[str]:
    others = [other for other in ctx.condition.players if other != player]
    chosen = await ctx.table.decide(
        f"teams/{player}/wishes",
        ctx.speaker(player),
        ctx.briefing.wishes(player, introductions),
        wishes_form(tuple(others)),
        name=f"{player}: choice of team",
    )
    most = len(next(iter(ctx.condition.players_of.values()))) - 1
    wanted = [] if chosen is None else list(dict.fromkeys(chosen.model_dump()["wanted"]))[:most]
    _record(ctx, player, "wishes", {"wanted": wanted}, failed=chosen is None)
    return wanted


def _record(ctx: TournamentContext, player: str, stage: str, decision: Update, *, failed: bool) -> None:
    step, team = f"teams/{player}/{stage}", ctx.speaker(player).team
    ctx.table.recorder.once(
        DecisionEvent(step=step, team=team, agent=player, stage=stage, decision=decision, failed=failed)
    )
