"""Execution of a claimed run, from its first step to its recorded end, and its lease."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from labmates.budgets.ledger import UNLIMITED, Ledger
from labmates.errors import LabmatesError
from labmates.models.errors import ModelPausedError
from labmates.models.tracing import new_trace_id, send_scores
from labmates.records.claims import Claims
from labmates.records.database import StoreError
from labmates.records.events import ErrorEvent, Event, ScoreEvent
from labmates.records.recorder import Recorder
from labmates.records.run import PAUSED, RunRecord
from labmates.records.steps import LeaseLostError, Writer, charges
from labmates.records.store import Store
from labmates.sandboxes.folders import own_folder
from labmates.studies.made import made_in
from labmates.studies.runs import accounted, check_salt, invalid_of
from labmates.studies.settings import RunSettings
from labmates.util.loops import in_thread, running, to_its_end
from labmates.workflows.calls.stop_signal import StoppedError
from labmates.workflows.people.answerers import people_of
from labmates.workflows.people.live import live_run
from labmates.workflows.protocol.experiment import (
    EXPERIMENTS,
    Condition,
    Experiment,
    Outcome,
    SessionSettings,
    condition_of,
)
from labmates.workflows.protocol.services import Services, SessionServices

_log = logging.getLogger(__name__)

Watch = Callable[[RunRecord, Event | None], None]
"""Receives a run and its newest event; None when the run starts and ends."""


@dataclass(eq=False)
class Lease:
    """A run that this worker holds."""

    run: RunRecord
    task: asyncio.Task[Any]
    # The end of the run is being written. From then on the task is not cancelled: a failed renewal may have come after
    # the end, and the store refuses the end of a lost run.
    ending: bool = False
    lost: bool = False  # another worker has taken the run over


class Leases:
    """The leases of one worker."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._held: dict[str, Lease] = {}

    @contextmanager
    def hold(self, run: RunRecord) -> Iterator[Lease]:
        """Hold the lease of the run of the current task.

        Raises `LeaseLostError` if another worker has taken the run over.
        """
        task = asyncio.current_task()
        assert task is not None
        lease = self._held[run.id] = Lease(run, task)
        try:
            yield lease
        except (asyncio.CancelledError, LeaseLostError):
            if not lease.lost:
                raise
            task.uncancel()
            raise LeaseLostError(run.id) from None
        finally:
            if self._held.get(run.id) is lease:
                del self._held[run.id]

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Renew the leases of held runs, and cancel lost runs."""

        async def beat() -> None:
            async for run in self._claims.renewed(lambda: [lease.run for lease in self._held.values()]):
                lease = self._held.get(run.id)
                if lease is not None and lease.run is run and not lease.ending:
                    lease.lost = True
                    lease.task.cancel()

        async with running(beat()):
            yield


def shared_resources(settings: RunSettings, stack: ExitStack) -> Callable[[str], Any]:
    """Find what runs of an experiment share in a session, by its name, opened at first use; None for nothing."""
    session = SessionSettings(settings.processes, settings.sandbox, settings.executor)

    @cache
    def of(kind: str) -> Any:
        shared = EXPERIMENTS.get(kind).shared
        return None if shared is None else stack.enter_context(shared(session))

    return of


@dataclass(frozen=True)
class OpenSession:
    """A session with open models and sandboxes; created by `Session.opened`."""

    store: Store
    leases: Leases
    writer: Writer
    services: SessionServices
    shared: Callable[[str], Any]
    watch: Watch | None

    async def carry_out(self, run: RunRecord) -> RunRecord:
        """Execute a claimed run and return the ended run.

        Raises `LeaseLostError` if another worker has taken the run over; `asyncio.CancelledError` if interrupted, after
        the run is recorded as interrupted.
        """
        with self.leases.hold(run) as lease:
            return await self._carry_out(run, lease)

    async def _carry_out(self, run: RunRecord, lease: Lease) -> RunRecord:
        check_salt(run)
        condition = condition_of(run)
        run = replace(run, made=await asyncio.to_thread(made_in, run))
        kind = EXPERIMENTS.get(run.kind)
        start = time.time()
        recorder = await in_thread(lambda: self._recorder(run), unless=run.attempt == 1)
        self._tell(run, None)
        async with AsyncExitStack() as stack:
            live = await stack.enter_async_context(live_run(run.id)) if people_of(condition.models()) else None
            services = Services(
                **vars(self.services),
                run_id=run.id,
                key=run.key,
                seed=run.seed,
                reply_seed=run.reply_seed,
                recorder=recorder,
                folder=cache(lambda: stack.enter_context(own_folder())),
                shared=self.shared(run.kind),
                ledger=bound_of(run, recorder.events),
                record_of=self._record_of,
                trace=new_trace_id(),
                live=live,
            )
            ended, cancelled = await _attempt(kind, condition, services)
        ended_run = replace(
            accounted(run, condition.pool, recorder),
            **ended,
            sandbox=services.sandbox_pool.backend.name if services.sandbox_pool and recorder.ran_code() else None,
            seconds=round(run.seconds + time.time() - start, 3),
        )
        ended_run = replace(ended_run, invalid=invalid_of(run, recorder, ended_run.invalid))
        lease.ending = True
        ended_run = await to_its_end(recorder.finish(ended_run))
        if services.trace:
            await asyncio.to_thread(send_scores, services.trace, list(_feedback(ended_run, recorder.events)))
        self._tell(ended_run, None)
        if cancelled:
            raise asyncio.CancelledError
        return ended_run

    def _recorder(self, run: RunRecord) -> Recorder:
        """A recorder with the record of earlier attempts."""
        is_first = run.attempt == 1
        events, bodies = ([], []) if is_first else (self.store.events(run.id), self.store.bodies(run.id))
        for event in events:
            self._tell(run, event)
        return Recorder(self.writer, run, events=events, bodies=bodies, listen=lambda event: self._tell(run, event))

    def _record_of(self, run_id: str) -> Recorder:
        run = self.store.run(run_id)
        return Recorder(None, None, events=self.store.events(run.id), bodies=self.store.bodies(run.id))

    def _tell(self, run: RunRecord, event: Event | None) -> None:
        if self.watch is not None:
            self.watch(run, event)


async def _attempt(kind: Experiment[Any], condition: Condition, services: Services) -> tuple[Mapping[str, Any], bool]:
    """Execute a run; return the fields of its end, and whether it was cancelled."""
    try:
        outcome: Outcome = await kind.execute(condition, services)
    except asyncio.CancelledError:
        return {"status": "interrupted", "error": "interrupted"}, True
    except StoppedError:
        return {"status": "interrupted", "error": "interrupted"}, False
    except ModelPausedError as error:
        return {"status": "interrupted", "error": f"{PAUSED}{error}"}, False
    except StoreError:  # Not the run's fault, and its end can't be written.
        raise
    except LabmatesError as error:
        text = str(error)
    except Exception as error:
        _log.warning("run %s failed", services.run_id, exc_info=True)
        text = f"{type(error).__name__}: {error}"
    else:
        return {"status": outcome.status, "metrics": dict(outcome.metrics), "invalid": outcome.invalid}, False
    services.recorder.emit(ErrorEvent(text=text))
    return {"status": "failed", "error": text}, False


def _feedback(run: RunRecord, events: Sequence[Event]) -> Iterator[tuple[str, float | None, str]]:
    """The metrics and scores of a run as name, value and reason."""
    yield from ((name, value, "") for name, value in run.metrics.items())
    for event in events:
        if isinstance(event, ScoreEvent):
            yield f"{event.judge}.{event.metric}", event.value, event.reason


def bound_of(run: RunRecord, events: Sequence[Event]) -> Ledger:
    """The ledger of a run's bound, after paying `events`."""
    ledger = Ledger(run.most or UNLIMITED)
    ledger.restore(charges(events), call="earlier", member="")
    return ledger
