"""Runs with their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labmates.records.events import ScoreEvent

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.records.store import Store


@dataclass(frozen=True)
class Judged:
    """A run and its scores, oldest first."""

    run: RunRecord
    scores: tuple[ScoreEvent, ...]

    @property
    def readable(self) -> bool:
        """Whether its report states readable findings; true without a judge's verdict."""
        verdicts = [score.readable for score in self.scores if score.readable is not None]
        return not verdicts or verdicts[-1]


def judged_runs(store: Store, runs: Sequence[RunRecord]) -> list[Judged]:
    """Runs with their scores."""
    scores: dict[str, list[ScoreEvent]] = {run.id: [] for run in runs}
    for run_id, score in store.events_of(list(scores), ScoreEvent):
        scores[run_id].append(score)
    return [Judged(run, tuple(scores[run.id])) for run in runs]
