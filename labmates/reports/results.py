"""The results of runs of any experiment: measures by condition, as means with intervals, tables and drawings.

Measures are the metrics of the experiment, the usage of a run, and the shares of failed and invalid runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from labmates.errors import LabmatesError
from labmates.pages.rendering import render
from labmates.pages.svg import COLOURS, dot_plot, tag
from labmates.records.run import ENDED, RunRecord
from labmates.stats.data_sets import Result, data_set_means
from labmates.stats.domains import ANY, COUNT, SHARE, Domain
from labmates.stats.intervals import Estimate, notes
from labmates.stats.tables import MISSING, Column, Table
from labmates.util.display_names import references_first
from labmates.util.grouping import grouped, varying_columns
from labmates.workflows.protocol.experiment import EXPERIMENTS, flat_condition

MOST_ROWS = 48
"""Maximum rows of a drawing."""
SPENT: Final = "dollars spent"
USAGE: Final = (SPENT, "tokens", "seconds")
FAILED, INVALID = "failed runs", "invalid runs"
SHARES: Final = (FAILED, INVALID)
"""Shares of failed runs among finished ones, and of invalid runs among ended ones."""
NAMED: Final = ("task", "game", "mechanism", "structure")
"""Parameters that lists of runs always show, by value only."""
_OF_MODELS = ("model", "model_for", "prices")


@dataclass(frozen=True)
class Cell:
    """The ended runs of one condition, or of one model."""

    models: str
    varies: Mapping[str, str]  # varying parameters besides models
    runs: int
    data_sets: int
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
    conditions = [flat_condition(run.kind, run.condition) for run in {run.key: run for run in runs}.values()]
    names = dict.fromkeys(name for each in conditions for name in each if name.split(".")[0] not in _OF_MODELS)
    texts = {name: [json.dumps(each.get(name), sort_keys=True) for each in conditions] for name in names}
    return varying_columns(texts)


def listed_parameters(runs: Sequence[RunRecord]) -> dict[str, dict[str, str]]:
    """By run, the parameters that name its condition or vary among the listed runs of its kind."""
    varies = {kind: varying(members) for kind, members in grouped((run.kind, run) for run in runs).items()}
    listed = {}
    for run in runs:
        named = [name for name in NAMED if run.condition.get(name)]
        values = parameters(run, dict.fromkeys([*named, *varies[run.kind]]))
        listed[run.id] = {name: value for name, value in values.items() if value != MISSING}
    return listed


def headline(kind: str) -> tuple[str, ...]:
    """Metrics in lists of an experiment's runs, the primary outcome first; none for an unknown experiment."""
    try:
        return EXPERIMENTS.get(kind).headline[:5]
    except LabmatesError:
        return ()


def shown_name(parameter: str) -> str:
    """A parameter's name in tables."""
    return parameter.split(".")[-1].replace("_", " ")


def equal_parameters(runs: Iterable[RunRecord]) -> dict[str, str]:
    """The values of parameters that are equal in all conditions, except missing values."""
    conditions = [flat_condition(run.kind, run.condition) for run in {run.key: run for run in runs}.values()]
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
    flat = flat_condition(run.kind, run.condition)
    return {name: value_text(flat.get(name)) for name in names}


def cells(runs: Sequence[RunRecord], metrics: Sequence[str]) -> list[Cell]:
    """The means of metrics by condition, over ended runs."""
    names = varying(runs)
    groups = grouped((run.key, run) for run in runs if run.status in ENDED)
    by_condition = _cells(groups.values(), metrics, names)
    order = {name: references_first(cell.varies[name] for cell in by_condition) for name in names}
    return sorted(by_condition, key=lambda cell: [order[name].index(cell.varies[name]) for name in names])


def by_model(runs: Sequence[RunRecord], metrics: Sequence[str]) -> list[Cell]:
    """The means of metrics by model, over all conditions and ended runs."""
    groups = grouped((run.shown_models, run) for run in runs if run.status in ENDED)
    return _cells([groups[models] for models in references_first(groups)], metrics, ())


def _cells(groups: Iterable[list[RunRecord]], metrics: Sequence[str], names: Sequence[str]) -> list[Cell]:
    groups = list(groups)
    by_metric = {metric: estimates(groups, metric) for metric in metrics}
    return [
        Cell(
            group[0].shown_models,
            parameters(group[0], names),
            len(group),
            len({run.data_set for run in group}),
            {metric: mean for metric, each in by_metric.items() if (mean := each[place]) is not None},
            sum(run.invalid is not None for run in group),
        )
        for place, group in enumerate(groups)
    ]


