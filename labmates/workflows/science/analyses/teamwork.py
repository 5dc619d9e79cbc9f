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
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final, Literal

from labmates.records.events import ScoreEvent
from labmates.records.run import ENDED
from labmates.stats import intervals
from labmates.stats.domains import ANY, SHARE, Domain, Domains, unknown
from labmates.stats.intervals import Estimate, notes
from labmates.stats.multiplicity import holm
from labmates.stats.tables import Column, Table
from labmates.util.display_names import order_of_settings, settings_shown, shown_settings
from labmates.util.grouping import grouped
from labmates.workflows.science.analyses.pooled import Pooled, pooled
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
        pooled(contrasts, lambda contrast, measure: _domain(measure, domains(contrast.condition))),
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
