"""The science lab for LangGraph Studio; see `labmates.workflows.studio`."""

from __future__ import annotations

import asyncio

from typing_extensions import TypedDict

from labmates.budgets.ledger import UNLIMITED, Ledger
from labmates.models.names import is_own_baseline
from labmates.records.recorder import Recorder
from labmates.records.run import new_run_id
from labmates.sandboxes.choose import choose_backend
from labmates.sandboxes.folders import new_folder, remove_folder
from labmates.workflows.science.condition import ScienceCondition
from labmates.workflows.science.lab import lab_graph
from labmates.workflows.science.run import newest_artifacts, opened, scored
from labmates.workflows.science.state import first_state
from labmates.workflows.services import Services
from labmates.workflows.studio import StudioInput, exported, read_condition, studio_hub
from labmates.workflows.workshop import Workshop, default_sandboxes

LAB = lab_graph()


class StudioOutput(TypedDict):
    """What Studio shows at the end."""

    status: str
    metrics: dict[str, float]
    artifacts: dict[str, str]


class StudioState(StudioInput, StudioOutput):
    """Both."""


async def run_lab(state: StudioInput) -> StudioOutput:
    """Execute one run of the lab; its teams show as subgraphs of this node."""
    condition = read_condition(ScienceCondition, state)
    trusted = all(map(is_own_baseline, condition.models()))
    choice = await asyncio.to_thread(choose_backend, "auto", trusted_code=trusted)
    run_id = new_run_id()
    recorder = Recorder(None, None)
    folder = await asyncio.to_thread(new_folder)
    try:
        async with studio_hub() as hub:
            workshop = Workshop(choice.backend, default_sandboxes())
            seed = state.get("seed", 0)
            services = Services(run_id, condition.key, seed, hub, recorder, workshop, lambda: folder)
            async with opened(condition, services) as ctx:
                lab = await LAB.ainvoke(first_state(condition.teams), context=ctx)
                outcome = await scored(ctx, Ledger(UNLIMITED), lab["exhausted"])
    finally:
        await choice.backend.close()
        await asyncio.to_thread(remove_folder, folder)
    return StudioOutput(status=outcome.status, metrics=dict(outcome.metrics), artifacts=newest_artifacts(recorder))


graph = exported("science", "lab", run_lab, StudioState, StudioOutput)
"""The exported graph."""
