"""The effect of teamwork: each run of teams paired with its twin, a single agent on equal terms.

Twins have the same kind, the same seed (so the same data set) and equal conditions in all parameters of a single agent:
task, difficulty, model, budget, visibility, prices, turns, length of replies and so on. Team size and communication
belong to teams only, so one solo run may be the twin of several conditions of teams. Runs of the same condition and
seed are averaged before pairing, and a pair counts once. By intention to treat, a run without a paper or readable
findings has accuracy 0; a second column has the mean over pairs with readable reports on both sides (per protocol).
Runs on which a judge failed are excluded from that score's mean, which has its number of pairs beside it. Skill,
accuracy beyond guessing, comes first.

A difference is teams minus solo. The interval of a mean difference is over the pairs of a condition. Scores are
compared if the same version of the same judge gave them, by the newest score of each run.

The pooled effect of all conditions has tasks and models as clusters. Pairs that share a single-agent run (for instance
with teams of several sizes) are dependent, so they are averaged first: each such block counts once. Blocks are averaged
within cells (a model on a task in one condition of the solo runs), and the pooled difference is the mean of the cells.
The interval is for new models if there are three or more, for new tasks likewise, and for both by the variance
components of a two-way table. With fewer of either it is for these models and tasks only, over data sets.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance
from typing import TYPE_CHECKING, Final, Literal

from labmates.records.events import ScoreEvent
from labmates.records.run import ENDED
from labmates.stats import intervals
from labmates.stats.domains import ANY, SHARE, Domain, Domains, unknown
from labmates.stats.intervals import LEAST_CLUSTERS, Estimate, notes
from labmates.stats.multiplicity import holm
from labmates.stats.samples import Sample
from labmates.stats.tables import Column, Table
from labmates.util.display_names import order_of_settings, settings_shown, shown_settings
from labmates.util.grouping import grouped
from labmates.workflows.science.experiment import COORDINATION, described

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.records.store import Store

OF_TEAMS_ONLY: Final = ("phases", "requests", *(metric.name for metric in COORDINATION))
"""Metrics without meaning for a single agent."""
REPEATED: Final = ("heuristic_quality",)
"""Metrics that repeat a judge's score."""
SKILL: Final = "skill"
MIXED: Final = "its teams are of different models; one agent alone is of one"
NO_SOLO: Final = "no run of one agent alone"
NO_TEAMS: Final = "no run of teams"
INTENTION: Final = (
    "A report without readable findings counts, with accuracy 0 (intention to treat); per protocol is the mean over "
    "the pairs in which all reports are readable."
)
WITHOUT_SKILL: Final = (
    "No pair has skill (accuracy beyond guessing): an earlier version judged these runs, so compare their accuracy. "
    "labmates judge adds skill where the task is of the version that made the data."
)


@dataclass(frozen=True, order=True)
class Measure:
    """A compared quantity: a judge's score, or without a judge, a number of the run (``credits``, ``tokens``)."""

    judge: str
    version: str
    metric: str


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


@dataclass(frozen=True)
class Compared:
    """One measure of one pair."""

    measure: Measure
    teams: float
    solo: float
    difference: float


@dataclass(frozen=True)
class Pair:
    """Runs of teams and of a single agent with the same seed, averaged on each side.

    `readable` if all their reports state readable findings.
    """

    seed: int
    team_runs: tuple[str, ...]
    solo_runs: tuple[str, ...]
    compared: tuple[Compared, ...]
    readable: bool


@dataclass(frozen=True)
class Mean:
    """One measure over the pairs of a condition.

    Attributes
    ----------
    pairs
        Number of pairs with the measure on both sides.
    difference
        The mean difference with its interval.
    per_protocol, readable_pairs
        The mean difference over the pairs with readable reports (None without any), and their number.
    """

    measure: Measure
    pairs: int
    teams: float
    solo: float
    difference: Estimate
    per_protocol: float | None
    readable_pairs: int


@dataclass(frozen=True)
class Contrast:
    """One condition of teams compared with a single agent."""

    kind: str
    key: str
    solo_key: str
    condition: Mapping[str, object]
    pairs: tuple[Pair, ...]
    means: tuple[Mean, ...]


@dataclass(frozen=True)
class Unpaired:
    """Runs of one condition without a twin, with the reason; `seeds` are those of `runs`."""

    side: Literal["teams", "solo"]
    kind: str
    key: str
    condition: Mapping[str, object]
    seeds: tuple[int, ...]
    runs: tuple[str, ...]
    reason: str


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


@dataclass(frozen=True)
class Teamwork:
    """All comparisons, `pooled` over conditions and by condition; `unfinished` runs are excluded."""

    pooled: tuple[Pooled, ...]
    contrasts: tuple[Contrast, ...]
    unpaired: tuple[Unpaired, ...]
    unfinished: tuple[str, ...]


