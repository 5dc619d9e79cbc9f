"""Scores of judges as metrics of a run of the lab."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from labmates.records.events import ScoreEvent

SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "skill": ("verified", "skill"),
    "accuracy": ("verified", "accuracy"),
    "quality": ("verified", "provenance"),
    "completeness": ("heuristic", "completeness"),
    "heuristic_quality": ("heuristic", "quality"),
}
"""Judge and metric of each."""
READABLE: Final = "readable"
"""1 for a run whose report states findings that could be read, else 0."""
PROMISES: Final = "promises"
PROMISES_KEPT: Final = "promises_kept"
"""The number of promises that a judge found, and the share that was kept."""


def judged_metrics(scores: Iterable[ScoreEvent]) -> dict[str, float]:
    """Metrics that judges gave a run, each the newest; failed judgements are left out.

    By intention to treat: a run without a paper, or without findings that can be read, has accuracy 0.
    """
    values: dict[tuple[str, str], float] = {}
    metrics: dict[str, float] = {}
    for score in scores:
        if score.intended is not None:
            values[score.judge, score.metric] = score.intended
        if score.metric == PROMISES_KEPT and not score.failed:
            promises = score.details.get("promises", [])
            metrics[PROMISES] = len(promises)
            metrics |= {} if score.value is None else {PROMISES_KEPT: score.value}
        if score.readable is not None:
            metrics[READABLE] = float(score.readable)
    return {name: values[source] for name, source in SOURCES.items() if source in values} | metrics
