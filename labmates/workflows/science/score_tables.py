"""Means of the scores that judges gave to science runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from labmates.stats.intervals import SHARE, Estimate, mean, notes
from labmates.stats.tables import Column, Table
from labmates.workflows.science.experiment import SCIENCE
from labmates.workflows.science.teamwork import SKILL, Judged

Newest = Mapping[str, Mapping[tuple[str, str], float | None]]
"""By run, judge and metric, the newest score; None where the judge failed."""


def scores_table(judged: Sequence[Judged], newest: Newest) -> Table:
    """Mean scores: a row for each metric, judge and choice of models."""
    values: dict[tuple[str, str, str], list[tuple[float | None, bool]]] = {}
    for each in judged:
        for (judge, metric), value in newest[each.run.id].items():
            values.setdefault((metric, judge, each.run.shown_models), []).append((value, each.readable))
    rows: list[dict[str, Any]] = []
    means: list[Estimate] = []
    for (metric, judge, models), scored in sorted(values.items(), key=lambda item: (item[0][0] != SKILL, item[0])):
        row, estimate = _row(metric, scored)
        rows.append({"metric": metric, "judge": judge, "models": models, **row})
        means += [] if estimate is None else [estimate]
    columns = [Column("metric", once=True), Column("judge", once=True), Column("models")]
    columns += [Column("score", form=".3f", shows="both"), Column("protocol", "per protocol", form=".3f")]
    columns += [Column("unreadable", form=".0%"), Column("scored"), Column("unscored")]
    return Table("scores", "Scores by judge", columns, rows, [*_remarks(judged, values), *notes(means)])


def _row(metric: str, scored: Sequence[tuple[float | None, bool]]) -> tuple[dict[str, Any], Estimate | None]:
    given = [value for value, _ in scored if value is not None]
    readable = [value for value, is_readable in scored if is_readable and value is not None]
    estimate = mean(given, SCIENCE.domains({}).get(metric, SHARE)) if given else None
    return {
        "score": None,
        "scored": len(given),
        **({} if estimate is None else estimate.row("score")),
        "protocol": fmean(readable) if readable else None,
        "unscored": len(scored) - len(given),
        "unreadable": sum(not is_readable for _, is_readable in scored) / len(scored),
    }, estimate


def _remarks(judged: Sequence[Judged], values: Mapping[tuple[str, str, str], object]) -> Iterator[str]:
    yield (
        "The newest score of each judge. A run without a paper or without findings that can be read counts, with "
        "accuracy 0 (intention to treat); per protocol is the mean of the other runs, unreadable the share of these. "
        "Unscored are runs that a judge failed at, which count in no mean."
    )
    if old := sum(all(score.metric != SKILL for score in each.scores) for each in judged):
        yield (
            f"{old} of {len(judged)} runs have no skill (accuracy beyond guessing), since an earlier version judged "
            "them: compare their accuracy. labmates judge adds skill where the task is of the version that made the "
            "data."
        )
    if any(judge == "heuristic" for _, judge, _ in values):
        yield (
            "Scores of heuristic are rules on words: its accuracy tells what a paper talks about, not whether it is "
            "right."
        )
