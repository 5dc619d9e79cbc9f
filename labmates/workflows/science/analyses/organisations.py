"""Comparison of organisations: score, money and time, paired by seed with all else equal.

Runs are grouped into *places*: equal task, difficulty, model, budget, evidence and all other parameters except those of
organisations. Runs of one organisation, place and seed are averaged; differences are over common seeds. All differences
in score are adjusted together (Holm). An organisation is on the Pareto front of its place if no other has a higher mean
score for no more money; its share of the front is over resamples of the common seeds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from labmates.stats import intervals
from labmates.stats.domains import ANY, SHARE, Domain
from labmates.stats.figures import error_bars, look, new_figure
from labmates.stats.intervals import Estimate, notes
from labmates.stats.multiplicity import holm
from labmates.stats.tables import Column, Table
from labmates.workflows.science.analyses.necessity import team_name
from labmates.workflows.science.experiment import METRICS
from labmates.workflows.science.lab.condition import TEAM_FIELDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from labmates.records.run import RunRecord

OF_ORGANISATIONS: Final = (*TEAM_FIELDS, "organisation", "solo", "arm")
HEADS: Final = ("task", "difficulty", "model", "budget", "evidence")
RESAMPLES: Final = 2_000
SIGNIFICANT: Final = 0.05


@dataclass(frozen=True)
class Outcome:
    """Score, dollars and seconds of one organisation in one place, by seed, averaged over runs of a seed."""

    name: str
    by_seed: Mapping[int, Mapping[str, float]]

    def column(self, measure: str, seeds: Sequence[int] | None = None) -> list[float]:
        """The values of a measure, by default of all seeds."""
        return [self.by_seed[seed][measure] for seed in (self.by_seed if seeds is None else seeds)]

    def mean(self, measure: str) -> float:
        """The mean of a measure over seeds."""
        return fmean(self.column(measure))


@dataclass(frozen=True)
class Difference:
    """One organisation minus another over common seeds; `p_holm` is adjusted for all differences in score."""

    first: str
    second: str
    seeds: int
    score: Estimate
    dollars: Estimate
    p_holm: float | None = None


@dataclass(frozen=True)
class Place:
    """The organisations of one place, the highest mean score first.

    Attributes
    ----------
    settings
        Their common parameters.
    front
        Share of resamples with the organisation on the front, by name; empty with fewer than three common seeds.
    """

    settings: Mapping[str, Any]
    outcomes: Sequence[Outcome]
    differences: Sequence[Difference] = ()
    front: Mapping[str, float] = field(default_factory=dict)

    @property
    def leading(self) -> list[str]:
        """The organisations on the front of means, from the highest score to the lowest cost."""
        points = [(outcome.mean("score"), outcome.mean("dollars")) for outcome in self.outcomes]
        is_leading = on_front(np.array([points]))[0]
        return [outcome.name for outcome, leads in zip(self.outcomes, is_leading, strict=True) if leads]


def places(runs: Sequence[RunRecord], score: str) -> list[Place]:
    """Places with two or more organisations with this metric, with differences and fronts."""
    cells: dict[str, dict[str, dict[int, list[Mapping[str, float]]]]] = {}
    for run in runs:
        if score not in run.metrics or run.budget is None:
            continue
        settings = {name: value for name, value in run.condition.items() if name not in OF_ORGANISATIONS}
        by_name = cells.setdefault(json.dumps(settings, sort_keys=True, default=str), {})
        values = {"score": float(run.metrics[score]), "dollars": float(run.budget["spent"]), "seconds": run.seconds}
        by_name.setdefault(label(run.condition), {}).setdefault(run.seed, []).append(values)
    compared = [_place(json.loads(text), by_name, score) for text, by_name in sorted(cells.items()) if len(by_name) > 1]
    return _adjusted(compared)


def label(condition: Mapping[str, Any]) -> str:
    """The organisation of a condition with its parameters, in a few words."""
    words = [team_name(condition)]
    words += [str(condition["arm"])] if "arm" in condition else []
    words += ["theory of mind"] if condition.get("theory_of_mind") else []
    words += [f"{seat}={model}" for seat, model in (condition.get("model_for") or {}).items()]
    return ", ".join(words)


def _place(
    settings: Mapping[str, Any], by_name: Mapping[str, Mapping[int, list[Mapping[str, float]]]], score: str
) -> Place:
    def averaged(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
        return {measure: fmean(run[measure] for run in runs) for measure in runs[0]}

    outcomes = [
        Outcome(name, {seed: averaged(values) for seed, values in sorted(seeds.items())})
        for name, seeds in by_name.items()
    ]
    outcomes.sort(key=lambda outcome: (-outcome.mean("score"), outcome.mean("dollars")))
    differences = [d for pair in combinations(outcomes, 2) if (d := _difference(*pair, domain_of(score)))]
    return Place(settings, outcomes, differences, _front(outcomes))


def _difference(first: Outcome, second: Outcome, domain: Domain) -> Difference | None:
    seeds = [seed for seed in first.by_seed if seed in second.by_seed]
    if not seeds:
        return None

    def over(measure: str, domain: Domain) -> Estimate:
        pairs = zip(first.column(measure, seeds), second.column(measure, seeds), strict=True)
        return intervals.mean([a - b for a, b in pairs], domain.difference())

    return Difference(first.name, second.name, len(seeds), over("score", domain), over("dollars", ANY))


def _adjusted(compared: Sequence[Place]) -> list[Place]:
    adjusted = iter(holm([difference.score.p for place in compared for difference in place.differences]))
    return [
        replace(place, differences=[replace(d, p_holm=next(adjusted)) for d in place.differences]) for place in compared
    ]


def _front(outcomes: Sequence[Outcome]) -> dict[str, float]:
    seeds = sorted(set.intersection(*({*outcome.by_seed} for outcome in outcomes)))
    if len(seeds) < 3:
        return {}
    points = np.array([[outcome.column(measure, seeds) for measure in ("score", "dollars")] for outcome in outcomes])
    drawn = np.random.default_rng(0).integers(len(seeds), size=(RESAMPLES, len(seeds)))
    shares = on_front(points[..., drawn].mean(axis=3).transpose(2, 0, 1)).mean(axis=0)
    return {outcome.name: float(share) for outcome, share in zip(outcomes, shares, strict=True)}


def on_front(points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each point is on the Pareto front of its sample, shape (samples, points).

    Parameters
    ----------
    points
        Score and dollars of each point, shape (samples, points, 2).
    """
    score, money = points[..., 0], points[..., 1]
    no_worse = (score[:, :, None] >= score[:, None, :]) & (money[:, :, None] <= money[:, None, :])
    better = (score[:, :, None] > score[:, None, :]) | (money[:, :, None] < money[:, None, :])
    return np.logical_not((no_worse & better).any(axis=1))


