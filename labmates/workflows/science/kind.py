"""The science lab as a kind of experiment. This module is light: what executes a run is imported when one starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labmates.workflows.kinds import Kind, Outcome
from labmates.workflows.science.condition import ScienceCondition

if TYPE_CHECKING:
    from labmates.judges.base import Report
    from labmates.records.bodies import Bodies
    from labmates.records.events import Event
    from labmates.workflows.services import Services

METRICS = (
    "completeness",
    "quality",
    "accuracy",
    "artifacts_missing",
    "phases",
    "requests",
    "tool_errors",
    "failed_reply_rate",
)
"""Scores of the report in [0, 1] (absent where unscored), then counts; the last is failed replies per model call."""


async def execute(condition: ScienceCondition, services: Services) -> Outcome:
    """Execute one run; see `labmates.workflows.science.run.execute`."""
    from labmates.workflows.science import run

    return await run.execute(condition, services)


def report(condition: ScienceCondition, seed: int, events: Sequence[Event], bodies: Bodies) -> Report:
    """Return what judges read of a run; see `labmates.workflows.science.run.report_of`."""
    from labmates.workflows.science import run

    return run.report_of(condition, seed, events, bodies)


SCIENCE = Kind("science", ScienceCondition, execute, METRICS, report)
