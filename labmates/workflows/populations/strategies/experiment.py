"""Strategy writing as an experiment. This module is light: what executes a run is imported when one starts."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.stats.intervals import COUNT, SHARE
from labmates.workflows.experiment import Estimate, Experiment, Metric
from labmates.workflows.populations.strategies.condition import StrategiesCondition

METRICS = (
    Metric("written", "strategies written", COUNT, "higher"),
    Metric("dropped", "strategies given up", COUNT, "lower"),
    Metric("attempts", "implementations tried", COUNT),
    Metric("first_try_rate", "share of strategies whose first implementation passed", SHARE, "higher"),
    Metric("deterministic_rate", "share of strategies that use no chance", SHARE),
)


def estimate(condition: StrategiesCondition) -> Estimate:
    """Return what a run is expected to take if each first implementation passes."""
    calls = 2 * condition.number
    return Estimate(calls, calls * _INPUT, calls * _OUTPUT, _SECONDS * calls / _AT_ONCE, in_a_row=2)


_INPUT, _OUTPUT, _SECONDS, _AT_ONCE = 800, 700, 10, 32


STRATEGIES = Experiment.plain(
    "strategies",
    StrategiesCondition,
    lazy("labmates.workflows.populations.strategies.run:execute"),
    METRICS,
    example="labmates run strategies --model scripted:author --game public-goods --attitude collective",
    estimate=estimate,
    shared=lazy("labmates.workflows.populations.engine.crew:open_crew"),
    page=lazy("labmates.workflows.populations.strategies.page:sections"),
)
