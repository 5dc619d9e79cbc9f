"""The science lab as a kind of experiment. This module is light: what executes a run is imported when one starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labmates.analysis.intervals import AT_MOST_ONE, COUNT, SHARE
from labmates.workflows.kinds import Estimate, Kind, Outcome
from labmates.workflows.science.condition import ScienceCondition
from labmates.workflows.science.scores import READABLE, judged_metrics

if TYPE_CHECKING:
    from labmates.judges.base import Report
    from labmates.records.bodies import Bodies
    from labmates.records.events import Event
    from labmates.workflows.services import Services

HEADLINE = ("skill", "accuracy", "quality", "completeness", READABLE)
METRICS = (
    *HEADLINE,
    "heuristic_quality",
    "artifacts_missing",
    "phases",
    "requests",
    "tool_errors",
    "failed_reply_rate",
)
"""Scores of the report in [0, 1] (absent where unscored; skill may be negative), then counts.

The last is failed replies per model call.

`quality` is the provenance of the paper's claims (`judges.provenance`), `heuristic_quality` the rule of the
cooperative-profiles paper on the words of a text. `readable` tells (1 or 0) whether the report states findings that
can be read; without them accuracy is 0 (intention to treat)."""


async def execute(condition: ScienceCondition, services: Services) -> Outcome:
    """Execute one run; see `labmates.workflows.science.run.execute`."""
    from labmates.workflows.science import run

    return await run.execute(condition, services)


def report(condition: ScienceCondition, seed: int, events: Sequence[Event], bodies: Bodies) -> Report:
    """Return what judges read of a run; see `labmates.workflows.science.run.report_of`."""
    from labmates.workflows.science import run

    return run.report_of(condition, seed, events, bodies)


def estimate(condition: ScienceCondition) -> Estimate:
    """Return what a run is expected to take.

    Tokens are the medians that the cooperative-profiles paper reports for teams of two (section 4.1), which had the
    pool to spend; the number of calls and the seconds are what such a run takes here, at six seconds a call.
    """
    price = condition.prices.of(condition.model)
    share = 1.0 if condition.solo else condition.team_size / 2
    share = min(share, condition.pool / max(1, price.cost(_INPUT, _OUTPUT)))
    return Estimate(_CALLS * share, _INPUT * share, _OUTPUT * share, _SECONDS * share)


_INPUT, _OUTPUT, _CALLS, _SECONDS = 101_118, 29_654, 60, 260

SPREAD = {"accuracy": 0.05, "heuristic_quality": 0.10, "completeness": 0.24}
"""Residual standard deviations of the cooperative-profiles paper, table 2."""

DOMAINS = {
    "skill": AT_MOST_ONE,
    **dict.fromkeys(("artifacts_missing", "phases", "requests", "tool_errors"), COUNT),
    **dict.fromkeys(
        ("completeness", "quality", "heuristic_quality", "accuracy", "readable", "failed_reply_rate"), SHARE
    ),
}
"""What metrics and the scores behind them can be."""

SCIENCE = Kind(
    "science",
    ScienceCondition,
    execute,
    METRICS,
    report=report,
    judged=judged_metrics,
    headline=HEADLINE,
    uses_code=True,
    salted=True,
    estimate=estimate,
    spread=SPREAD,
    domains=lambda _condition: DOMAINS,
)
