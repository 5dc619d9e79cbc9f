"""The parts of a report that the analyses of an experiment make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.reports.parts import Part
from labmates.stats.figures import has_figures
from labmates.workflows.analysis import ANALYSES, Analysis, TooFewRunsError
from labmates.workflows.experiment import EXPERIMENTS

MOST_FIGURES = 12


def parts_of(kind: str, store: Store, runs: Sequence[RunRecord]) -> Iterator[Part]:
    """The analyses of an experiment's runs, beside their metrics.

    Raises
    ------
    LabmatesError
        If the record of a run can't be read by this version.
    """
    ended = [run for run in runs if run.status in ENDED]
    if not ended:
        return
    for name in EXPERIMENTS.get(kind).analyses if kind in EXPERIMENTS else ():
        with suppress(TooFewRunsError):
            yield _analysed(ANALYSES.get(name), store, ended)


def _analysed(analysis: Analysis[Any], store: Store, runs: Sequence[RunRecord]) -> Part:
    result = analysis.shown(store, runs)
    drawn = (drawing.picture() for drawing in (result.figures[:MOST_FIGURES] if has_figures() else ()))
    pictures = tuple(each for each in drawn if each is not None)
    return Part(analysis.title, tuple(result.verdict), tuple(result.tables), pictures)
