"""The graph of a tournament: round after round of its schedule, all matches of a round at the same time."""

from __future__ import annotations

from functools import cache
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from labmates.games.iterated.schedule import Pairing
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.context import TournamentContext
from labmates.workflows.tournament.match import match_graph, record_match
from labmates.workflows.tournament.state import MatchData, MatchState, TournamentState

Update = dict[str, Any]


async def pairing(state: TournamentState, runtime: Runtime[TournamentContext]) -> Update:
    """Begin a round of the schedule; matches of players without rounds left are recorded as not played."""
    ctx = runtime.context
    off = [
        MatchData(number=number, players=list(pair), rounds=[], end="not_played", by=_spent(ctx, state, pair))
        for number, pair in ctx.schedule[state["turn"]]
        if _spent(ctx, state, pair)
    ]
    for match in off:
        record_match(ctx, match)
    return {"turn": state["turn"] + 1, "matches": off}


def to_matches(state: TournamentState, runtime: Runtime[TournamentContext]) -> list[Send] | str:
    """Send the pairs of the round to their matches, or go on if there is nothing to play in it."""
    ctx = runtime.context
    pairs = [(number, pair) for number, pair in ctx.schedule[state["turn"] - 1] if not _spent(ctx, state, pair)]
    return [_match(state, number, pair) for number, pair in pairs] or next_round(state, runtime)


def next_round(state: TournamentState, runtime: Runtime[TournamentContext]) -> str:
    """The next node: the pairing, until the schedule is through."""
    return "pairing" if state["turn"] < len(runtime.context.schedule) else END


TournamentGraph = CompiledStateGraph[TournamentState, TournamentContext, TournamentState, TournamentState]


@cache
def tournament_graph() -> TournamentGraph:
    """The graph of a whole tournament; compiled once, since that takes longer than a step."""
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


def first_state(condition: TournamentCondition, seed: int) -> TournamentState:
    """The state in which a tournament starts."""
    del condition, seed
    return TournamentState(turn=0, matches=[], plans={}, played={}, planned={})


def _spent(ctx: TournamentContext, state: TournamentState, pair: Pairing) -> list[str]:
    return [player for player in pair if not ctx.left(player, state["played"])]


def _match(state: TournamentState, number: int, pair: Pairing) -> Send:
    return Send(
        "match",
        MatchState(
            number=number,
            players=list(pair),
            memory=[match for match in state["matches"] if not set(pair).isdisjoint(match["players"])],
            rounds=[],
            messages=[],
            moves=[],
            plans={player: state["plans"][player] for player in pair if player in state["plans"]},
            played={player: state["played"].get(player, 0) for player in pair},
            planned={player: state["planned"].get(player, 0) for player in pair},
            matches=[],
        ),
    )
