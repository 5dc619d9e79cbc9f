"""The results of a study: metrics by parameters of its conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from labmates.errors import unknown_name
from labmates.pages.links import Links
from labmates.pages.rendering import render
from labmates.records.run import ENDED, RunRecord
from labmates.reports.results import (
    SHARES,
    USAGE,
    by_model,
    cells,
    domain_of,
    estimates,
    headline_figures,
    measures,
    parameters,
    reader,
    shown_name,
    varying,
)
from labmates.stats.intervals import Estimate
from labmates.workflows.protocol.experiment import EXPERIMENTS

MODELS: Final = "models"
MOST_VALUES: Final = 40
"""Maximum rows or columns of a matrix."""
_MOST_KEYS: Final = 100
"""Maximum conditions in the address of a list of runs."""


@dataclass(frozen=True)
class Crossing:
    """A cell of a matrix."""

    estimate: Estimate  # the mean over runs, with its interval
    share: float  # position of the mean between minimum (0) and maximum (1) of the domain, or of the matrix
    keys: tuple[str, ...]  # of the pooled conditions; empty if too many for an address


@dataclass(frozen=True)
class Matrix:
    """Means of a metric by two parameters, for one value of a third, with numbers of failed runs by row and column."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], Crossing]
    failed: Mapping[tuple[str, str], int]


class Results:
    """The ended and failed runs of one kind in a study, with a choice of metric and axes.

    The `query` has ``kind``, ``metric``, ``rows``, ``columns`` and ``each``;
    missing ones have defaults. Raises `UsageError` if a parameter of the query is unknown.
    """

    def __init__(self, runs: Sequence[RunRecord], query: Mapping[str, str]) -> None:
        self.kinds = list(dict.fromkeys(run.kind for run in runs if run.status in ENDED))
        self.kind = _chosen("kind", query, self.kinds)
        self.runs = [run for run in runs if run.kind == self.kind and run.status in (*ENDED, "failed")]
        self.metrics = [*measures(self.runs), *USAGE, *SHARES]
        self.metric = _chosen("metric", query, self.metrics)
        names = varying(self.runs)
        of_key = {run.key: parameters(run, names) for run in {run.key: run for run in self.runs}.values()}
        self._values = {run.id: {MODELS: run.shown_models, **of_key[run.key]} for run in self.runs}
        counts = {name: len({values[name] for values in self._values.values()}) for name in (MODELS, *names)}
        self.axes = [name for name, count in counts.items() if 1 < count <= MOST_VALUES]
        self.left_out = [name for name, count in counts.items() if count > MOST_VALUES]
        finest = [name for name in self.axes if not any(self._follows(name, other) for other in self.axes)]
        self.rows = _chosen("rows", query, self.axes, usual=next(iter(finest), None))
        others = [name for name in self.axes if name != self.rows]
        crossed = [name for name in others if not (self._follows(name, self.rows) or self._follows(self.rows, name))]
        self.columns = _chosen("columns", query, ["", *others], usual=next(iter(crossed), ""))
        self.each = _chosen("each", query, ["", *(name for name in others if name != self.columns)])

    def _follows(self, name: str, other: str) -> bool:
        """Whether a parameter has one value for each value of the other, which has several for some."""
        values = {(each[other], each[name]) for each in self._values.values()}
        return len(values) == len({value for value, _ in values}) > len({value for _, value in values})

    @property
    def pooled(self) -> list[str]:
        """The parameters that are pooled in each cell."""
        shown = [name for name in (self.rows, self.columns, self.each) if name]
        others = [name for name in (*self.axes, *self.left_out) if name not in shown]
        return [name for name in others if not any(self._follows(name, axis) for axis in shown)]

    def matrices(self) -> list[Matrix]:
        """The metric by rows and columns: one matrix, or one per value of the third parameter."""
        groups: dict[tuple[str, str, str], list[RunRecord]] = {}
        failed: Counter[tuple[str, str, str]] = Counter()
        value_of = reader(self.metric)
        for run in self.runs:
            values = {"": "", **self._values[run.id]}
            place = values[self.each], values[self.rows], values[self.columns]
            group = groups.setdefault(place, [])
            if value_of(run) is not None:
                group.append(run)
            failed[place] += run.status == "failed"
        filled = {place: group for place, group in groups.items() if group}
        means = [mean for mean in estimates(list(filled.values()), self.metric) if mean is not None]
        low, high = self._scale(means)
        cells = {
            place: Crossing(
                estimate,
                min(1.0, max(0.0, (estimate.value - low) / (high - low))) if high > low else 1.0,
                keys if len(keys := tuple(dict.fromkeys(run.key for run in group))) <= _MOST_KEYS else (),
            )
            for (place, group), estimate in zip(filled.items(), means, strict=True)
        }
        orders = [tuple(dict.fromkeys(place[axis] for place in groups)) for axis in range(3)]
        return [
            Matrix(
                f"{shown_name(self.each)} {value}" if self.each else "",
                orders[1],
                orders[2],
                {(row, column): cell for (each, row, column), cell in cells.items() if each == value},
                {(row, column): count for (each, row, column), count in failed.items() if each == value},
            )
            for value in orders[0]
        ]

    def figures(self) -> list[Markup]:
        """The drawings of headline metrics, as in a report."""
        ended = [run for run in self.runs if run.status in ENDED]
        metrics = EXPERIMENTS.get(self.kind).headline if self.kind in EXPERIMENTS else ()
        return list(headline_figures(self.kind, ended, cells(ended, metrics), by_model(ended, metrics)))

    def _scale(self, estimates: Sequence[Estimate]) -> tuple[float, float]:
        """The bounds of the metric's domain; without bounds, those of the means."""
        domain = domain_of(self.runs, self.metric)
        if abs(domain.low) < float("inf") and abs(domain.high) < float("inf"):
            return domain.low, domain.high
        values = [estimate.value for estimate in estimates] or [0.0]
        return min([0.0, *values]), max(values)


def results_section(study: str, runs: Sequence[RunRecord], query: Mapping[str, str], links: Links) -> Markup:
    """The results section of a study's page; empty without ended runs.

    Raises `UsageError` if a parameter of the query is unknown.
    """
    if not any(run.status in ENDED for run in runs):
        return Markup("")
    results = Results(runs, query)
    return render(
        "results.html",
        study=study,
        results=results,
        matrices=results.matrices(),
        figures=results.figures(),
        shown_name=shown_name,
        links=links,
    )


def _chosen(what: str, query: Mapping[str, str], offered: Sequence[str], usual: str | None = None) -> str:
    """A query's choice among the offers; without one, the usual choice or the first."""
    name = query.get(what, "")
    if name and name not in offered:
        raise unknown_name(what, name[:100], filter(None, offered))
    if what in query:
        return name if name in offered else next(iter(offered), "")
    return usual if usual is not None else next(iter(offered), "")
