"""Runs that no store keeps: those of LangGraph Studio, and trials of organisations."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from labmates.models.hub import ModelHub
from labmates.models.names import is_own_baseline
from labmates.models.options import ModelOptions
from labmates.records.recorder import Recorder
from labmates.records.run import new_run_id
from labmates.sandboxes.choose import choose_backend
from labmates.sandboxes.folders import new_folder, remove_folder
from labmates.sandboxes.pool import SandboxPool, default_sandboxes
from labmates.workflows.protocol.experiment import Condition, Experiment, SessionSettings
from labmates.workflows.protocol.services import Services


@asynccontextmanager
async def unkept_services(
    experiment: Experiment[Any], condition: Condition, seed: int, recorder: Recorder, hub: ModelHub | None = None
) -> AsyncIterator[Services]:
    """The services of a run that is not kept in a store; without a hub, it has one for ``LABMATES_BASE_URL``."""
    async with AsyncExitStack() as stack:
        hub = hub or ModelHub(ModelOptions(base_url=os.environ.get("LABMATES_BASE_URL")))
        await stack.enter_async_context(hub)
        folder = await asyncio.to_thread(new_folder)
        stack.push_async_callback(asyncio.to_thread, remove_folder, folder)
        sandbox_pool = None
        if experiment.needs_sandbox:
            trusted = all(map(is_own_baseline, condition.models()))
            choice = await asyncio.to_thread(choose_backend, "auto", trusted_code=trusted)
            stack.push_async_callback(choice.backend.close)
            sandbox_pool = SandboxPool(choice.backend, default_sandboxes())
        shared = stack.enter_context(experiment.shared(SessionSettings())) if experiment.shared else None
        yield Services(
            hub=hub,
            sandbox_pool=sandbox_pool,
            run_id=new_run_id(),
            key=condition.key,
            seed=seed,
            reply_seed=seed,
            recorder=recorder,
            folder=lambda: folder,
            shared=shared,
        )
