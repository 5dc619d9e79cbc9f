"""Self-play, evolution and strategy writing as experiments. This module imports nothing heavy."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.stats.domains import COUNT, SHARE
from labmates.workflows.protocol.experiment import Estimate, Experiment, Metric
from labmates_populations.condition import (
    EvolutionCondition,
    MixedplayCondition,
    SelfplayCondition,
    StrategiesCondition,
)

SELFPLAY_METRICS = (
    Metric("welfare_collective", "payoff per round if all are collective"),
    Metric("welfare_selfish", "payoff per round if all are selfish"),
    Metric("welfare", "payoff per round over all mixtures", better="higher"),
    Metric("efficiency_collective", "welfare if all are collective, between the game's bounds", SHARE, "higher"),
    Metric("efficiency_selfish", "welfare if all are selfish, between the game's bounds", SHARE),
    Metric("efficiency", "welfare over all mixtures, between the game's bounds", SHARE, "higher"),
    Metric("cooperation", "share of decisions that cooperate", SHARE, "higher"),
    Metric("error_rate", "share of decisions that failed", SHARE, "lower"),
)


SELFPLAY = Experiment.plain(
    "selfplay",
    SelfplayCondition,
    lazy("labmates_populations.selfplay:play"),
    SELFPLAY_METRICS,
    example="labmates run selfplay --game public-goods --strategies strategies --group-size 16",
    shared=lazy("labmates_populations.engine.crew:open_crew"),
    page=lazy("labmates_populations.page:selfplay_sections"),
)

EVOLUTION_METRICS = (
    Metric("generations", "generations played", COUNT),
    Metric("threshold_reached", "1 if one gene reached the threshold", SHARE),
    Metric("welfare_efficiency", "welfare between the game's bounds", SHARE, "higher"),
    Metric("welfare", "payoff per round", better="higher"),
    Metric("cooperation", "share of decisions that cooperate", SHARE, "higher"),
    Metric("winner_share", "share of the most frequent gene at the end", SHARE),
    Metric("selfish_share", "share of selfish genes at the end", SHARE),
    Metric("error_rate", "share of decisions that failed", SHARE, "lower"),
)


EVOLUTION = Experiment.plain(
    "evolution",
    EvolutionCondition,
    lazy("labmates_populations.evolution:play"),
    EVOLUTION_METRICS,
    example="labmates run evolution --game collective-risk --strategies strategies --replicates 100",
    shared=lazy("labmates_populations.engine.crew:open_crew"),
    page=lazy("labmates_populations.page:evolution_sections"),
    primary="welfare_efficiency",
)

MIXED_METRICS = (
    Metric("chat_cooperation", "share of decisions of chat models that cooperate", SHARE, "higher", headline=True),
    Metric("code_cooperation", "share of decisions of strategies that cooperate", SHARE, "higher", headline=True),
    Metric("chat_payoff", "payoff of a chat model per round", headline=True),
    Metric("code_payoff", "payoff of a strategy per round", headline=True),
    Metric("efficiency", "welfare between the game's bounds", SHARE, "higher"),
    Metric("failed_decision_rate", "share of decisions of chat models without a usable reply", SHARE, "lower"),
    Metric("error_rate", "share of decisions of strategies that failed", SHARE, "lower"),
)


def estimate_mixed(condition: MixedplayCondition) -> Estimate:
    """The expected calls of a run without repair turns: a prompt grows by a line a round."""
    calls = condition.groups * condition.chats * condition.rounds
    return Estimate(calls, calls * (330 + 10 * condition.rounds), calls * 15, 2 * condition.rounds)


MIXEDPLAY = Experiment.plain(
    "mixedplay",
    MixedplayCondition,
    lazy("labmates_populations.mixedplay:play"),
    MIXED_METRICS,
    example="labmates run mixedplay --game public-goods --strategies strategies --model scripted:conditional --chats 2",
    estimate=estimate_mixed,
    shared=lazy("labmates_populations.engine.crew:open_crew"),
)

STRATEGIES_METRICS = (
    Metric("written", "strategies written", COUNT, "higher"),
    Metric("dropped", "strategies given up", COUNT, "lower"),
    Metric("attempts", "implementations tried", COUNT),
    Metric("first_try_rate", "share of strategies whose first implementation passed", SHARE, "higher"),
    Metric("deterministic_rate", "share of strategies that use no chance", SHARE),
)


def estimate(condition: StrategiesCondition) -> Estimate:
    """The expected calls of a run in which every first implementation passes."""
    calls = 2 * condition.number
    return Estimate(calls, calls * _INPUT, calls * _OUTPUT, _SECONDS * calls / _AT_ONCE)


_INPUT, _OUTPUT, _SECONDS, _AT_ONCE = 800, 700, 10, 32


STRATEGIES = Experiment.plain(
    "strategies",
    StrategiesCondition,
    lazy("labmates_populations.strategies:write"),
    STRATEGIES_METRICS,
    example="labmates run strategies --model scripted:author --game public-goods --attitude collective",
    estimate=estimate,
    shared=lazy("labmates_populations.engine.crew:open_crew"),
    page=lazy("labmates_populations.page:strategies_sections"),
)
