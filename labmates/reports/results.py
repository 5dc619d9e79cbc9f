"""Metrics by condition for any experiment: means with intervals, as a table and as a figure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labmates.records.run import ENDED, RunRecord
from labmates.records.view import flatten
from labmates.stats.domains import ANY, Domain, Domains, unknown
from labmates.stats.figures import COLOURS, GREY, MARKERS, add_legend_beside, new_figure
from labmates.stats.intervals import Estimate, means, notes
from labmates.stats.tables import MISSING, Column, Table
from labmates.util.grouping import grouped
from labmates.workflows.protocol.experiment import EXPERIMENTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 48
"""Maximum rows of a figure."""
_OF_MODELS = ("model", "model_for", "prices")


@dataclass(frozen=True)
class Cell:
    """The ended runs of one condition, or of one model."""

    models: str
    varies: Mapping[str, str]  # varying parameters besides models
    runs: int
    means: Mapping[str, Estimate]  # by metric, except metrics without values
    invalid: int = 0  # number of invalid runs, which count in the means

    @property
    def label(self) -> str:
        """The parameters that distinguish its condition, besides models."""
        return ", ".join(f"{shown_name(name)} {value}" for name, value in self.varies.items() if value != MISSING)


def varying(runs: Iterable[RunRecord]) -> list[str]:
    """The parameters that vary between conditions of runs, except models and prices; nested names joined by dots.

    A parameter determined by another one (a game's rules by its name) is left out.
    """
    conditions = [_flat(run) for run in {run.key: run for run in runs}.values()]
    names = list(dict.fromkeys(name for condition in conditions for name in condition))
    values = {name: [json.dumps(condition.get(name), sort_keys=True) for condition in conditions] for name in names}
    chosen: list[str] = []
    for name in names:
        pairs = (set(zip(values[other], values[name], strict=True)) for other in chosen)
        follows = any(len(pair) == len(set(values[other])) for other, pair in zip(chosen, pairs, strict=True))
        if name.split(".")[0] not in _OF_MODELS and len(set(values[name])) > 1 and not follows:
            chosen.append(name)
    return chosen


def shown_name(parameter: str) -> str:
    """A parameter's name in tables."""
    return parameter.split(".")[-1].replace("_", " ")


def equal_parameters(runs: Iterable[RunRecord]) -> dict[str, str]:
    """The values of parameters that are equal in all conditions, except missing values."""
    conditions = [_flat(run) for run in {run.key: run for run in runs}.values()]
    first = conditions[0]
    return {
        name: value_text(value)
        for name, value in first.items()
        if name.split(".")[0] not in _OF_MODELS
        and value is not None
        and all(name in condition and condition[name] == value for condition in conditions)
    }


def parameters(run: RunRecord, names: Iterable[str]) -> dict[str, str]:
    """The values of parameters of a run's condition as short texts."""
    flat = _flat(run)
    return {name: value_text(flat.get(name)) for name in names}


def _flat(run: RunRecord) -> dict[str, Any]:
    described = EXPERIMENTS.get(run.kind).described if run.kind in EXPERIMENTS else dict
    row: dict[str, Any] = {}
    for name, value in described(run.condition).items():
        # Objects from files are labelled by name.
        flatten(name, value["name"] if isinstance(value, Mapping) and "name" in value else value, row)
    return row


def cells(runs: Sequence[RunRecord], metrics: Sequence[str], domains: Domains = unknown) -> list[Cell]:
    """The means of metrics by condition, over ended runs; `domains` are the metrics' ranges by condition."""
    names = varying(runs)
    groups = grouped((run.key, run) for run in runs if run.status in ENDED)
    by_condition = [
        Cell(group[0].shown_models, parameters(group[0], names), len(group), estimates, _invalid(group))
        for group, estimates in zip(groups.values(), _means(list(groups.values()), metrics, domains), strict=True)
    ]
    # Runs end in any order, so equal values are grouped in order of appearance.
    order = {name: list(dict.fromkeys(cell.varies[name] for cell in by_condition)) for name in names}
    return sorted(by_condition, key=lambda cell: [order[name].index(cell.varies[name]) for name in names])


def by_model(runs: Sequence[RunRecord], metrics: Sequence[str], domains: Domains = unknown) -> list[Cell]:
    """The means of metrics by model, over all conditions; see `cells`."""
    groups = grouped((run.shown_models, run) for run in runs if run.status in ENDED)
    estimates = _means(list(groups.values()), metrics, domains)
    return [
        Cell(models, {}, len(group), each, _invalid(group))
        for (models, group), each in zip(groups.items(), estimates, strict=True)
    ]


def _invalid(runs: Iterable[RunRecord]) -> int:
    return sum(run.invalid is not None for run in runs)


def value_text(value: Any) -> str:
    """The value of a parameter as a short text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return MISSING
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"


def results_table(name: str, title: str, groups: Sequence[Cell], metrics: Sequence[str]) -> Table:
    """Means with intervals, a row per cell. Metrics that are equal in all rows go into a note."""
    measured = [metric for metric in metrics if any(metric in cell.means for cell in groups)]
    equal = [metric for metric in measured if _is_equal(metric, groups)]
    shown = [metric for metric in measured if metric not in equal] or measured
    rows = []
    for cell in groups:
        row: dict[str, Any] = {"models": cell.models, **cell.varies, "runs": cell.runs, "invalid": cell.invalid}
        for metric in measured:
            row |= cell.means[metric].row(metric) if metric in cell.means else {metric: None, f"{metric}_n": 0}
        rows.append(row)
    fewer = sum(mean.n < cell.runs for cell in groups for mean in cell.means.values())
    remarks = ["Means over ended runs.", *notes(mean for cell in groups for mean in cell.means.values())]
    if fewer:
        remarks.append(f"{fewer} of the means are over fewer runs than their row: the other runs lack the value.")
    if equal and shown is not measured:
        values = ", ".join(f"{metric.replace('_', ' ')} {groups[0].means[metric].value:.3f}" for metric in equal)
        remarks.append(f"Equal in all rows: {values}.")
    varies = list(groups[0].varies) if groups else []
    columns = [
        Column("models"),
        *(Column(name, shown_name(name)) for name in varies),
        Column("runs"),
        *([Column("invalid")] if any(cell.invalid for cell in groups) else []),
    ]
    if any(cell.invalid for cell in groups):
        remarks.append("Invalid runs count in these means.")
    return Table(
        name, title, [*columns, *(Column(metric, form=".3f", shows="both") for metric in shown)], rows, remarks
    )


def _is_equal(metric: str, groups: Sequence[Cell]) -> bool:
    """Whether a metric has one value in all runs of at least two cells."""
    means = [cell.means.get(metric) for cell in groups]
    ends = {end for mean in means if mean is not None for end in (mean.value, *mean.ends())}
    return len(groups) > 1 and None not in means and len(ends) == 1


def results_figure(groups: Sequence[Cell], metric: str, axis: str = "", domain: Domain = ANY) -> Figure | None:
    """Draw the means of a metric; None for fewer than two, equal or too many means.

    The label of the `axis` is by default the metric's name; the axis ends at the metric's `domain`.
    """
    with_it = [cell for cell in groups if metric in cell.means]
    labels = list(dict.fromkeys(cell.label for cell in with_it))
    models = list(dict.fromkeys(cell.models for cell in groups))
    apart = len(labels) > 1 and len(models) <= len(COLOURS)
    rows = labels if apart else list(dict.fromkeys(_row(cell) for cell in with_it))
    if len(with_it) < 2 or len(rows) > MOST_ROWS or _is_equal(metric, with_it):
        return None
    figure, [axes] = new_figure(7.2, 1.3 + len(rows) * (0.32 + 0.1 * (len(models) - 1) * apart))
    for place, model in enumerate(models):
        mine = [cell for cell in with_it if cell.models == model]
        if not mine:
            continue
        offset = 0.5 * (place / (len(models) - 1) - 0.5) if apart and len(models) > 1 else 0.0
        x = [cell.means[metric].value for cell in mine]
        y = [rows.index(cell.label if apart else _row(cell)) + offset for cell in mine]
        means = [cell.means[metric] for cell in mine]
        low = [0.0 if mean.low is None else mean.value - mean.low for mean in means]
        high = [0.0 if mean.high is None else mean.high - mean.value for mean in means]
        colour, marker = (COLOURS[place], MARKERS[place]) if apart else (COLOURS[0], MARKERS[0])
        bars: Any = {"xerr": [low, high], "capsize": 2, "linewidth": 1, "markersize": 5}
        axes.errorbar(x, y, fmt=marker, color=colour, label=_short(model), **bars)
    axes.set_yticks(range(len(rows)), [_short(row) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    low_end, high_end, is_cut = _reach([cell.means[metric] for cell in with_it], domain)
    axes.set_xlim(low_end, high_end)
    axes.set_xlabel((axis or metric.replace("_", " ")) + ("; intervals extend beyond the axis" if is_cut else ""))
    if apart and len(models) > 1:
        add_legend_beside(axes)
    return figure


def _reach(estimates: Sequence[Estimate], domain: Domain) -> tuple[float, float, bool]:
    """The ends of an axis that separates the means, and whether it cuts an interval."""
    values = [estimate.value for estimate in estimates]
    ends = [end for estimate in estimates for end in estimate.ends()]
    room = max(max(values) - min(values), 0.5 * max(map(abs, values))) or 1.0
    low, high = max(min(ends), min(values) - 2 * room), min(max(ends), max(values) + 2 * room)
    margin = 0.03 * (high - low) or 0.5
    room = 0.03 * (high - low + margin)
    shown = max(low - margin, domain.low - room), min(high + margin, domain.high + room)
    return *shown, min(ends) < low or max(ends) > high


def _row(cell: Cell) -> str:
    return f"{cell.models}, {cell.label}" if cell.label else cell.models


def _short(text: str) -> str:
    return text if len(text) <= 56 else f"{text[:55]}…"


def _means(
    groups: Sequence[Sequence[RunRecord]], metrics: Sequence[str], domains: Domains
) -> list[dict[str, Estimate]]:
    by_group: list[dict[str, Estimate]] = [{} for _ in groups]
    for metric in metrics:
        values = [[run.metrics[metric] for run in group if metric in run.metrics] for group in groups]
        places = [place for place, some in enumerate(values) if some]
        estimates = means(
            [values[place] for place in places], [domain_of(groups[place], metric, domains) for place in places]
        )
        for place, estimate in zip(places, estimates, strict=True):
            by_group[place][metric] = estimate
    return by_group


def domain_of(runs: Sequence[RunRecord], metric: str, domains: Domains) -> Domain:
    """The range of a metric over these runs."""
    each = [domains(condition).get(metric, ANY) for condition in {run.key: run.condition for run in runs}.values()]
    return Domain(min(domain.low for domain in each), max(domain.high for domain in each))
