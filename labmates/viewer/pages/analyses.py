"""The analyses of a study's runs, with tables and figures, computed on demand."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import getdoc
from types import MappingProxyType
from typing import Any, Final

from markupsafe import Markup

from labmates.errors import LabmatesError, unknown_name
from labmates.pages.links import Links
from labmates.pages.rendering import render
from labmates.pages.section import Body, Section
from labmates.records.digests import digest_of_all
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.records.studies import kinds_of
from labmates.stats.figures import FORMATS, Drawing, figure_file
from labmates.viewer.pages.results import results_section
from labmates.viewer.pages.runs import standing
from labmates.workflows.protocol.analysis import Analysis, Result, TooFewRunsError, shown_analyses
from labmates.workflows.protocol.experiment import EXPERIMENTS

_log = logging.getLogger(__name__)
_MOST_CACHED: Final = 64
"""Maximum number of cached results."""
MOST_AT_ONCE: Final = 1000
"""The page of a study with more runs reads none of them; results and analyses have pages of their own."""


def analyses_page(
    store: Store,
    study: str,
    runs: Sequence[RunRecord] | None,
    links: Links,
    name: str = "",
    computed: Computed | None = None,
    query: Mapping[str, str] = MappingProxyType({}),
) -> Markup:
    """The page of a study's results and analyses, or of the analysis `name`, over its ended runs.

    Without `runs`, the page leads to its results instead of showing them. `computed` caches results between pages;
    `query` selects results, see `Results`. Raises `UsageError` if the study has no analysis of this name, or the query
    has an unknown parameter.
    """
    progress = standing(store, study)
    ended = [run for run in runs or () if run.status in ENDED]
    kinds = kinds_of(store, study) if runs is None else list(dict.fromkeys(run.kind for run in runs))
    offered = analyses_of(kinds)
    if name and name not in offered:
        raise unknown_name("analysis of this study", name, offered)
    computed = computed or Computed()
    sections: Sequence[Section] = ()
    if name:
        analysis, *of = offered[name]
        sections = computed.result(store, analysis, [run for run in ended if run.kind in of]).sections
    answered = {} if name or progress["is_live"] or len(ended) > MOST_AT_ONCE else offered
    answers = {
        each: analysis.leading(computed.result(store, analysis, [run for run in ended if run.kind in of]).verdict)
        for each, (analysis, *of) in answered.items()
        if analysis.answers
    }
    return render(
        "analyses.html",
        study=study,
        standing=progress,
        answers=answers,
        ended=progress["counts"].of(*ENDED) if runs is None else len(ended),
        has_reports=any(kind in EXPERIMENTS and EXPERIMENTS.get(kind).report for kind in kinds),
        analyses={
            each: (analysis.title, (getdoc(analysis.compute) or "").partition("\n")[0])
            for each, (analysis, *_) in offered.items()
        },
        chosen=name,
        sections=sections,
        results="" if name or runs is None else results_section(study, runs, query, links),
        is_short=runs is None,
        links=links,
    )


def analyses_of(kinds: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    """The analyses of experiments by name, each with the experiments that show it."""
    offered: dict[str, tuple[Any, ...]] = {}
    for kind in dict.fromkeys(kinds):
        for analysis in shown_analyses(kind)[0]:
            offered[analysis.name] = (*offered.get(analysis.name, (analysis,)), kind)
    return offered


@dataclass(frozen=True)
class Shown:
    """A result as sections of a page, its figures by name, and its verdict."""

    sections: Sequence[Section]
    figures: Mapping[str, Drawing] = field(default_factory=dict)
    verdict: Sequence[str] = ()


class Computed:
    """A cache of analyses' results by the digests of their runs."""

    def __init__(self) -> None:
        self._cache: OrderedDict[tuple[str, str], Shown] = OrderedDict()
        self._lock = threading.Lock()

    def result(self, store: Store, analysis: Analysis[Any], runs: Sequence[RunRecord]) -> Shown:
        """The result of an analysis; if it fails, the reason, which is not cached."""
        if not runs:
            return _reason("No result yet", "No run of this study has ended.")
        digests = [run.digest for run in runs if run.digest is not None]
        key = analysis.name, digest_of_all(digests)
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        try:
            # Figures are drawn here, where an error can still be shown.
            result = analysis.shown(store, runs)
            sections = [replace(section, body=section.html()) for section in _of_result(result)]
        except TooFewRunsError as error:
            return _reason("These runs have no result", str(error))
        except Exception as error:
            if not isinstance(error, LabmatesError):
                _log.warning("the analysis %s failed", analysis.name, exc_info=True)
            return _reason("The analysis failed", f"{type(error).__name__}: {str(error)[:2000]}")
        shown = Shown(sections, {drawing.name: drawing for drawing in result.figures}, result.verdict)
        if len(digests) == len(runs):
            with self._lock:
                self._cache[key] = shown
                while len(self._cache) > _MOST_CACHED:
                    self._cache.popitem(last=False)
        return shown


def analysis_figure(
    store: Store, runs: Sequence[RunRecord], query: Mapping[str, str], computed: Computed
) -> tuple[str, bytes]:
    """The file name and the content of the figure that a query selects.

    Raises `UsageError` if the analysis, the figure or the format is unknown, or the format needs LaTeX.
    """
    offered, name, ending = (
        analyses_of(run.kind for run in runs),
        query.get("analysis", ""),
        f".{query.get('format', 'png')}",
    )
    if name not in offered:
        raise unknown_name("analysis of this study", name[:100], offered)
    if ending not in FORMATS:
        raise unknown_name("format", ending[1:20], [each[1:] for each in FORMATS])
    analysis, *kinds = offered[name]
    chosen = [run for run in runs if run.status in ENDED and run.kind in kinds]
    figures, wanted = computed.result(store, analysis, chosen).figures, query.get("figure", "")
    drawn = figures[wanted].draw() if wanted in figures else None
    if drawn is None:
        raise unknown_name("figure of this analysis", wanted[:100], figures)
    return f"{wanted}{ending}", figure_file(drawn, ending)


def _reason(title: str, text: str) -> Shown:
    return Shown([Section("reason", title, text)])


def _of_result(result: Result) -> Iterator[Section]:
    if sentences := (*result.verdict, *(f"Warning: {warning}" for warning in result.warnings)):
        yield Section("answer", "Answer", sentences)
    for place, table in enumerate((*result.tables, *result.details)):
        yield Section(f"table-{place}", table.title, table)
    for drawing in result.figures:
        yield Section(f"figure-{drawing.name}", drawing.title, drawing)
    for place, (heading, remarks) in enumerate(result.remarks.items()):
        if remarks:
            yield Section(f"remarks-{place}", heading, tuple[Body, ...](remarks))
