"""Recomputing how runs ended out of their recorded events: no model is asked, no code runs, nothing is written.

A run is given its whole record, as one is that is resumed, and executed to its end. It must come to the recorded
metrics, usage, budget, status and validity, and must not make any event that the record lacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace

from labmates._version import __version__
from labmates.errors import UsageError
from labmates.judges.panel import make_panel
from labmates.records.recorder import NewStepError, Recorder
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.records.verification import is_late
from labmates.studies.audit import UNREADABLE, Fault
from labmates.studies.differences import Difference, differences_of_run
from labmates.studies.rerun import NoModels, NoSandboxes, rerun
from labmates.studies.runs import accounted, invalid_of, stop_of
from labmates.studies.salted import check_salt
from labmates.studies.settings import RunSettings
from labmates.workflows.experiment import condition_of
from labmates.workflows.judging import Judging
from labmates.workflows.sandbox_pool import SandboxPool


@dataclass(frozen=True)
class Recomputed:
    """The result of recomputing a run.

    Attributes
    ----------
    differences
        What of the record is not what its events amount to.
    unchecked
        Why this version of labmates, or this machine, can't tell; None if it can.
    """

    differences: tuple[Difference, ...] = ()
    unchecked: str | None = None


async def recompute(store: Store, run: RunRecord) -> Recomputed:
    """Recompute how a run ended and compare it with its record.

    A run of another version of labmates, or from before its store was upgraded, may have had other prompts or rules:
    if it differs, it counts as unchecked.
    """
    if run.status not in ENDED:
        return Recomputed(unchecked=f"it has not ended ({run.status})")
    try:
        differences = await _differences(store, run)
    except UsageError as error:
        return Recomputed(unchecked=str(error))
    if differences and (run.version != __version__ or is_late(run.digest)):
        made = f"labmates {run.version or '?'} made it{', before the store was upgraded' * is_late(run.digest)}"
        return Recomputed(unchecked=f"{made}; now, {differences[0]}")
    return Recomputed(differences)


async def recompute_all(store: Store, runs: Iterable[str]) -> AsyncIterator[tuple[list[Fault], Fault | None]]:
    """Recompute runs, by id, and yield for each what is wrong with it, and why it could not be recomputed, or None.

    Runs that did not end have nothing to recompute; records that can't be read are told by `labmates.studies.audit`.
    """
    for run_id in runs:
        try:
            run = await asyncio.to_thread(store.run, run_id)
            recomputed = await recompute(store, run) if run.status in ENDED else Recomputed()
        except UNREADABLE:
            recomputed = Recomputed()
        faults = [Fault(run_id, f"recomputed, it differs: {difference}") for difference in recomputed.differences]
        yield faults, Fault(run_id, recomputed.unchecked) if recomputed.unchecked else None


async def _differences(store: Store, run: RunRecord) -> tuple[Difference, ...]:
    check_salt(run)
    condition, settings = condition_of(run), RunSettings.model_validate(run.settings)
    events, bodies = await asyncio.to_thread(lambda: (store.events(run.id), store.bodies(run.id)))
    recorder = Recorder(None, None, events=events, bodies=bodies)
    hub = NoModels()
    panel = make_panel(settings.judges, settings.extractor)
    try:
        outcome = await rerun(run, condition, recorder, hub, SandboxPool(NoSandboxes(), 1), Judging(panel, hub))
    except UsageError:
        raise
    except NewStepError as error:
        if (stop := stop_of(run)) is None:
            return (Difference(error.step, "step", "", None, "not in the record"),)
        outcome = stop
    except Exception as error:
        return (Difference("", "run", "", "an outcome", f"{type(error).__name__}: {error}"),)
    new = [Difference(event.step, event.type, "", None, "an event") for event in recorder.events[len(events) :]]
    ended = replace(
        accounted(run, condition, recorder),
        key=condition.key,
        models=condition.models(),
        status=outcome.status,
        invalid=invalid_of(run, recorder, outcome.invalid),
        metrics=dict(outcome.metrics),
    )
    return (*new, *differences_of_run(run, ended))
