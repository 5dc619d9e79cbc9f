"""Self-play as an experiment. This module is light: what executes a run is imported when one starts."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.stats.intervals import SHARE
from labmates.workflows.experiment import Experiment, Metric
from labmates.workflows.populations.selfplay.condition import SelfplayCondition

METRICS = (
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
    lazy("labmates.workflows.populations.selfplay.run:execute"),
    METRICS,
    example="labmates run selfplay --game public-goods --strategies strategies --group-size 16",
    shared=lazy("labmates.workflows.populations.engine.crew:open_crew"),
    page=lazy("labmates.workflows.populations.selfplay.page:sections"),
)
