"""Tournaments as a kind of experiment. This module is light: what executes a run is imported when one starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labmates.analysis.intervals import COUNT, SHARE
from labmates.workflows.kinds import Estimate, Kind, Outcome
from labmates.workflows.tournament.condition import TournamentCondition

if TYPE_CHECKING:
    from labmates.workflows.services import Services

METRICS = (
    "cooperation",
    "one_shot_cooperation",
    "within_team_cooperation",
    "between_team_cooperation",
    "comprehension",
    "points_per_round",
    "rounds",
    "matches",
    "matches_not_played",
    "matches_left",
    "matches_forfeited",
    "failed_decision_rate",
)
"""Shares of moves that cooperate and of right answers, points, counts; what there was no occasion for is absent."""

HEADLINE = ("cooperation", "one_shot_cooperation", "comprehension", "points_per_round", "failed_decision_rate")


async def execute(condition: TournamentCondition, services: Services) -> Outcome:
    """Play one tournament; see `labmates.workflows.tournament.run.execute`."""
    from labmates.workflows.tournament import run

    return await run.execute(condition, services)


def estimate(condition: TournamentCondition) -> Estimate:
    """Return what a run is expected to take if nobody leaves and no reply has to be asked for again.

    Tokens of a call are what our prompts take and what instruction-tuned models write; a match's calls go out in pairs,
    one after the other.
    """
    players, budget = len(condition.players), condition.budget
    # The last match of a player may end when it has no rounds left; it is asked about that one, too.
    matches = min(-(-budget // condition.rounds), max(map(condition.matches_of, condition.players)))
    loops = (budget - 1) // condition.plan_every * (condition.critique_turns > 0)
    planning = loops * (1 + 2 * condition.critique_turns)
    asked = matches * (condition.comprehension == "asked")
    calls = players * (budget + planning + asked)
    seen = _INPUT + _INPUT_PER_ROUND * condition.rounds / 2
    told = _INPUT + _INPUT_PER_ROUND * budget / 2
    inputs = players * (seen * (budget + asked) + told * planning)
    outputs = players * (_MOVE_OUTPUT * budget + _PLAN_OUTPUT * planning + _ANSWER_OUTPUT * asked)
    return Estimate(calls, inputs, outputs, _SECONDS * (budget + planning + asked))


_INPUT, _INPUT_PER_ROUND, _MOVE_OUTPUT, _PLAN_OUTPUT, _ANSWER_OUTPUT, _SECONDS = 650, 25, 60, 250, 120, 3

DOMAINS = {
    **dict.fromkeys(METRICS[:5], SHARE),
    **dict.fromkeys(METRICS[6:11], COUNT),
    "failed_decision_rate": SHARE,
}

TOURNAMENT = Kind(
    "tournament",
    TournamentCondition,
    execute,
    METRICS,
    headline=HEADLINE,
    estimate=estimate,
    domains=lambda _condition: DOMAINS,
)
"""One tournament, from its condition to its metrics."""
