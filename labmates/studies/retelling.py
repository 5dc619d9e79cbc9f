"""Executing a run from its record: its kind does what it did, with nothing written and nobody asked."""

from __future__ import annotations

from labmates.models.hub import ModelHub
from labmates.records.recorder import Recorder
from labmates.records.run import RunRecord
from labmates.sandboxes.folders import own_folder
from labmates.workflows.judging import Judging
from labmates.workflows.kinds import KINDS, Condition, Outcome
from labmates.workflows.services import Services
from labmates.workflows.workshop import Workshop


async def retell(
    run: RunRecord,
    condition: Condition,
    recorder: Recorder,
    hub: ModelHub,
    workshop: Workshop | None,
    judging: Judging | None = None,
) -> Outcome:
    """Execute a run, without a trace, and return how it ended.

    Parameters
    ----------
    recorder
        One that keeps everything in memory; what it knows already is told again.
    hub
        Answers model calls in the place of models.
    judging
        Who judges; None for the judges that need no model.
    """
    from langsmith import tracing_context

    with own_folder() as folder, tracing_context(enabled=False):
        services = Services(
            run_id=run.id,
            key=condition.key,
            seed=run.seed,
            hub=hub,
            recorder=recorder,
            workshop=workshop,
            folder=lambda: folder,
            judging=judging,
        )
        return await KINDS.get(run.kind).execute(condition, services)


def taken_over(run: RunRecord) -> int:
    """Return how many events, from its first, a run has from the one that it was forked from; 0 for most."""
    return int(run.origin.rpartition("@")[2]) if run.origin else 0