def domain_of(score: str) -> Domain:
    """The domain of a metric."""
    domains = {metric.name: metric.domain for metric in METRICS}
    domain = domains.get(score, SHARE)
    return domain if isinstance(domain, Domain) else ANY


def outcomes_table(compared: Sequence[Place], score: str) -> Table:
    """Score, money and time of each organisation in each place."""
    rows = [
        {name: place.settings.get(name) for name in HEADS}
        | {"organisation": outcome.name, "seeds": len(outcome.by_seed)}
        | intervals.mean(outcome.column("score"), domain_of(score)).row("score")
        | intervals.mean(outcome.column("dollars"), ANY).row("dollars")
        | {"on_front": outcome.name in place.leading, "seconds": outcome.mean("seconds")}
        | {"front_share": place.front.get(outcome.name)}
        for place in compared
        for outcome in place.outcomes
    ]
    columns = [*(Column(name, once=True) for name in HEADS), Column("organisation"), Column("seeds")]
    columns += [Column("score", score, ".3f", "both")]
    columns += [Column("dollars", form=".3f", shows="both"), Column("seconds", form=".0f")]
    columns += [Column("on_front", "on the front"), Column("front_share", "share of resamples on it", ".2f")]
    note = "On the front: no other organisation has at least the score for at most the money, one of them strictly."
    return Table("organisations", "Score, money and time by organisation", columns, rows, [note])


def differences_table(compared: Sequence[Place], score: str) -> Table:
    """The differences between all pairs of organisations of a place."""
    rows = [
        {name: place.settings.get(name) for name in HEADS}
        | {"first": d.first, "second": d.second, "seeds": d.seeds, "p_holm": d.p_holm}
        | d.score.row("score")
        | d.dollars.row("dollars")
        for place in compared
        for d in place.differences
    ]
    columns = [*(Column(name, once=True) for name in HEADS), Column("first"), Column("second"), Column("seeds")]
    columns += [Column("score", score, "+.3f", "both"), Column("p_holm", "p (Holm)", ".4f")]
    columns += [Column("dollars", form="+.3f", shows="both")]
    remarks = ["First minus second, over common seeds; p is adjusted for all differences in score."]
    remarks += notes([difference.score for place in compared for difference in place.differences])
    return Table("organisation_differences", "Organisations side by side", columns, rows, remarks)


def verdicts(compared: Sequence[Place], score: str) -> Iterator[str]:
    """A sentence per place: the leading organisation, those it beats, and the cheapest on the front."""
    for place in compared:
        best, *rest = place.outcomes
        sure = {d.second for d in place.differences if d.first == best.name and _is_sure(d)}
        beaten = [other.name for other in rest if other.name in sure]
        open_ = [other.name for other in rest if other.name not in sure]
        where = ", ".join(str(place.settings[name]) for name in HEADS if name in place.settings)
        means = f"{best.mean('score'):.3f} for ${best.mean('dollars'):.3f}"
        parts = [f"{where}: {best.name} has the highest {score} ({means})"]
        parts += [f"it beats {' and '.join(beaten)}"] if beaten else []
        parts += [f"the runs can't separate it from {' and '.join(open_)}"] if open_ else []
        cheapest = place.leading[-1]
        costs_less = f"{cheapest} costs least on the front"
        parts.append(costs_less if cheapest != best.name else "nothing on the front costs less")
        yield f"{'; '.join(parts)}."


def _is_sure(difference: Difference) -> bool:
    return difference.p_holm is not None and difference.p_holm < SIGNIFICANT


def front_figure(place: Place, score: str) -> Figure:
    """Draw score against money with intervals, and a line through the front."""
    figure, [ax] = new_figure(6.4, 4.2)
    for number, outcome in enumerate(place.outcomes):
        colour, marker = look(number)
        money = intervals.mean(outcome.column("dollars"))
        value = intervals.mean(outcome.column("score"), domain_of(score))
        ax.errorbar(
            [money.value], [value.value], error_bars([value]), error_bars([money]),
            fmt=marker, color=colour, capsize=2, label=outcome.name,
        )  # fmt: skip
    front = sorted((o.mean("dollars"), o.mean("score")) for o in place.outcomes if o.name in place.leading)
    ax.plot(*zip(*front, strict=True), color="grey", linewidth=0.8, zorder=0)
    ax.set_xlabel("dollars, 95 % interval")
    ax.set_ylabel(f"{score}, 95 % interval")
    ax.legend(fontsize=8, frameon=False)
    return figure
