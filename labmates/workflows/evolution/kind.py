"""Cultural evolution as a kind of experiment. This module is light: what executes a run is imported when one starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labmates.analysis.intervals import COUNT, SHARE
from labmates.workflows.evolution.condition import EvolutionCondition
from labmates.workflows.kinds import Kind, Outcome

if TYPE_CHECKING:
    from labmates.workflows.services import Services

METRICS = (
    "generations",
    "threshold_reached",
    "welfare_efficiency",
    "welfare",
    "cooperation",
    "winner_share",
    "selfish_share",
    "error_rate",
)
"""How it went and how it ended; which gene won is in the record (see: labmates analyze evolution)."""


async def execute(condition: EvolutionCondition, services: Services) -> Outcome:
    """Let a population evolve; see `labmates.workflows.evolution.run.execute`."""
    from labmates.workflows.evolution import run

    return await run.execute(condition, services)


DOMAINS = {"generations": COUNT, **dict.fromkeys(METRICS[1:3] + METRICS[4:], SHARE)}
EVOLUTION = Kind(
    "evolution", EvolutionCondition, execute, METRICS, uses_strategies=True, domains=lambda _condition: DOMAINS
)
