"""Means over science runs: judges' scores, and measures by condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from labmates.judges.base import SKILL
from labmates.stats.data_sets import Result, data_set_means
from labmates.stats.domains import SHARE, Domain
from labmates.stats.intervals import Estimate, mean, notes
from labmates.stats.tables import Column, Table
from labmates.util.display_names import order_of_settings, references_first, settings_shown, shown_settings
from labmates.util.grouping import grouped
from labmates.workflows.science.analyses.judged import Judged
from labmates.workflows.science.experiment import COORDINATION, SCIENCE, described

if TYPE_CHECKING:
    from labmates.records.run import RunRecord

Newest = Mapping[str, Mapping[tuple[str, str], float | None]]
"""The newest score by run, judge and metric; None if the judge failed."""
ALWAYS_SHOWN: Final = ("task", "organisation", "team_size", "model")
"""Settings in tables of conditions, also if all conditions have the same."""


def scores_table(judged: Sequence[Judged], newest: Newest) -> Table:
    """Mean scores: a row per metric, judge and models."""
    values = grouped(
        ((metric, judge, item.run.shown_models), (item.run, value, item.readable))
        for item in judged
        for (judge, metric), value in newest[item.run.id].items()
    )
    order = references_first(models for _, _, models in values)
    rows: list[dict[str, Any]] = []
    means: list[Estimate] = []
    for metric, judge, models in sorted(values, key=lambda key: (key[0] != SKILL, *key[:2], order.index(key[2]))):
        scored = values[metric, judge, models]
        row, estimates = _row(metric, scored)
        rows.append({"metric": metric, "judge": judge, "models": models, **row})
        means += estimates
    columns = [Column("metric", once=True), Column("judge", once=True), Column("models")]
    heads = ("score", "", ".3f"), ("protocol", "per protocol", ".3f"), ("unreadable", "", ".0%")
    columns += [*(Column(*head, shows="both") for head in heads), Column("scored"), Column("unscored")]
    return Table("scores", "Scores by judge", columns, rows, [*_remarks(values), *notes(means)])


def _row(metric: str, scored: Sequence[tuple[RunRecord, float | None, bool]]) -> tuple[dict[str, Any], list[Estimate]]:
    given = [(run, value, is_readable) for run, value, is_readable in scored if value is not None]
    runs = [run for run, *_ in given]
    domain = SCIENCE.domain_of(metric, runs) if metric in SCIENCE.domains({}) else SHARE
    results = [Result(run.data_set, value, is_readable) for run, value, is_readable in given]
    [score] = data_set_means([results], [domain], failures=True)
    [readable, unreadable] = data_set_means(
        [
            [each for each in results if each.usable],
            [Result(run.data_set, float(not is_readable)) for run, _, is_readable in scored],
        ],
        [domain, SHARE],
    )
    told = {"score": score, "protocol": readable, "unreadable": unreadable}
    row: dict[str, Any] = {"scored": len(given), "unscored": len(scored) - len(given)}
    for name, shown in told.items():
        row |= {name: None} if shown is None else shown.row(name)
    return row, [shown for shown in told.values() if shown is not None]


def _remarks(values: Mapping[tuple[str, str, str], object]) -> Iterator[str]:
    yield (
        "The newest score of each judge. A run without a paper or readable findings counts, with "
        "accuracy 0 (intention to treat); per protocol is the mean of the other runs, unreadable the share of these. "
        "Unscored are runs on which a judge failed; means exclude them. A unit is a data set: its runs are averaged."
    )
    if any(judge == "heuristic" for _, judge, _ in values):
        yield (
            "Scores of heuristic are rules on words: its accuracy measures a paper's topics, not whether it is right."
        )


COORDINATION_COLUMNS = tuple(
    Column(metric.name, form=".0%" if metric.domain == SHARE else ".1f", shows="both") for metric in COORDINATION
)
COORDINATION_NOTE = (
    "Coordination is the share of tokens or credits spent on plans, bids, talk, messages, requests and reading others. "
    "A message is used if code, an artifact or findings of a receiver hold a number or name that was new in it."
)


Measured = Sequence[tuple["RunRecord", Mapping[str, float]]]
"""Runs with values by name."""


def coordination_table(measured: Measured) -> Table:
    """Mean measures of coordination: a row per condition."""
    domains = [metric.domain_in({}) for metric in COORDINATION]
    return by_condition("coordination", "Coordination", measured, COORDINATION_COLUMNS, domains, COORDINATION_NOTE)


def by_condition(
    name: str, title: str, measured: Measured, columns: Sequence[Column], domains: Sequence[Domain], note: str
) -> Table:
    """A table of means with intervals, a row per condition."""
    runs = grouped((run.key, (run, values)) for run, values in measured)
    groups = [(described(members[0][0].condition), members) for members in runs.values()]
    conditions = [condition for condition, _ in groups]
    names = settings_shown(conditions, ALWAYS_SHOWN)
    groups = [groups[at] for at in order_of_settings(conditions, names)]
    rows: list[dict[str, Any]] = [
        {**shown_settings(condition, names), "runs": len(members)} for condition, members in groups
    ]
    estimates: list[Estimate] = []
    for column, domain in zip(columns, domains, strict=True):
        averages = [mean([values[column.key] for _, values in members], domain) for _, members in groups]
        estimates += averages
        for row, estimate in zip(rows, averages, strict=True):
            row.update(estimate.row(column.key))
    heads = [*(Column(setting, once=True) for setting in names), Column("runs")]
    return Table(name, title, [*heads, *columns], rows, [note, *notes(estimates)])
