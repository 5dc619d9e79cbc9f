"""The behavioural game as an experiment. This module imports nothing heavy."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.stats.domains import COUNT, SHARE
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.protocol.experiment import Estimate, Experiment, Metric

METRICS = (
    Metric(
        "level",
        "mean of the primary decision, in the game's own unit",
        lazy("labmates.workflows.games.cooperation:level_domain"),
        headline=True,
        same_as="cooperation",
    ),
    Metric(
        "cooperation",
        "1 at the social optimum, 0 at the equilibrium: share of rounds (or games) in which a threshold was met, of "
        "the maximum lowest effort, or of the endowment given; else by the mean decision",
        SHARE,
        "higher",
        headline=True,
    ),
    Metric(
        "efficiency",
        "share of the possible welfare gain over the equilibrium",
        SHARE,
        "higher",
        headline=True,
    ),
    Metric("action_gap", "level minus the level of the social optimum"),
    Metric("welfare", "expected payoff of a player in all rounds", better="higher"),
    Metric(
        "payoff", "payoff of a player in all rounds, after a possible loss at the end", better="higher", headline=True
    ),
    Metric("failed_decision_rate", "share of decisions without a usable reply", SHARE, "lower", headline=True),
    Metric("sanctions", "mean tokens a player spends on sanctions", COUNT),
    Metric("least_effort", "lowest effort of all players, mean over rounds", COUNT, "higher"),
    Metric("overdrawn_rate", "share of rounds with an overdrawn pool", SHARE, "lower"),
    Metric("target_reached", "whether the target was reached", SHARE, "higher"),
    Metric("success_rate", "share of rounds in which every group succeeded", SHARE, "higher"),
    Metric("kept_share", "share of the endowment kept", SHARE),
    Metric("global_share", "share given to the global account", SHARE),
    Metric("pareto_proximity", "the paper's distance of the mean decision from the optimum", SHARE, "lower"),
)
"""The primary metric and its derivatives, then metrics of single games; the paper's distance at the end."""


def estimate(condition: GameCondition) -> Estimate:
    """The expected usage of a run; the number of calls is exact without repair turns.

    Replies have tens of tokens (section 4.3 of the paper), or hundreds with reasoning; the calls of a stage run in
    parallel.
    """
    game = condition.make_game()
    stages = 1 + (game.sanction_limit > 0)
    talks = condition.group_size if condition.deliberation else 0
    calls = game.players * game.rounds * (stages + condition.deliberation)
    output = _OUTPUT if condition.reasoning == "none" else _REASONED
    seen = _INPUT + _INPUT_PER_ROUND * condition.group_size * (game.rounds - 1) / 2
    in_a_row = game.rounds * (stages + talks)
    return Estimate(calls, calls * seen, calls * output, _SECONDS * in_a_row, exact=True)


_INPUT, _INPUT_PER_ROUND, _OUTPUT, _REASONED, _SECONDS = 450, 12, 20, 400, 2

GAME = Experiment(
    "game",
    GameCondition,
    lazy("labmates.workflows.games.graph:graph"),
    lazy("labmates.workflows.games.outcome:outcome"),
    METRICS,
    start=lazy("labmates.workflows.games.graph:first_state"),
    context=lazy("labmates.workflows.games.outcome:make_context"),
    example="labmates run game --game weakest-link --model scripted:random --group-size 5 --replicates 50",
    estimate=estimate,
    page=lazy("labmates.workflows.games.page:sections"),
    primary="cooperation",
)
