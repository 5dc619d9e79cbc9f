"""The effect of teamwork pooled over all conditions, with tasks and models as clusters.

Pairs that share a single-agent run (for instance with teams of several sizes) are dependent, so they are averaged
first: each such block counts once. Blocks are averaged within cells (a model on a task in one condition of the solo
runs), and the pooled difference is the mean of the cells.

The interval is for new models if there are three or more, for new tasks likewise, and for both by the variance
components of a two-way table. With fewer of either it is for these models and tasks only, over data sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance
from typing import TYPE_CHECKING, Final

from labmates.stats import intervals
from labmates.stats.domains import Domain
from labmates.stats.intervals import LEAST_CLUSTERS, Estimate, notes
from labmates.stats.multiplicity import holm
from labmates.stats.samples import Sample
from labmates.stats.tables import Column, Table
from labmates.util.grouping import grouped

if TYPE_CHECKING:
    from labmates.workflows.science.analyses.teamwork import Contrast, Measure, Pair

OVER: Final = {
    (False, False): "data sets",
    (True, False): "models",
    (False, True): "tasks",
    (True, True): "models and tasks",
}
"""Unit of the interval, by whether there are enough models and enough tasks."""
Key = tuple[str, str, str]
"""Model, task, and the condition of the solo runs."""


@dataclass(frozen=True)
class Pooled:
    """One measure over all conditions.

    Attributes
    ----------
    pairs, blocks
        Numbers of pairs with the measure on both sides, and of independent comparisons: pairs with a common solo run
        are one.
    conditions, models, tasks
        Their numbers of conditions, models and tasks.
    over
        The interval is valid for new ``models and tasks``, ``models``, ``tasks``, or ``data sets``.
    teams, solo, difference
        Means of cells.
    p_holm
        p-value of the difference, adjusted for all measures.
    per_protocol
        The mean of cells over blocks with readable reports; None without any.
    """

    measure: Measure
    pairs: int
    blocks: int
    conditions: int
    models: int
    tasks: int
    over: str
    teams: float
    solo: float
    difference: Estimate
    p_holm: float | None
    per_protocol: float | None


@dataclass(frozen=True)
class _Block:
    """Pairs with a common single-agent run, as one comparison."""

    pairs: int
    teams: float
    solo: float
    readable: bool

    @property
    def difference(self) -> float:
        return self.teams - self.solo


def pooled(contrasts: Sequence[Contrast], domain: Callable[[Contrast, Measure], Domain]) -> tuple[Pooled, ...]:
    """The pooled difference of each measure, in order of first occurrence.

    Parameters
    ----------
    domain
        Domain of a measure in a condition.
    """
    measures = dict.fromkeys(mean.measure for contrast in contrasts for mean in contrast.means)
    estimates = [_pooled(measure, contrasts, domain) for measure in measures]
    adjusted = holm([estimate.difference.p for estimate in estimates])
    return tuple(replace(estimate, p_holm=p) for estimate, p in zip(estimates, adjusted, strict=True))


def _pooled(measure: Measure, contrasts: Sequence[Contrast], domain: Callable[[Contrast, Measure], Domain]) -> Pooled:
    measured = [contrast for contrast in contrasts if any(mean.measure == measure for mean in contrast.means)]
    cells = _cells(measure, measured)
    models, tasks = {key[0] for key in cells}, {key[1] for key in cells}
    domains = [domain(contrast, measure) for contrast in measured]
    whole = Domain(min(part.low for part in domains), max(part.high for part in domains)).difference()
    enough = len(models) >= LEAST_CLUSTERS, len(tasks) >= LEAST_CLUSTERS
    blocks = [block for cell in cells.values() for block in cell]
    readable = [read for cell in cells.values() if (read := [b.difference for b in cell if b.readable])]
    return Pooled(
        measure,
        sum(block.pairs for block in blocks),
        len(blocks),
        len(measured),
        len(models),
        len(tasks),
        OVER[enough],
        fmean(fmean(block.teams for block in cell) for cell in cells.values()),
        fmean(fmean(block.solo for block in cell) for cell in cells.values()),
        _estimate({key: [block.difference for block in cell] for key, cell in cells.items()}, whole, *enough),
        None,
        fmean(map(fmean, readable)) if readable else None,
    )


def _cells(measure: Measure, contrasts: Sequence[Contrast]) -> dict[Key, list[_Block]]:
    shared: dict[tuple[Key, str], list[tuple[Pair, float, float]]] = {}
    for contrast in contrasts:
        condition = contrast.condition
        key = (str(condition.get("model", "")), str(condition.get("task", "")), contrast.solo_key)
        for pair in contrast.pairs:
            for comparison in pair.compared:
                if comparison.measure == measure:
                    shared.setdefault((key, min(pair.solo_runs)), []).append((pair, comparison.teams, comparison.solo))
    cells: dict[Key, list[_Block]] = {}
    for (key, _), members in shared.items():
        teams, solo = fmean(teams for _, teams, _ in members), fmean(solo for *_, solo in members)
        cells.setdefault(key, []).append(_Block(len(members), teams, solo, all(pair.readable for pair, *_ in members)))
    return cells


def _estimate(cells: Mapping[Key, Sequence[float]], domain: Domain, models: bool, tasks: bool) -> Estimate:
    """Mean of cells with its interval over models, tasks, both or neither."""
    if not models and not tasks:
        samples = [Sample.of(values, domain) for values in cells.values()]
        return intervals.mean(next(iter(cells.values())), domain) if len(cells) == 1 else intervals.average(samples)
    means = {key: fmean(values) for key, values in cells.items()}
    value = fmean(means.values())
    sides = [_by(means, place) for place, wanted in enumerate((models, tasks)) if wanted]
    parts = [(variance(side.values()) / len(side), len(side) - 1) for side in sides]
    n = min(len(side) for side in sides)
    if len(parts) == 1:
        error, df = math.sqrt(parts[0][0]), float(parts[0][1])
    else:
        # The residual is in both parts, so it is subtracted once.
        of_models, of_tasks = sides
        left = sum((mean - of_models[key[0]] - of_tasks[key[1]] + value) ** 2 for key, mean in means.items())
        freedom = len(means) - len(of_models) - len(of_tasks) + 1
        twice = left / freedom / len(means) if freedom > 0 else 0.0
        total = max(sum(part for part, _ in parts) - twice, *(part for part, _ in parts))
        error = math.sqrt(total)
        spread = sum(part**2 / own_df for part, own_df in parts)
        df = max(float(n - 1), min(total**2 / spread, float(max(df for _, df in parts)))) if spread else float(n - 1)
    return intervals.interval(value, error, df, domain, n=n, method=f"t over {OVER[models, tasks]}")


def _by(means: Mapping[Key, float], place: int) -> dict[str, float]:
    groups = grouped((key[place], mean) for key, mean in means.items())
    return {name: fmean(values) for name, values in groups.items()}


_POOLED_FIELDS: Final = ("p_holm", "over", "models", "tasks", "conditions", "pairs", "blocks", "per_protocol")


def pooled_table(estimates: Sequence[Pooled]) -> Table:
    """Estimates over all conditions, a row per measure."""
    rows = [
        {
            "judge": estimate.measure.judge,
            "measure": estimate.measure.metric,
            "teams": estimate.teams,
            "solo": estimate.solo,
            **estimate.difference.row("difference"),
            "p": estimate.difference.p,
            **{name: getattr(estimate, name) for name in _POOLED_FIELDS},
        }
        for estimate in estimates
    ]
    columns = [
        *map(Column, ("judge", "measure", "teams", "solo")),
        Column("difference", form="+.3f", shows="both"),
        Column("p_holm", "p (Holm)", ".4f"),
        Column("over", "valid for new"),
        *map(Column, ("models", "tasks", "conditions", "pairs")),
        Column("blocks", "independent pairs"),
        Column("per_protocol", "per protocol", "+.3f"),
    ]
    remarks = [
        "Differences are teams minus solo: the mean over models and tasks. Pairs with a common single-agent run "
        "count as one. p (Holm) is two-sided, adjusted for all measures of this table.",
        *notes(estimate.difference for estimate in estimates),
    ]
    if any(estimate.over == "data sets" for estimate in estimates):
        remarks.append(
            f"Valid for these models and tasks only: new ones need at least {LEAST_CLUSTERS} models or tasks."
        )
    return Table("teamwork-pooled", "Teams against one agent alone, over all conditions", columns, rows, remarks)
