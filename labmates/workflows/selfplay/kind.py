"""Self-play as a kind of experiment. This module is light: what executes a run is imported when one starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labmates.analysis.intervals import SHARE
from labmates.workflows.kinds import Kind, Outcome
from labmates.workflows.selfplay.condition import SelfplayCondition

if TYPE_CHECKING:
    from labmates.workflows.services import Services

METRICS = (
    "welfare_collective",
    "welfare_selfish",
    "welfare",
    "efficiency_collective",
    "efficiency_selfish",
    "efficiency",
    "cooperation",
    "error_rate",
)
"""Mean payoff per round, and where it lies between the game's bounds: all collective, all selfish, all mixtures."""


async def execute(condition: SelfplayCondition, services: Services) -> Outcome:
    """Play all mixtures; see `labmates.workflows.selfplay.run.execute`."""
    from labmates.workflows.selfplay import run

    return await run.execute(condition, services)


DOMAINS = dict.fromkeys(METRICS[3:], SHARE)
SELFPLAY = Kind(
    "selfplay", SelfplayCondition, execute, METRICS, uses_strategies=True, domains=lambda _condition: DOMAINS
)
