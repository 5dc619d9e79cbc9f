"""One answer over all conditions: what working as teams brings, with tasks and models as clusters.

Pairs that share a run of one agent alone (teams of several sizes, say) are averaged first, since its luck is in all of
them: each such block counts once. Blocks are averaged within cells, a model on a task under equal terms of the solo
runs, and the pooled difference is the mean of the cells.

The interval is for new models where there are three or more, for new tasks likewise, and for both at once by the
variance components of a two-way table. With fewer of either it is for these models and tasks alone, over data sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance
from typing import TYPE_CHECKING, Final

from labmates.grouping import grouped
from labmates.stats import intervals
from labmates.stats.domains import Domain
from labmates.stats.intervals import LEAST_CLUSTERS, Estimate, notes
from labmates.stats.multiplicity import holm
from labmates.stats.samples import Sample
from labmates.stats.tables import Column, Table

if TYPE_CHECKING:
    from labmates.workflows.science.teamwork import Contrast, Measure, Pair

OVER: Final = {
    (False, False): "data sets",
    (True, False): "models",
    (False, True): "tasks",
    (True, True): "models and tasks",
}
"""What the interval is over, by whether there are enough models and tasks."""
Key = tuple[str, str, str]
"""Model, task, and the condition of the solo runs."""


@dataclass(frozen=True)
class Pooled:
    """One measure over all conditions.

    Attributes
    ----------
    pairs, blocks
        Pairs that have it on both sides, and independent comparisons: pairs that share a solo run are one.
    conditions, models, tasks
        How many they are of.
    over
        What the interval holds for new ones of: ``models and tasks``, ``models``, ``tasks``, or ``data sets``.
    teams, solo, difference
        Means of cells.
    p_holm
        Of the difference, adjusted for all measures.
    per_protocol
        The mean of cells over blocks in which all reports can be read; None without any.
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
    """Pairs that share a run of one agent alone, as one comparison."""

    pairs: int
    teams: float
    solo: float
    readable: bool

    @property
    def difference(self) -> float:
        return self.teams - self.solo


def pooled(contrasts: Sequence[Contrast], domain: Callable[[Contrast, Measure], Domain]) -> tuple[Pooled, ...]:
    """Pooled difference of each measure, in the order of the first condition that has it.

    Parameters
    ----------
    domain
        Returns the values that a measure can take in a condition.
    """
    measures = dict.fromkeys(mean.measure for contrast in contrasts for mean in contrast.means)
    estimates = [_pooled(measure, contrasts, domain) for measure in measures]
    adjusted = holm([one.difference.p for one in estimates])
    return tuple(replace(one, p_holm=p) for one, p in zip(estimates, adjusted, strict=True))


def _pooled(measure: Measure, contrasts: Sequence[Contrast], domain: Callable[[Contrast, Measure], Domain]) -> Pooled:
    mine = [one for one in contrasts if any(mean.measure == measure for mean in one.means)]
    cells = _cells(measure, mine)
    models, tasks = {key[0] for key in cells}, {key[1] for key in cells}
    domains = [domain(one, measure) for one in mine]
    whole = Domain(min(one.low for one in domains), max(one.high for one in domains)).difference()
    enough = len(models) >= LEAST_CLUSTERS, len(tasks) >= LEAST_CLUSTERS
    blocks = [block for some in cells.values() for block in some]
    readable = [read for some in cells.values() if (read := [one.difference for one in some if one.readable])]
    return Pooled(
        measure,
        sum(block.pairs for block in blocks),
        len(blocks),
        len(mine),
        len(models),
        len(tasks),
        OVER[enough],
        fmean(fmean(block.teams for block in some) for some in cells.values()),
        fmean(fmean(block.solo for block in some) for some in cells.values()),
        _estimate({key: [one.difference for one in some] for key, some in cells.items()}, whole, *enough),
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
    for (key, _), some in shared.items():
        teams, solo = fmean(comparison[1] for comparison in some), fmean(comparison[2] for comparison in some)
        cells.setdefault(key, []).append(_Block(len(some), teams, solo, all(pair.readable for pair, *_ in some)))
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
        # The residual is in both parts, and counts once.
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
    return {name: fmean(some) for name, some in groups.items()}


def pooled_table(estimates: Sequence[Pooled]) -> Table:
    """Estimates over all conditions, a row for each measure."""
    rows = [
        {
            "judge": one.measure.judge,
            "measure": one.measure.metric,
            "teams": one.teams,
            "solo": one.solo,
            **one.difference.row("difference"),
            "p": one.difference.p,
            "p_holm": one.p_holm,
            "over": one.over,
            "models": one.models,
            "tasks": one.tasks,
            "conditions": one.conditions,
            "pairs": one.pairs,
            "blocks": one.blocks,
            "per_protocol": one.per_protocol,
        }
        for one in estimates
    ]
    columns = [
        *map(Column, ("judge", "measure", "teams", "solo")),
        Column("difference", form="+.3f", shows="both"),
        Column("p_holm", "p (Holm)", ".4f"),
        Column("over", "holds for new"),
        *map(Column, ("models", "tasks", "conditions", "pairs")),
        Column("blocks", "independent pairs"),
        Column("per_protocol", "per protocol", "+.3f"),
    ]
    remarks = [
        "Differences are teams minus solo: the mean over models and tasks. Pairs that share a run of one agent alone "
        "count as one. p (Holm) is two-sided, adjusted for all measures of this table.",
        *notes(one.difference for one in estimates),
    ]
    if any(one.over == "data sets" for one in estimates):
        remarks.append(
            f"For these models and tasks alone: new ones need {LEAST_CLUSTERS} models or tasks at the least."
        )
    return Table("teamwork-pooled", "Teams against one agent alone, over all conditions", columns, rows, remarks)
