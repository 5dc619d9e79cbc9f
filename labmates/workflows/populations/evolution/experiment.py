"""Cultural evolution as an experiment. This module is light: what executes a run is imported when one starts."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.stats.intervals import COUNT, SHARE
from labmates.workflows.experiment import Experiment, Metric
from labmates.workflows.populations.evolution.condition import EvolutionCondition

METRICS = (
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
    lazy("labmates.workflows.populations.evolution.run:execute"),
    METRICS,
    example="labmates run evolution --game collective-risk --strategies strategies --replicates 100",
    shared=lazy("labmates.workflows.populations.engine.crew:open_crew"),
    page=lazy("labmates.workflows.populations.evolution.page:sections"),
)
