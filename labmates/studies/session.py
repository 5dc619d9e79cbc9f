"""A session: runs of one kind, executed side by side with shared models and sandboxes, each kept in the store.

Whatever happens to a run (an unreachable model, Ctrl-C, a full disk), its record says how it ended, and a run that
did not end as it should can be taken up again where it stopped.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from labmates._version import __version__
from labmates.budgets.money import format_dollars
from labmates.errors import LabmatesError, UsageError
from labmates.judges.panel import make_panel, partial_judges
from labmates.models.check import check_models
from labmates.models.hub import ModelHub
from labmates.models.names import is_own_baseline
from labmates.records.events import ErrorEvent, Event
from labmates.records.recorder import Recorder
from labmates.records.run import ENDED, RunRecord, new_run_id
from labmates.records.store import Store
from labmates.sandboxes.choose import choose_backend
from labmates.studies.checkpoints import open_saver
from labmates.studies.settings import RunSettings
from labmates.studies.tracing import traced
from labmates.workflows.judging import Judging
from labmates.workflows.kinds import KINDS, Condition, Kind, Outcome
from labmates.workflows.services import Services
from labmates.workflows.workshop import Workshop, default_sandboxes

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

_log = logging.getLogger(__name__)

Watch = Callable[[RunRecord, Event | None], None]
"""Called with a run and its newest event, and with None when the run starts and when it ends."""


def new_runs(
    condition: Condition, *, seed: int, replicates: int, settings: RunSettings, study: str | None = None
) -> list[RunRecord]:
    """Return the records of fresh runs of a condition; replicate r has the seed ``seed + r``."""
    return [
        RunRecord(
            id=new_run_id(),
            kind=condition.kind,
            key=condition.key,
            replicate=replicate,
            seed=seed + replicate,
            condition=condition.model_dump(mode="json"),
            models=condition.models(),
            study=study,
            settings=settings.model_dump(mode="json"),
            version=__version__,
        )
        for replicate in range(replicates)
    ]


def stopped_run(store: Store, run_id: str) -> RunRecord:
    """Return a run that can be taken up again.

    Raises
    ------
    UsageError
        If there is no such run, or it has ended.
    """
    run = store.run(run_id)
    if run.status in ENDED:
        raise UsageError(f"the run '{run_id}' has ended ({run.status}); only a run that did not end can be resumed")
    return run


def condition_of(run: RunRecord) -> Condition:
    """Return the condition of a stored run.

    Raises
    ------
    UsageError
        If this labmates does not know such a condition.
    """
    try:
        return KINDS.get(run.kind).condition.model_validate(run.condition)
    except ValidationError as error:
        raise UsageError(f"the condition of the run '{run.id}' is not of this version of labmates: {error}") from error


class Session:
    """Executes runs with shared models and sandboxes.

    Parameters
    ----------
    store
        Where the runs are kept.
    watch
        Told what happens, for a progress display.
    notify
        Told in words what the user should know, for instance where code will run.
    """

    def __init__(
        self,
        store: Store,
        settings: RunSettings,
        *,
        watch: Watch | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._watch = watch
        self._notify = notify

    async def execute(self, runs: Sequence[RunRecord], *, resume: bool = False) -> list[RunRecord]:
        """Execute runs of one kind and return their records as they ended, in the given order.

        Parameters
        ----------
        resume
            The runs stand in the store already and are taken up where they stopped.

        Raises
        ------
        UsageError
            Before anything starts, if the runs can't be executed as they are asked for.
        asyncio.CancelledError
            If interrupted, after the runs have been recorded as such.
        """
        conditions = [condition_of(run) for run in runs]
        for condition in {condition.key: condition for condition in conditions}.values():
            condition.check()
        models = list(dict.fromkeys(model for run in runs for model in run.models))
        panel = make_panel(self._settings.judges, self._settings.extractor)
        await check_models(models, self._settings.models)
        await check_models(panel.models, self._settings.judge_models)
        if self._notify and (warning := partial_judges(panel, models)):
            self._notify(warning)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(traced(self._notify))
            hub = await stack.enter_async_context(ModelHub(self._settings.models))
            apart = self._settings.judge_models != self._settings.models
            judges_hub = await stack.enter_async_context(ModelHub(self._settings.judge_models)) if apart else hub
            judging = Judging(panel, judges_hub)
            saver = await stack.enter_async_context(open_saver(self._store))
            workshop = await stack.enter_async_context(self._workshop(trusted=all(map(is_own_baseline, models))))
            places = asyncio.Semaphore(self._settings.max_concurrent_runs)

            async def one(run: RunRecord, condition: Condition) -> RunRecord:
                async with places:
                    return await self._run(run, condition, hub, saver, workshop, judging, resume)

            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(one(*pair)) for pair in zip(runs, conditions, strict=True)]
            except ExceptionGroup as group_error:
                raise group_error.exceptions[0] from None
            return [task.result() for task in tasks]

    @asynccontextmanager
    async def _workshop(self, *, trusted: bool) -> AsyncIterator[Workshop]:
        choice = choose_backend(self._settings.sandbox, trusted_code=trusted)
        if choice.note and self._notify:
            self._notify(choice.note)
        try:
            yield Workshop(choice.backend, self._settings.max_sandboxes or default_sandboxes())
        finally:
            await asyncio.shield(choice.backend.close())

    async def _run(
        self,
        run: RunRecord,
        condition: Condition,
        hub: ModelHub,
        saver: BaseCheckpointSaver[Any],
        workshop: Workshop,
        judging: Judging,
        resume: bool,
    ) -> RunRecord:
        kind = KINDS.get(run.kind)
        start = time.time()
        before = run.seconds
        if resume:
            await asyncio.to_thread(self._store.reopen, run.id)
            run = replace(run, status="running", error=None)
        else:
            run = replace(run, started=start)
            await asyncio.to_thread(self._store.create, run)
        recorder = await asyncio.to_thread(self._recorder, run, resume)
        self._tell(run, None)
        with tempfile.TemporaryDirectory(prefix="labmates-") as folder:
            services = Services(run.id, run.key, run.seed, hub, recorder, workshop, saver, Path(folder), judging)
            ended, cancelled = await _attempt(kind, condition, services)
        run = replace(
            run,
            **ended,
            usage=recorder.usage(),
            budget=_budget(condition.pool, recorder.spent()),
            sandbox=workshop.backend.name if recorder.ran_code() else None,
            seconds=round(before + time.time() - start, 3),
        )
        await asyncio.shield(self._finish(run, recorder, saver))
        self._tell(run, None)
        if cancelled:
            raise asyncio.CancelledError
        return run

    def _recorder(self, run: RunRecord, resume: bool) -> Recorder:
        def listen(event: Event) -> None:
            self._tell(run, event)

        if not resume:
            return Recorder(self._store, run.id, listen=listen)
        events = self._store.events(run.id)
        recorder = Recorder(self._store, run.id, events=events, bodies=self._store.bodies(run.id), listen=listen)
        for event in events:
            listen(event)
        return recorder

    async def _finish(self, run: RunRecord, recorder: Recorder, saver: BaseCheckpointSaver[Any]) -> None:
        await recorder.finish(run)
        if run.status in ENDED:
            await saver.adelete_thread(run.id)

    def _tell(self, run: RunRecord, event: Event | None) -> None:
        if self._watch is not None:
            self._watch(run, event)


async def _attempt(kind: Kind, condition: Condition, services: Services) -> tuple[Mapping[str, Any], bool]:
    """Execute a run; return how it ended, and whether it was cancelled."""
    try:
        outcome: Outcome = await kind.execute(condition, services)
    except asyncio.CancelledError:
        return {"status": "interrupted", "error": "interrupted"}, True
    except LabmatesError as error:
        text = str(error)
    except Exception as error:
        _log.warning("run %s failed", services.run_id, exc_info=True)
        text = f"{type(error).__name__}: {error}"
    else:
        return {"status": outcome.status, "metrics": dict(outcome.metrics)}, False
    services.recorder.emit(ErrorEvent(text=text))
    return {"status": "failed", "error": text}, False


def _budget(pool: int | None, spent: int) -> dict[str, str] | None:
    if pool is None:
        return None
    return {
        "total": format_dollars(pool),
        "spent": format_dollars(spent),
        "remaining": format_dollars(pool - spent),
    }
