"""A session: runs executed side by side by one worker, with shared models and sandboxes, each kept in the store.

Whatever happens to a run (an unreachable model, Ctrl-C, a killed process), its record says how it ended, and a run that
did not end as it should can be taken up again where it stopped.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from labmates._version import __version__
from labmates.budgets.money import format_dollars
from labmates.errors import LabmatesError, UsageError
from labmates.judges.panel import Panel, make_panel, partial_judges
from labmates.models.check import check_models
from labmates.models.hub import ModelHub
from labmates.models.names import is_own_baseline
from labmates.owners import this_worker
from labmates.records.calls import StoredCalls
from labmates.records.claims import BEAT_SECONDS, Claims
from labmates.records.database import StoreError
from labmates.records.events import ErrorEvent, Event
from labmates.records.recorder import Recorder
from labmates.records.run import ENDED, RunRecord, new_run_id
from labmates.records.store import LeaseLostError, Store
from labmates.sandboxes.choose import choose_backend
from labmates.studies.checkpoints import open_saver
from labmates.studies.settings import RunSettings
from labmates.studies.tracing import traced
from labmates.studies.whole import to_its_end
from labmates.workflows.brake import Brake, StoppedError
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
            status="planned",
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


async def checked(conditions: Sequence[Condition], settings: RunSettings) -> tuple[list[str], Panel]:
    """Return the models that take part in runs of these conditions, and the judges.

    Raises
    ------
    UsageError
        If the conditions can't hold, or a model can't be asked.
    """
    for condition in conditions:
        condition.check()
    models = list(dict.fromkeys(model for condition in conditions for model in condition.models()))
    panel = make_panel(settings.judges, settings.extractor)
    await check_models(models, settings.models)
    await check_models(panel.models, settings.judge_models)
    return models, panel


class Session:
    """Executes runs with shared models and sandboxes, as one worker.

    Parameters
    ----------
    store
        Where the runs are kept.
    watch
        Told what happens, for a progress display.
    notify
        Told in words what the user should know, for instance where code will run.
    brake
        Asks the runs to stop at their next step.
    """

    def __init__(
        self,
        store: Store,
        settings: RunSettings,
        *,
        watch: Watch | None = None,
        notify: Callable[[str], None] | None = None,
        brake: Brake | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._watch = watch
        self._notify = notify
        self._brake = brake
        self.claims = Claims(store, this_worker())

    async def execute(self, runs: Sequence[RunRecord], *, resume: bool = False) -> list[RunRecord]:
        """Execute runs and return their records as they ended, in the given order, without those that were not begun.

        Parameters
        ----------
        resume
            The runs stand in the store already and are taken up where they stopped.

        Raises
        ------
        UsageError
            Before anything starts, if the runs can't be executed as they are asked for.
        StoreError
            If the store can't be written; the runs are cut off, and can be gone on with when it can.
        asyncio.CancelledError
            If interrupted, after the runs have been recorded as such.
        """
        claim = (lambda run: self.claims.take(run.id)) if resume else self.claims.new
        conditions = {run.key: condition_of(run) for run in runs}
        async with self.opened(conditions.values()) as lab:
            places = asyncio.Semaphore(self._settings.max_concurrent_runs)

            async def one(run: RunRecord) -> RunRecord | None:
                async with places:
                    if self._brake is not None and self._brake.pulled.is_set():
                        return None
                    return await lab.carry_out(await asyncio.to_thread(claim, run))

            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(one(run)) for run in runs]
            except ExceptionGroup as group_error:
                raise group_error.exceptions[0] from None
            return [ended for task in tasks if (ended := task.result()) is not None]

    @asynccontextmanager
    async def opened(self, conditions: Iterable[Condition]) -> AsyncIterator[OpenSession]:
        """Open what runs of these conditions need, and keep the runs that are carried out claimed.

        Raises
        ------
        UsageError
            If runs of the conditions can't be executed as they are asked for.
        """
        settings = self._settings
        models, panel = await checked(list(conditions), settings)
        if self._notify and (warning := partial_judges(panel, models)):
            self._notify(warning)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(traced(self._notify))
            cache = StoredCalls(self._store.database) if settings.cache else None
            hub = await stack.enter_async_context(ModelHub(settings.models, cache=cache))
            apart = settings.judge_models != settings.models
            judges_hub = hub
            if apart:
                judges_hub = await stack.enter_async_context(ModelHub(settings.judge_models, cache=cache))
            saver = await stack.enter_async_context(open_saver(self._store))
            workshop = await stack.enter_async_context(
                open_workshop(
                    settings.sandbox,
                    settings.max_sandboxes,
                    trusted_code=all(map(is_own_baseline, models)),
                    notify=self._notify,
                )
            )
            judging = Judging(panel, judges_hub)
            lab = OpenSession(self._store, hub, judging, saver, workshop, self._watch, self._brake)
            await stack.enter_async_context(lab.beating(self.claims))
            yield lab


@asynccontextmanager
async def open_workshop(
    sandbox: str, most: int | None, *, trusted_code: bool, notify: Callable[[str], None] | None
) -> AsyncIterator[Workshop]:
    """Open the sandboxes of a session.

    Parameters
    ----------
    sandbox
        Where code runs, as in the settings.
    most
        Most sandboxes open at once; None for what the machine's memory holds.
    trusted_code
        Only the project's own baselines write code.
    notify
        Told in words what the user should know of where code runs.

    Raises
    ------
    UsageError
        If code can't run there.
    """
    choice = choose_backend(sandbox, trusted_code=trusted_code)
    if choice.note and notify:
        notify(choice.note)
    try:
        yield Workshop(choice.backend, most or default_sandboxes())
    finally:
        await asyncio.shield(choice.backend.close())


class OpenSession:
    """A session whose models and sandboxes are there; made by `Session.opened`."""

    def __init__(
        self,
        store: Store,
        hub: ModelHub,
        judging: Judging,
        saver: BaseCheckpointSaver[Any],
        workshop: Workshop,
        watch: Watch | None,
        brake: Brake | None,
    ) -> None:
        self._store = store
        self._hub = hub
        self._judging = judging
        self._saver = saver
        self._workshop = workshop
        self._watch = watch
        self._brake = brake
        self._held: dict[str, RunRecord] = {}
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._lost: set[str] = set()

    async def carry_out(self, run: RunRecord) -> RunRecord:
        """Execute a run that this worker has claimed and return its record as it ended.

        Raises
        ------
        LeaseLostError
            If another worker has taken it over.
        StoreError
            If the store can't be written.
        asyncio.CancelledError
            If interrupted, after the run has been recorded as such.
        """
        task = asyncio.current_task()
        assert task is not None
        self._held[run.id], self._tasks[run.id] = run, task
        try:
            return await self._carry_out(run)
        except (asyncio.CancelledError, LeaseLostError):
            if run.id not in self._lost:
                raise
            task.uncancel()
            raise LeaseLostError(f"the run {run.id} was taken over by another worker") from None
        finally:
            self._held.pop(run.id, None)
            self._tasks.pop(run.id, None)
            self._lost.discard(run.id)

    @asynccontextmanager
    async def beating(self, claims: Claims) -> AsyncIterator[None]:
        """Keep the runs that are carried out claimed, and stop those that others have taken over."""

        async def beat() -> None:
            while True:
                await asyncio.sleep(BEAT_SECONDS)
                held = list(self._held.values())
                try:
                    lost = await asyncio.to_thread(claims.renew, held)
                except StoreError as error:  # What the runs write will tell, if it does not come back.
                    _log.warning("leases could not be renewed: %s", error)
                    continue
                for run in held:
                    if run.id in lost and self._held.get(run.id) is run:
                        self._lost.add(run.id)
                        self._tasks[run.id].cancel()

        beating = asyncio.create_task(beat())
        try:
            yield
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating

    async def _carry_out(self, run: RunRecord) -> RunRecord:
        condition = condition_of(run)
        kind = KINDS.get(run.kind)
        start = time.time()
        recorder = await asyncio.to_thread(self._recorder, run) if run.attempt > 1 else self._new_recorder(run)
        self._tell(run, None)
        with ExitStack() as stack:
            services = Services(
                run_id=run.id,
                key=run.key,
                seed=run.seed,
                hub=self._hub,
                recorder=recorder,
                workshop=self._workshop,
                saver=self._saver if kind.checkpointed else None,
                folder=cache(lambda: Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="labmates-")))),
                judging=self._judging,
                brake=self._brake,
            )
            ended, cancelled = await _attempt(kind, condition, services)
        ended_run = replace(
            run,
            **ended,
            usage=recorder.usage(),
            budget=_budget(condition.pool, recorder.spent()),
            sandbox=self._workshop.backend.name if recorder.ran_code() else None,
            seconds=round(run.seconds + time.time() - start, 3),
        )
        await to_its_end(self._finish(ended_run, recorder, kind))
        self._tell(ended_run, None)
        if cancelled:
            raise asyncio.CancelledError
        return ended_run

    def _new_recorder(self, run: RunRecord) -> Recorder:
        return Recorder(self._store, run, listen=lambda event: self._tell(run, event))

    def _recorder(self, run: RunRecord) -> Recorder:
        """Return a recorder that knows what earlier attempts have recorded."""
        events = self._store.events(run.id)
        bodies = self._store.bodies(run.id)
        for event in events:
            self._tell(run, event)
        return Recorder(self._store, run, events=events, bodies=bodies, listen=lambda event: self._tell(run, event))

    async def _finish(self, run: RunRecord, recorder: Recorder, kind: Kind) -> None:
        await recorder.finish(run)
        if run.status in ENDED and kind.checkpointed:
            with _checkpoint_errors():
                await self._saver.adelete_thread(run.id)

    def _tell(self, run: RunRecord, event: Event | None) -> None:
        if self._watch is not None:
            self._watch(run, event)


@contextmanager
def _checkpoint_errors() -> Iterator[None]:
    """Turn errors of the checkpointer's database into the store's."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"the store failed: {error}") from error


async def _attempt(kind: Kind, condition: Condition, services: Services) -> tuple[Mapping[str, Any], bool]:
    """Execute a run; return how it ended, and whether it was cancelled."""
    try:
        with _checkpoint_errors():
            outcome: Outcome = await kind.execute(condition, services)
    except asyncio.CancelledError:
        return {"status": "interrupted", "error": "interrupted"}, True
    except StoppedError:
        return {"status": "interrupted", "error": "interrupted"}, False
    except StoreError:  # Not the run's fault: nothing could be written of it either.
        raise
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
