"""Contrasts: which levels of the factors of a design differ, where all else is equal.

Levels of a factor are compared in strata: runs that are equal in all that is never compared across, and in the levels
of the other factors. Each such stratum counts alike; what is independent in it are the runs. Models are also compared
within each run, in the same place. P values are adjusted (Holm) for all pairs of a factor.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from labmates.stats.domains import ANY, Domain
from labmates.stats.figures import GREY, Drawing, add_legend_beside, error_bars, look, new_figure
from labmates.stats.intervals import Estimate, against_zero, combination, notes
from labmates.stats.multiplicity import SIGNIFICANT, holm, mark
from labmates.stats.samples import Sample, pooled
from labmates.stats.tables import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_DRAWN: Final = 60


@dataclass(frozen=True)
class Observed:
    """The actions and payoffs of one agent in a run.

    Attributes
    ----------
    place
        What has to be the same where models are compared within a run: a seat and its co-players, for instance.
    values
        By outcome, as far as there are any.
    """

    model: str
    place: Hashable
    values: Mapping[str, float]


@dataclass(frozen=True)
class Run:
    """One run as contrasts see it.

    Attributes
    ----------
    same
        What is never compared across.
    levels
        By factor.
    observed
        The run's own value of an outcome is the mean over these.
    parts
        By what else the runs can be divided.
    """

    same: Hashable
    levels: Mapping[str, str]
    observed: tuple[Observed, ...]
    parts: Mapping[str, str] = field(default_factory=dict)

    def part(self, name: str) -> str | None:
        """The part that it belongs to; None if it is not divided by this."""
        return self.levels.get(name, self.parts.get(name))


@dataclass(frozen=True)
class Design:
    """The comparisons of an experiment.

    Attributes
    ----------
    outcomes
        The values that differences in them can take, by name.
    remark
        What outcomes are, in sentences.
    within_runs
        What the comparison of models within runs is called.
    """

    runs: Sequence[Run]
    outcomes: Mapping[str, Domain]
    remark: str
    within_runs: str = "model"


@dataclass(frozen=True)
class Contrast:
    """The difference between two levels of a factor: `first` minus `second`.

    Attributes
    ----------
    strata
        How many equal conditions it is the mean over.
    p, p_holm
        Two-sided; None where there is no interval.
    """

    factor: str
    outcome: str
    first: str
    second: str
    strata: int
    difference: Estimate
    p: float | None
    p_holm: float | None = None


def contrasts(design: Design, runs: Sequence[Run] | None = None) -> list[Contrast]:
    """All contrasts of each factor that has two levels or more, models within runs included.

    Parameters
    ----------
    runs
        Some of the design's runs; by default all.
    """
    runs = design.runs if runs is None else runs
    factors = [name for name in runs[0].levels if len({run.levels[name] for run in runs}) > 1] if runs else []
    differences: list[Contrast] = []
    for outcome in design.outcomes:
        for factor in factors:
            differences += _adjusted(_of_factor(design, runs, factor, outcome))
        differences += _adjusted(_of_models(design, runs, outcome))
    return differences


def _of_factor(design: Design, runs: Sequence[Run], factor: str, outcome: str) -> Iterator[Contrast]:
    values: dict[tuple[Hashable, str], list[float]] = {}
    for run in runs:
        if measured := [one.values[outcome] for one in run.observed if outcome in one.values]:
            stratum = (run.same, *(level for name, level in run.levels.items() if name != factor))
            values.setdefault((stratum, run.levels[factor]), []).append(fmean(measured))
    cells = _cells(values)
    levels = dict.fromkeys(level for _, level in cells)
    strata = dict.fromkeys(stratum for stratum, _ in cells)
    for second, first in combinations(levels, 2):
        both = [stratum for stratum in strata if {(stratum, first), (stratum, second)} <= cells.keys()]
        parts = [
            (sign / len(both), cells[stratum, level]) for stratum in both for level, sign in ((first, 1), (second, -1))
        ]
        if parts:
            yield _contrast(design, factor, outcome, (first, second), parts)


def _of_models(design: Design, runs: Sequence[Run], outcome: str) -> Iterator[Contrast]:
    values: dict[tuple[Hashable, tuple[str, str]], list[float]] = {}
    for run in runs:
        by_place: dict[str, dict[Hashable, list[float]]] = {}
        for agent in run.observed:
            if outcome in agent.values:
                by_place.setdefault(agent.model, {}).setdefault(agent.place, []).append(agent.values[outcome])
        for second, first in combinations(by_place, 2):
            shared = by_place[first].keys() & by_place[second].keys()
            gains = [fmean(by_place[first][place]) - fmean(by_place[second][place]) for place in shared]
            if gains:
                stratum = (run.same, *run.levels.values())
                values.setdefault((stratum, (first, second)), []).append(fmean(sorted(gains)))
    cells = _cells(values)
    for first, second in dict.fromkeys(pair for _, pair in cells):
        own = [cell for (_, pair), cell in cells.items() if pair == (first, second)]
        parts = [(1 / len(own), cell) for cell in own]
        yield _contrast(design, design.within_runs, outcome, (first, second), parts)


def _cells(values: Mapping[tuple[Hashable, Any], Sequence[float]]) -> dict[tuple[Hashable, Any], Sample]:
    """Samples of runs, their variances pooled over the design."""
    return dict(zip(values, pooled([Sample.of(some, ANY) for some in values.values()]), strict=True))


def _contrast(
    design: Design, factor: str, outcome: str, levels: tuple[str, str], parts: Sequence[tuple[float, Sample]]
) -> Contrast:
    domain = design.outcomes[outcome]
    difference = combination(parts, domain)
    strata = sum(weight > 0 for weight, _ in parts)
    return Contrast(factor, outcome, *levels, strata, difference, against_zero(difference, domain))


def _adjusted(differences: Iterable[Contrast]) -> list[Contrast]:
    all_ = list(differences)
    return [replace(one, p_holm=adjusted) for one, adjusted in zip(all_, holm([one.p for one in all_]), strict=True)]


Found = Mapping[str, Sequence[Contrast]]
"""Contrasts by what they are within."""


def contrasts_table(contrasts: Found, remark: str) -> Table:
    """The table of all contrasts, a row for each pair of levels.

    Parameters
    ----------
    remark
        What the outcomes are.
    """
    rows = [_row(part, contrast) for part, some in contrasts.items() for contrast in some]
    columns = [Column(name, once=True) for name in ("within", "outcome", "factor")]
    columns += [Column("first"), Column("second", "minus"), Column("strata"), Column("difference_n", "runs")]
    columns += [Column("difference", form="+.3f", shows="both", marked="mark")]
    columns += [Column("p", form=".4f"), Column("p_holm", "p (Holm)", ".4f")]
    remarks = [
        remark,
        "Strata: equal conditions that a difference is the mean over; runs: the fewest in one of them. "
        f"‡: p (Holm) below {SIGNIFICANT}, adjusted for all pairs of a factor.",
        *notes(contrast.difference for some in contrasts.values() for contrast in some),
    ]
    return Table("contrasts", "Contrasts", columns, rows, remarks)


def _row(part: str, contrast: Contrast) -> dict[str, Any]:
    difference = contrast.difference
    leaves_out = (
        difference.low is not None and difference.high is not None and not difference.low <= 0 <= difference.high
    )
    return {
        "within": part,
        "outcome": contrast.outcome,
        "factor": contrast.factor,
        "first": contrast.first,
        "second": contrast.second,
        "strata": contrast.strata,
        **difference.row("difference"),
        "p": contrast.p,
        "p_holm": contrast.p_holm,
        "mark": mark(leaves_out, contrast.p_holm),
    }


def verdict(contrasts: Sequence[Contrast]) -> list[str]:
    """For each outcome, how far the levels of each factor are apart, the largest first."""
    sentences = []
    for outcome in dict.fromkeys(one.outcome for one in contrasts):
        largest: dict[str, Contrast] = {}
        for contrast in contrasts:
            before = largest.get(contrast.factor)
            if contrast.outcome == outcome and (
                before is None or abs(contrast.difference.value) > abs(before.difference.value)
            ):
                largest[contrast.factor] = contrast
        ordered = sorted(largest.values(), key=lambda one: -abs(one.difference.value))
        differences = [f"{one.factor} {one.difference.value:+.2f} ({one.first} minus {one.second})" for one in ordered]
        if differences:
            sentences.append(f"Largest difference in {outcome} by factor: {'; '.join(differences)}.")
    return sentences


def contrasts_drawing(contrasts: Found) -> Iterator[Drawing]:
    """A figure of the contrasts of each outcome over all runs."""
    for outcome in dict.fromkeys(one.outcome for one in contrasts["all"]):
        own = [one for one in contrasts["all"] if one.outcome == outcome][:_MOST_DRAWN]
        alt = f"Differences in {outcome} between levels of each factor, with intervals; the table has the numbers."
        name = f"contrasts-{outcome.replace(' ', '-')}"
        yield Drawing(name, f"Differences in {outcome}", alt, partial(contrasts_figure, own))


def contrasts_figure(contrasts: Sequence[Contrast]) -> Figure:
    """Draw differences with their intervals, a row for each pair of levels, factors by colour and marker."""
    factors = list(dict.fromkeys(one.factor for one in contrasts))
    figure, [ax] = new_figure(7.2, 0.8 + 0.24 * len(contrasts))
    for number, factor in enumerate(factors):
        places = [place for place, one in enumerate(contrasts) if one.factor == factor]
        values = [contrasts[place].difference.value for place in places]
        reach = error_bars([contrasts[place].difference for place in places])
        colour, marker = look(number)
        ax.errorbar(
            values, places, xerr=reach, fmt=marker, color=colour, markersize=4, capsize=2, linewidth=1, label=factor
        )
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_yticks(range(len(contrasts)), [f"{one.first} − {one.second}" for one in contrasts], fontsize=7)
    ax.set_ylim(len(contrasts) - 0.5, -0.5)
    ax.set_xlabel(f"difference in {contrasts[0].outcome}, 95 % interval")
    add_legend_beside(ax)
    return figure
