"""Conformance of experiments and analyses, ours and those of other packages: `check_experiment`."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from labmates.errors import LabmatesError
from labmates.models.catalog import Catalog
from labmates.pages.links import Links
from labmates.records.reading import RunReader
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.studies.replay import replay
from labmates.studies.runs import new_runs
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.util.loops import run_async
from labmates.workflows.protocol.analysis import Analysis, TooFewRunsError, shown_analyses
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, Experiment, make_condition

_NAME = re.compile(r"[a-z][a-z0-9_-]*")


def check_experiment(name: str, *, seed: int = 0, settings: RunSettings | None = None, **condition: Any) -> list[str]:
    """The faults of an experiment; none for a sound one.

    Checks its declarations (names, descriptions, metrics, analyses), that a condition and the first state are
    reproducible, and two runs in a temporary store: both must end, with declared metrics within their ranges, equal for
    equal seeds; a replay must give the same events; the page and the analyses must not fail.

    Parameters
    ----------
    name
        Registered name of the experiment.
    seed
        Seed of both runs.
    settings
        How models are reached and where code runs.
    condition
        Parameters of a small run whose models are scripted baselines.

    Raises
    ------
    UsageError
        If the experiment is unknown or the condition is invalid.
    """
    experiment = EXPERIMENTS.get(name)
    chosen = settings or RunSettings()
    catalog = Catalog(chosen.models)
    cell = make_condition(name, condition, catalog=catalog)
    problems = [*_of_declarations(name, experiment), *_of_conditions(experiment, cell, seed)]
    if problems:
        return problems
    with tempfile.TemporaryDirectory() as folder, Store(f"sqlite:///{Path(folder, 'runs.db')}") as store:
        return list(_of_runs(store, experiment, cell, seed, chosen.resolved(catalog)))


def _of_declarations(name: str, experiment: Experiment[Condition]) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield f"the name '{name}' is not of lower-case letters, digits, hyphens and underscores"
    if {name, experiment.name, experiment.condition.kind} != {name}:
        kinds = f"the experiment is called '{experiment.name}', the kind of its condition '{experiment.condition.kind}'"
        yield f"{kinds}, and it is registered as '{name}'"
    yield from _undescribed("the condition", experiment.condition)
    metrics = [metric.name for metric in experiment.metrics]
    if not metrics:
        yield "there are no metrics"
    if len(set(metrics)) < len(metrics):
        yield f"two metrics have the same name: {', '.join(metrics)}"
    yield from (f"the metric '{metric.name}' has no text" for metric in experiment.metrics if not metric.text)
    if experiment.example and not experiment.example.startswith(f"labmates run {name} "):
        yield f"the example does not begin with 'labmates run {name}'"
    analyses, broken = shown_analyses(name)
    yield from map(str, broken)
    for analysis in analyses:
        yield from _undescribed(f"the analysis '{analysis.name}'", analysis.params)
        try:
            analysis.shown_params()
        except ValidationError:
            yield f"the analysis '{analysis.name}' has parameters without a default, so no report can show it"


def _undescribed(what: str, model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        if not field.description:
            yield f"{what}: the parameter '{name}' has no description"


def _of_conditions(experiment: Experiment[Condition], cell: Condition, seed: int) -> Iterator[str]:
    again = experiment.condition.model_validate(cell.model_dump(mode="json"))
    if again.key != cell.key:
        yield "a condition that is written as JSON and read again has another key"
    if experiment.start(cell, seed) != experiment.start(cell, seed):
        yield "the first state is another one when it is made again"
    try:
        cell.check()
    except LabmatesError as error:
        yield f"the condition is refused: {error}"


def _of_runs(
    store: Store, experiment: Experiment[Condition], cell: Condition, seed: int, settings: RunSettings
) -> Iterator[str]:
    runs = [new_runs(cell, seed=seed, replicates=1, settings=settings)[0] for _ in range(2)]
    first, second = run_async(lambda: Session(store, settings).execute(runs))
    for run in (first, second):
        if run.status not in ENDED:
            yield f"a run has not ended ({run.status}): {run.error}"
            return
    yield from _of_metrics(experiment, first)
    if first.metrics != second.metrics:
        yield f"two runs of one seed have other metrics: {first.metrics} and {second.metrics}"
    replayed = run_async(lambda: replay(store, first))
    yield from (f"a replay differs: {difference}" for difference in (*replayed.differences, *replayed.cells)[:3])
    made: list[tuple[str, Callable[[], object]]] = []
    if experiment.page is not None:
        page, reader = experiment.page, RunReader(store, first)
        made.append(("the page", lambda: [section.html() for section in page(reader, Links())]))
    analyses, _ = shown_analyses(experiment.name)
    made += [(f"the analysis '{shown.name}'", _analysed(store, shown, [first, second])) for shown in analyses]
    for what, make in made:
        try:
            make()
        except TooFewRunsError:
            continue
        except Exception as error:
            yield f"{what} failed: {type(error).__name__}: {error}"


def _of_metrics(experiment: Experiment[Condition], run: RunRecord) -> Iterator[str]:
    domains = experiment.domains(run.condition)
    for name, value in run.metrics.items():
        if name not in domains:
            yield f"the metric '{name}' is not declared"
        elif not domains[name].low <= value <= domains[name].high:
            yield f"the metric '{name}' is {value}, outside {domains[name].low} to {domains[name].high}"


def _analysed(store: Store, analysis: Analysis[Any], runs: list[RunRecord]) -> Callable[[], object]:
    def make() -> object:
        result = analysis.shown(store, runs)
        return [list(table.cells()) for table in result.tables], [drawing.draw() for drawing in result.figures]

    return make
