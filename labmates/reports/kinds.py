"""The parts of a report that belong to one kind of experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from labmates.errors import UsageError
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
    make = _PARTS.get(kind)
    if make is not None and (part := make(store, ended)) is not None:
        yield part
    for name in EXPERIMENTS.get(kind).analyses if kind in EXPERIMENTS else ():
        with suppress(TooFewRunsError):
            yield _analysed(ANALYSES.get(name), store, ended)


def _analysed(analysis: Analysis[Any], store: Store, runs: Sequence[RunRecord]) -> Part:
    result = analysis.shown(store, runs)
    drawn = (drawing.picture() for drawing in (result.figures[:MOST_FIGURES] if has_figures() else ()))
    pictures = tuple(each for each in drawn if each is not None)
    return Part(analysis.title, tuple(result.verdict), tuple(result.tables), pictures)


def _predicted(store: Store, runs: Sequence[RunRecord]) -> Part | None:
    """Whether profiles predict these runs better than the models' mean, where the store has enough of both."""
    from labmates.models.roster import traits_of
    from labmates.workflows.games.prediction.assembly import Choice, assemble, assemble_all
    from labmates.workflows.games.prediction.sources import COMPARED, levels_of_runs, observations_of_runs
    from labmates.workflows.games.prediction.usefulness import answers_table

    levels, _ = levels_of_runs(store.runs(kind="game"))
    observations, _ = observations_of_runs(store, runs)
    played = {level.model for level in levels} & {one.model for one in observations}
    traits = traits_of(played)
    known = all(traits[model].mmlu_pro and traits[model].ifeval for model in played & traits.keys())
    choice = Choice(controls=bool(played) and played <= traits.keys() and known)
    try:
        outcomes, _ = assemble_all((), lambda one: assemble(one, levels, observations, traits, choice), COMPARED)
    except UsageError:
        return None  # too few models have both, or several judges gave scores: labmates analyze prediction says which
    return Part("Prediction from profiles", tables=(answers_table(outcomes),))


_PARTS: Final[dict[str, Callable[[Store, Sequence[RunRecord]], Part | None]]] = {
    "science": _predicted,
}
