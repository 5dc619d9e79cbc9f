"""Contrasts: differences between the levels of a design's factors, all else equal.

Levels of a factor are compared in strata: runs with the same material and the same levels of the other factors. Strata
have equal weights, and runs are the independent units in each. Models are also compared within each run, in the same
place. P values are Holm-adjusted for all pairs of a factor.
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
    """Outcomes of one agent in a run.

    Attributes
    ----------
    place
        The comparison of models within a run matches this, for instance a seat and its co-players.
    values
        By outcome; missing outcomes are left out.
    """

    model: str
    place: Hashable
    values: Mapping[str, float]


@dataclass(frozen=True)
class Run:
    """A run as contrasts use it.

    Attributes
    ----------
    same
        Only runs with equal values are compared.
    levels
        By factor.
    observed
        The run's value of an outcome is the mean over these.
    parts
        Further partitions of the runs.
    """

    same: Hashable
    levels: Mapping[str, str]
    observed: tuple[Observed, ...]
    parts: Mapping[str, str] = field(default_factory=dict)

    def part(self, name: str) -> str | None:
        """The part of the run in a partition; None if it has none."""
        return self.levels.get(name, self.parts.get(name))


@dataclass(frozen=True)
class Design:
    """The comparisons of an experiment.

    Attributes
    ----------
    outcomes
        The domains of their differences, by name.
    remark
        Description of the outcomes, in sentences.
    within_runs
        Name of the comparison of models within runs.
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
        Number of strata averaged.
    p, p_holm
        Two-sided; None without an interval.
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
    """All contrasts of each factor with at least two levels, including models within runs.

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
        if values_of_run := [agent.values[outcome] for agent in run.observed if outcome in agent.values]:
            stratum = (run.same, *(level for name, level in run.levels.items() if name != factor))
            values.setdefault((stratum, run.levels[factor]), []).append(fmean(values_of_run))
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
        strata = [cell for (_, pair), cell in cells.items() if pair == (first, second)]
        parts = [(1 / len(strata), cell) for cell in strata]
        yield _contrast(design, design.within_runs, outcome, (first, second), parts)


def _cells(values: Mapping[tuple[Hashable, Any], Sequence[float]]) -> dict[tuple[Hashable, Any], Sample]:
    """Samples of runs, with variances pooled over the design."""
    return dict(zip(values, pooled([Sample.of(runs, ANY) for runs in values.values()]), strict=True))


def _contrast(
    design: Design, factor: str, outcome: str, levels: tuple[str, str], parts: Sequence[tuple[float, Sample]]
) -> Contrast:
    domain = design.outcomes[outcome]
    difference = combination(parts, domain)
    strata = sum(weight > 0 for weight, _ in parts)
    return Contrast(factor, outcome, *levels, strata, difference, against_zero(difference, domain))


def _adjusted(differences: Iterable[Contrast]) -> list[Contrast]:
    contrasts = list(differences)
    p_values = holm([contrast.p for contrast in contrasts])
    return [replace(contrast, p_holm=p) for contrast, p in zip(contrasts, p_values, strict=True)]


Parts = Mapping[str, Sequence[Contrast]]
"""Contrasts by the part of the runs that they compare."""


def contrasts_table(contrasts: Parts, remark: str) -> Table:
    """The table of all contrasts, one row per pair of levels; `remark` describes the outcomes."""
    rows = [_row(part, contrast) for part, some in contrasts.items() for contrast in some]
    columns = [Column(name, once=True) for name in ("within", "outcome", "factor")]
    columns += [Column("first"), Column("second", "minus"), Column("strata"), Column("difference_n", "runs")]
    columns += [Column("difference", form="+.3f", shows="both", marked="mark")]
    columns += [Column("p", form=".4f"), Column("p_holm", "p (Holm)", ".4f")]
    remarks = [
        remark,
        "Strata: equal conditions averaged in a difference; runs: the minimum over strata. "
        f"‡: p (Holm) below {SIGNIFICANT}, adjusted for all pairs of a factor.",
        *notes(contrast.difference for some in contrasts.values() for contrast in some),
    ]
    return Table("contrasts", "Contrasts", columns, rows, remarks)


def _row(part: str, contrast: Contrast) -> dict[str, Any]:
    difference = contrast.difference
    low, high = difference.low, difference.high
    excludes_zero = low is not None and high is not None and not low <= 0 <= high
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
        "mark": mark(excludes_zero, contrast.p_holm),
    }


def verdict(contrasts: Sequence[Contrast]) -> list[str]:
    """For each outcome, the largest difference between levels of each factor, in descending order."""
    sentences = []
    for outcome in dict.fromkeys(contrast.outcome for contrast in contrasts):
        largest: dict[str, Contrast] = {}
        for contrast in sorted(contrasts, key=lambda contrast: -abs(contrast.difference.value)):
            if contrast.outcome == outcome:
                largest.setdefault(contrast.factor, contrast)
        differences = [
            f"{contrast.factor} {contrast.difference.value:+.2f} ({contrast.first} minus {contrast.second})"
            for contrast in largest.values()
        ]
        sentences.append(f"Largest difference in {outcome} by factor: {'; '.join(differences)}.")
    return sentences


def contrasts_drawing(contrasts: Parts) -> Iterator[Drawing]:
    """A figure of the contrasts of each outcome over all runs."""
    for outcome in dict.fromkeys(contrast.outcome for contrast in contrasts["all"]):
        shown = [contrast for contrast in contrasts["all"] if contrast.outcome == outcome][:_MOST_DRAWN]
        alt = f"Differences in {outcome} between levels of each factor, with intervals; the table has the numbers."
        name = f"contrasts-{outcome.replace(' ', '-')}"
        yield Drawing(name, f"Differences in {outcome}", alt, partial(contrasts_figure, shown))


def contrasts_figure(contrasts: Sequence[Contrast]) -> Figure:
    """Differences with their intervals, one row per pair of levels, with factors by colour and marker."""
    factors = list(dict.fromkeys(contrast.factor for contrast in contrasts))
    figure, [ax] = new_figure(7.2, 0.8 + 0.24 * len(contrasts))
    for number, factor in enumerate(factors):
        places = [place for place, contrast in enumerate(contrasts) if contrast.factor == factor]
        values = [contrasts[place].difference.value for place in places]
        reach = error_bars([contrasts[place].difference for place in places])
        colour, marker = look(number)
        ax.errorbar(
            values, places, xerr=reach, fmt=marker, color=colour, markersize=4, capsize=2, linewidth=1, label=factor
        )
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_yticks(range(len(contrasts)), [f"{each.first} − {each.second}" for each in contrasts], fontsize=7)
    ax.set_ylim(len(contrasts) - 0.5, -0.5)
    ax.set_xlabel(f"difference in {contrasts[0].outcome}, 95 % interval")
    add_legend_beside(ax)
    return figure