def judged_runs(store: Store, runs: Sequence[RunRecord]) -> list[Judged]:
    """Runs with their scores."""
    scores: dict[str, list[ScoreEvent]] = {run.id: [] for run in runs}
    for run_id, score in store.events_of(list(scores), ScoreEvent):
        scores[run_id].append(score)
    return [Judged(run, tuple(scores[run.id])) for run in runs]


def teamwork(judged: Sequence[Judged], domains: Domains = unknown) -> Teamwork:
    """Pair runs of teams with their single-agent twins, and compare them.

    Parameters
    ----------
    domains
        Domains of metrics by condition; unnamed judges' scores are shares.
    """
    ended = [item for item in judged if item.run.status in ENDED]
    solo = [item for item in ended if item.run.condition.get("solo")]
    twins = _Twins(solo)
    contrasts: list[Contrast] = []
    unpaired: list[Unpaired] = []
    for group in _groups(item for item in ended if not item.run.condition.get("solo")):
        pairings = [(runs, twins.of(runs[0].run)) for runs in _by_seed(group)]
        if pairs := [_pair(runs, alone) for runs, alone in pairings if alone]:
            solo_key = next(alone[0].run.key for _, alone in pairings if alone)
            contrasts.append(_contrast(group[0].run, solo_key, pairs, domains))
        if lonely := [item for runs, alone in pairings if not alone for item in runs]:
            run = lonely[0].run
            is_mixed = run.models != [run.condition.get("model")]
            unpaired.append(_unpaired("teams", lonely, MIXED if is_mixed else NO_SOLO))
    paired = {run for contrast in contrasts for pair in contrast.pairs for run in pair.solo_runs}
    left_over = _groups(item for item in solo if item.run.id not in paired)
    unpaired += [_unpaired("solo", group, NO_TEAMS) for group in left_over]
    return Teamwork(
        pooled(contrasts, domains),
        tuple(contrasts),
        tuple(unpaired),
        tuple(item.run.id for item in judged if item.run.status not in ENDED),
    )


ALWAYS_SHOWN: Final = ("task", "organisation", "team_size", "model")
"""Settings in tables of conditions, also if all conditions have the same."""
HOLM: Final = "p (Holm): two-sided, adjusted for all differences of this table."


def teamwork_table(compared: Teamwork) -> Table:
    """Means of all contrasts, a row per condition of teams and measure."""
    rows = []
    conditions = [described(contrast.condition) for contrast in compared.contrasts]
    names = settings_shown(conditions, ALWAYS_SHOWN)
    in_order = [(compared.contrasts[at], conditions[at]) for at in order_of_settings(conditions, names)]
    differences = [mean.difference for contrast, _ in in_order for mean in contrast.means]
    adjusted = iter(holm([difference.p for difference in differences]))
    for contrast, condition in in_order:
        settings = {name: condition.get(name) for name in ("visibility", "difficulty")}
        settings |= shown_settings(condition, names)
        for mean in contrast.means:
            row = {**settings, "condition": contrast.key, "judge": mean.measure.judge, "measure": mean.measure.metric}
            row |= {"pairs": mean.pairs, "teams": mean.teams, "solo": mean.solo}
            row |= {"per_protocol": mean.per_protocol, "readable_pairs": mean.readable_pairs}
            rows.append({**row, **mean.difference.row("difference"), "p_holm": next(adjusted)})
    columns = [Column(name, once=True) for name in names]
    columns += [Column("judge"), Column("measure"), Column("pairs"), Column("teams"), Column("solo")]
    columns += [Column("difference", form="+.3f", shows="both"), Column("p_holm", "p (Holm)", ".4f")]
    columns += [Column("per_protocol", "per protocol", form="+.3f"), Column("readable_pairs", "readable pairs")]
    remarks = ["Differences are teams minus solo, the mean over pairs.", HOLM, INTENTION, *notes(differences)]
    if not any(mean.measure.metric == SKILL for contrast in compared.contrasts for mean in contrast.means):
        remarks.append(WITHOUT_SKILL)
    remarks += [f"{len(u.runs)} runs of {u.side} have no partner: {u.reason}." for u in compared.unpaired]
    return Table("teamwork", "Teams against one agent alone", columns, rows, remarks)


def measures(judged: Judged) -> dict[Measure, float]:
    """Comparable measures of a run: judges' scores, other metrics, tokens and credits."""
    run = judged.run
    # The part after a plus sign names a fallback, not another judge.
    values = {
        Measure(score.judge, score.version.partition("+")[0], score.metric): score.intended
        for score in judged.scores
        if score.intended is not None
    }
    known = {score.metric for score in judged.scores} | {*OF_TEAMS_ONLY, *REPEATED}
    values |= {Measure("", "", name): value for name, value in run.metrics.items() if name not in known}
    values[Measure("", "", "tokens")] = run.usage.input_tokens + run.usage.output_tokens
    if run.budget is not None:
        values[Measure("", "", "credits")] = float(run.budget["spent"])
    return values


