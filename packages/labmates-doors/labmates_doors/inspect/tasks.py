"""Tasks of Inspect, one for each experiment: ``inspect eval labmates/science -T task=ecology --model MODEL``.

A sample is a run: Inspect's model answers through Inspect's API, labmates plays, records and scores. Inspect imports
this module by its entry point.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from labmates.api import arun
from labmates.condition_types import Kind
from labmates.errors import LabmatesError
from labmates.records.run import ENDED
from labmates.registry import look_at_all
from labmates.workflows.protocol.experiment import EXPERIMENTS
from labmates_doors.inspect.model import PROVIDER

_log = logging.getLogger(__name__)
_RUN = "labmates"
_PLACES = ("model", "entrants")
"""The parameters of experiments that name the models that play."""


@solver
def labmates_run(kind: str, store: str | None, settings: Mapping[str, Any], condition: Mapping[str, Any]) -> Solver:
    """Execute a run of a condition with the sample's seed.

    Parameters
    ----------
    store
        Where the run is kept; default ``LABMATES_STORE``, else ``labmates.db``.
    settings, condition
        As for `labmates.run`; Inspect's model plays where the condition names no other.
    """
    [place] = _place(kind)

    async def solve(state: TaskState, _: Generate) -> TaskState:
        values = {place: f"{PROVIDER}:{get_model()}", **condition}
        [run] = await arun(Kind(kind), seed=state.metadata["seed"], store=store, settings=settings, **values)
        if run.status not in ENDED:
            raise LabmatesError(f"run {run.id} has not ended: {run.error}")
        judged = {f"{e.judge}/{e.metric}": e for e in run.scores if e.value is not None}
        state.metadata[_RUN] = {
            **{name: getattr(run, name) for name in ("id", "key", "seed", "status", "invalid", "bill", "digest")},
            "values": run.metrics | {name: event.value for name, event in judged.items()},
            "reasons": {name: event.reason for name, event in judged.items() if event.reason},
        }
        state.output = ModelOutput.from_content(str(get_model()), run.report or "")
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def labmates_scores() -> Scorer:
    """The run's metrics and its judges' newest scores, as labmates recorded them."""

    async def score(state: TaskState, _: Target) -> Score | None:
        if (told := state.metadata.get(_RUN)) is None:
            return None  # one of Inspect's limits ended the sample
        reasons = "\n".join(f"{name}: {reason}" for name, reason in told["reasons"].items())
        return Score(value=told["values"], explanation=reasons, metadata={"run": told["id"]})

    return score


def _place(kind: str) -> list[str]:
    fields = EXPERIMENTS.get(kind).condition.model_fields
    return [place for place in _PLACES if place in fields]


def _task_of(kind: str) -> Any:
    def make(
        replicates: int = 1,
        seed: int = 0,
        store: str | None = None,
        sandbox: str | None = None,
        **condition: Any,
    ) -> Task:
        settings = {} if sandbox is None else {"sandbox": sandbox}
        seeds = range(seed, seed + replicates)
        return Task(
            dataset=MemoryDataset(
                [Sample(id=seed, input=f"{kind}: {condition}", metadata={"seed": seed}) for seed in seeds], name=kind
            ),
            solver=labmates_run(kind, store, settings, condition),
            scorer=labmates_scores(),
        )

    make.__name__ = kind
    make.__doc__ = f"A condition of {kind}; every parameter of `labmates run {kind}` is one of the task."
    make.__module__ = "labmates"  # Inspect puts the module's package before the name: labmates/science
    return task(make)


TASKS = {kind: _task_of(kind) for kind, place in look_at_all(EXPERIMENTS, _place, _log.warning).items() if place}