def value_text(value: Any) -> str:
    """The value of a parameter as a short text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return MISSING
    if isinstance(value, float) and value.is_integer():
        value = int(value)
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
    fewer = sum(mean.n < cell.data_sets for cell in groups for mean in cell.means.values())
    remarks = [
        "Means over the data sets of ended runs.",
        *notes(mean for cell in groups for mean in cell.means.values()),
    ]
    if fewer:
        remarks.append(f"{fewer} of the means are over fewer data sets than their row has: other runs lack the value.")
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
    values = {mean.value for mean in means if mean is not None and not mean.error}
    return len(groups) > 1 and len(values) == 1 and all(mean is not None and not mean.error for mean in means)


def results_plot(groups: Sequence[Cell], metric: str, title: str, domain: Domain = ANY) -> Markup:
    """Draw the means of a metric, with a legend of models; empty for fewer than two, equal or too many means.

    The axis ends at the metric's `domain`, and cuts intervals that would squeeze the means.
    """
    with_it = [cell for cell in groups if metric in cell.means]
    models = list(dict.fromkeys(cell.models for cell in with_it))
    apart = len({cell.label for cell in with_it}) > 1 and len(models) <= COLOURS
    rows: dict[str, list[Estimate | None]] = {}
    for cell in with_it:
        row = rows.setdefault(cell.label if apart else _row(cell), [None] * (len(models) if apart else 1))
        row[models.index(cell.models) if apart else 0] = cell.means[metric]
    if len(with_it) < 2 or len(rows) > MOST_ROWS or _is_equal(metric, with_it):
        return Markup("")
    columns = models if apart else [""]
    drawing = dot_plot(rows, columns, title, _reach([cell.means[metric] for cell in with_it], domain), width=720)
    return render("plot.html", drawing=drawing, names=columns)


def headline_figures(
    kind: str, runs: Sequence[RunRecord], groups: Sequence[Cell], models: Sequence[Cell]
) -> Iterator[Markup]:
    """A drawing of each headline metric of a kind's runs: by condition if that fits, else by model."""
    for metric in EXPERIMENTS.get(kind).headline if kind in EXPERIMENTS else ():
        for by, shown in (("condition", groups), ("model", models)):
            title = f"{metric.replace('_', ' ').capitalize()} by {by}, with 95 % intervals"
            if drawn := results_plot(shown, metric, title, domain_of(runs, metric)):
                yield tag("figure", drawn, tag("figcaption", title))
                break


def _reach(means: Sequence[Estimate], domain: Domain) -> tuple[float, float]:
    """The ends of an axis that separates the means."""
    values = [mean.value for mean in means]
    ends = [end for mean in means for end in mean.ends()]
    room = max(max(values) - min(values), 0.5 * max(map(abs, values))) or 1.0
    low, high = max(min(ends), min(values) - 2 * room), min(max(ends), max(values) + 2 * room)
    margin = 0.03 * (high - low) or 0.5
    return max(low, domain.low) - margin, min(high, domain.high) + margin


def _row(cell: Cell) -> str:
    return f"{cell.models}, {cell.label}" if cell.label else cell.models


def estimates(groups: Sequence[Sequence[RunRecord]], measure: str) -> list[Estimate | None]:
    """The mean of a measure over the data sets of each group of runs; None without values."""
    kind = groups[0][0].kind if groups else ""
    experiment = EXPERIMENTS.get(kind) if kind in EXPERIMENTS else None
    usable = experiment.usable if experiment else ""
    value_of = reader(measure)
    cells = [
        [
            Result(run.data_set, value, bool(run.metrics.get(usable, 1)))
            for run in group
            if (value := value_of(run)) is not None
        ]
        for group in groups
    ]
    failures = experiment is not None and bool(usable) and measure in experiment.primaries
    return data_set_means(cells, [domain_of(group, measure) for group in groups], failures=failures)


def reader(measure: str) -> Callable[[RunRecord], float | None]:
    """A function from a run to its value of a measure."""
    if measure == FAILED:
        return lambda run: float(run.status == "failed")
    special: Mapping[str, Callable[[RunRecord], float]] = {
        INVALID: lambda run: float(run.invalid is not None),
        SPENT: lambda run: run.spent / 1e6,
        "tokens": lambda run: float(run.usage.input_tokens + run.usage.output_tokens),
        "seconds": lambda run: run.seconds,
    }
    value = special.get(measure, lambda run: run.metrics.get(measure))
    return lambda run: None if run.status == "failed" else value(run)


def domain_of(runs: Sequence[RunRecord], measure: str) -> Domain:
    """The range of a measure over these runs of one kind."""
    if measure in USAGE or measure in SHARES:
        return COUNT if measure in USAGE else SHARE
    if not runs or runs[0].kind not in EXPERIMENTS:
        return ANY
    return EXPERIMENTS.get(runs[0].kind).domain_of(measure, runs)


def measures(runs: Sequence[RunRecord]) -> list[str]:
    """The metrics that runs of one kind have, headline metrics first."""
    present = dict.fromkeys(name for run in runs for name in run.metrics)
    first = EXPERIMENTS.get(runs[0].kind).headline if runs and runs[0].kind in EXPERIMENTS else ()
    return [*(name for name in first if name in present), *(name for name in present if name not in first)]