class _Twins:
    """Single-agent runs, looked up by the parameters common to teams."""

    def __init__(self, solo: Iterable[Judged]) -> None:
        self._by_fields: dict[tuple[str, ...], dict[str, list[Judged]]] = {}
        for twin in solo:
            fields = tuple(sorted(twin.run.condition.keys() - {"solo"}))
            self._by_fields.setdefault(fields, {}).setdefault(_shared(twin.run, fields), []).append(twin)

    def of(self, run: RunRecord) -> list[Judged]:
        """Twins of a run of teams."""
        return [twin for fields, twins in self._by_fields.items() for twin in twins.get(_shared(run, fields), ())]


def _shared(run: RunRecord, fields: Sequence[str]) -> str:
    return json.dumps(
        [run.kind, run.seed, run.settings.get("salt"), run.models, [run.condition.get(name) for name in fields]],
        sort_keys=True,
        default=str,
    )


def _groups(judged: Iterable[Judged]) -> list[list[Judged]]:
    """Runs by condition, in order of first occurrence."""
    return list(grouped((item.run.key, item) for item in judged).values())


def _by_seed(group: Sequence[Judged]) -> list[list[Judged]]:
    return [runs for _, runs in sorted(grouped((item.run.seed, item) for item in group).items())]


def _pair(teams: Sequence[Judged], solo: Sequence[Judged]) -> Pair:
    ours, theirs = _average(teams), _average(solo)
    return Pair(
        teams[0].run.seed,
        tuple(item.run.id for item in teams),
        tuple(item.run.id for item in solo),
        tuple(Compared(name, ours[name], theirs[name], ours[name] - theirs[name]) for name in ours if name in theirs),
        all(item.readable for item in (*teams, *solo)),
    )


def _average(judged: Sequence[Judged]) -> dict[Measure, float]:
    values = grouped((name, value) for item in judged for name, value in measures(item).items())
    return {name: fmean(many) for name, many in values.items()}


def _contrast(run: RunRecord, solo_key: str, pairs: Sequence[Pair], domains: Domains) -> Contrast:
    by_measure = grouped(
        (comparison.measure, (comparison, pair.readable)) for pair in pairs for comparison in pair.compared
    )
    # Skill first, then other judges' scores, the runs' numbers last.
    order = sorted(by_measure, key=lambda measure: (measure.metric != SKILL, not measure.judge))
    means = tuple(_mean(measure, by_measure[measure], domains(run.condition)) for measure in order)
    return Contrast(run.kind, run.key, solo_key, run.condition, tuple(pairs), means)


def _mean(measure: Measure, samples: Sequence[tuple[Compared, bool]], domains: Mapping[str, Domain]) -> Mean:
    compared = [comparison for comparison, _ in samples]
    read = [comparison.difference for comparison, readable in samples if readable]
    difference = intervals.mean([c.difference for c in compared], _domain(measure, domains).difference())
    teams, solo = fmean(c.teams for c in compared), fmean(c.solo for c in compared)
    return Mean(measure, len(compared), teams, solo, difference, fmean(read) if read else None, len(read))


def _domain(measure: Measure, domains: Mapping[str, Domain]) -> Domain:
    return domains.get(measure.metric, SHARE if measure.judge else ANY)


def _unpaired(side: Literal["teams", "solo"], judged: Sequence[Judged], reason: str) -> Unpaired:
    run = judged[0].run
    runs = sorted((item.run for item in judged), key=lambda run: run.seed)
    seeds, ids = tuple(run.seed for run in runs), tuple(run.id for run in runs)
    return Unpaired(side, run.kind, run.key, run.condition, seeds, ids, reason)


def pooled(contrasts: Sequence[Contrast], domains: Domains) -> tuple[Pooled, ...]:
    """The pooled difference of each measure, in order of first occurrence."""
    measures = dict.fromkeys(mean.measure for contrast in contrasts for mean in contrast.means)
    estimates = [_pooled(measure, contrasts, domains) for measure in measures]
    adjusted = holm([estimate.difference.p for estimate in estimates])
    return tuple(replace(estimate, p_holm=p) for estimate, p in zip(estimates, adjusted, strict=True))


def _pooled(measure: Measure, contrasts: Sequence[Contrast], domains: Domains) -> Pooled:
    measured = [contrast for contrast in contrasts if any(mean.measure == measure for mean in contrast.means)]
    cells = _cells(measure, measured)
    models, tasks = {key[0] for key in cells}, {key[1] for key in cells}
    parts = [_domain(measure, domains(contrast.condition)) for contrast in measured]
    whole = Domain(min(part.low for part in parts), max(part.high for part in parts)).difference()
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
