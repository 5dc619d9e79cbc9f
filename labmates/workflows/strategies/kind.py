"""Strategy writing as a kind of experiment. This module is light: what executes a run is imported when one starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labmates.analysis.intervals import COUNT, SHARE
from labmates.workflows.kinds import Estimate, Kind, Outcome
from labmates.workflows.strategies.condition import StrategiesCondition

if TYPE_CHECKING:
    from labmates.workflows.services import Services

METRICS = ("written", "dropped", "attempts", "first_try_rate", "deterministic_rate")
"""Strategies written and dropped, implementations tried, and the share of strategies whose first one passed."""


async def execute(condition: StrategiesCondition, services: Services) -> Outcome:
    """Let a model write strategies; see `labmates.workflows.strategies.run.execute`."""
    from labmates.workflows.strategies import run

    return await run.execute(condition, services)


def estimate(condition: StrategiesCondition) -> Estimate:
    """Return what a run is expected to take if each first implementation passes."""
    calls = 2 * condition.number
    return Estimate(calls, calls * _INPUT, calls * _OUTPUT, _SECONDS * calls / _AT_ONCE)


_INPUT, _OUTPUT, _SECONDS, _AT_ONCE = 800, 700, 10, 32

DOMAINS = {**dict.fromkeys(METRICS[:3], COUNT), **dict.fromkeys(METRICS[3:], SHARE)}
STRATEGIES = Kind(
    "strategies",
    StrategiesCondition,
    execute,
    METRICS,
    uses_strategies=True,
    estimate=estimate,
    domains=lambda _condition: DOMAINS,
)
