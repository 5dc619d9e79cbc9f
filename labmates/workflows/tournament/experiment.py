"""The tournament as an experiment. This module imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labmates.registry import lazy
from labmates.stats.domains import ANY, COUNT, SHARE, Domain
from labmates.workflows.protocol.experiment import Estimate, Experiment, Metric
from labmates.workflows.tournament.condition import TournamentCondition


def points_in(condition: Mapping[str, Any]) -> Domain:
    """The range of the points of a round under a condition, given as plain data."""
    points = [condition[name] for name in ("temptation", "reward", "punishment", "sucker") if name in condition]
    return Domain(min(points), max(points)) if points else ANY


METRICS = (
    Metric("cooperation", "share of a player's chosen moves that cooperate, mean over players", SHARE, headline=True),
    Metric("executed_cooperation", "the same of executed moves, which noise may flip", SHARE),
    Metric("one_shot_cooperation", "share of first moves that cooperate", SHARE, headline=True),
    Metric("within_team_cooperation", "share of moves that cooperate with one's own team", SHARE),
    Metric("between_team_cooperation", "share of moves that cooperate with another team", SHARE),
    Metric("comprehension", "share of right answers to questions on the game", SHARE, "higher", headline=True),
    Metric("points_per_round", "points of a player per round", points_in, headline=True),
    Metric("rounds", "rounds played", COUNT),
    Metric("matches", "matches played", COUNT),
    Metric("matches_not_played", "matches that a player without rounds left could not play", COUNT),
    Metric("matches_left", "matches that a player left", COUNT),
    Metric("matches_forfeited", "matches that a player forfeited", COUNT),
    Metric("failed_decision_rate", "share of decisions without a usable reply", SHARE, "lower", headline=True),
)
"""Metrics without an occasion are missing."""


def estimate(condition: TournamentCondition) -> Estimate:
    """The expected usage of a run without leaving and without repair turns.

    Both calls of a match's step run in parallel, and steps in sequence.
    """
    players, total = len(condition.players), condition.total_rounds
    # A player's last match may end when its rounds are used up; it gets questions on that match, too.
    matches = min(-(-total // condition.rounds), max(map(condition.matches_of, condition.players)))
    loops = max(0, total - 2) // condition.plan_every * (condition.critique_turns > 0)
    planning = loops * (1 + 2 * condition.critique_turns)
    asked = matches * (condition.comprehension == "asked")
    written = {"none": 0, "each-match": matches, "each-round": total}[condition.messages]
    chosen = 2 * (condition.team_choice == "wished")
    calls = players * (total + planning + asked + written + chosen)
    seen = _INPUT + _INPUT_PER_ROUND * condition.rounds / 2
    prompt = _INPUT + _INPUT_PER_ROUND * total / 2
    inputs = players * (seen * (total + asked + written) + prompt * planning)
    outputs = players * (_MOVE_OUTPUT * (total + written) + _PLAN_OUTPUT * planning + _ANSWER_OUTPUT * asked)
    in_a_row = total + planning + asked + written
    return Estimate(calls, inputs, outputs, _SECONDS * in_a_row)


_INPUT, _INPUT_PER_ROUND, _MOVE_OUTPUT, _PLAN_OUTPUT, _ANSWER_OUTPUT, _SECONDS = 650, 25, 60, 250, 120, 3

TOURNAMENT = Experiment(
    "tournament",
    TournamentCondition,
    lazy("labmates.workflows.tournament.graph:graph"),
    lazy("labmates.workflows.tournament.results:outcome"),
    METRICS,
    start=lazy("labmates.workflows.tournament.graph:first_state"),
    context=lazy("labmates.workflows.tournament.context:TournamentContext.of"),
    example="labmates run tournament --structure sa --model scripted:tit-for-tat --model-for B=scripted:defect",
    estimate=estimate,
    page=lazy("labmates.workflows.tournament.page:sections"),
    tables=lazy("labmates.workflows.tournament.page:tables"),
    players=lazy("labmates.workflows.tournament.design:players"),
    cells=lazy("labmates.workflows.tournament.design:cells"),
)
