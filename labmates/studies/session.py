"""Sessions: concurrent runs of one worker, with shared models and sandboxes.

Whatever happens to a run (an unreachable model, Ctrl-C, a killed process), the store records its state, and an
unfinished run can be resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from labmates.errors import UsageError
from labmates.judges.panel import Panel, make_panel, partial_judges
from labmates.models.check import check_capabilities, check_models, check_thinking
from labmates.models.hub import ModelHub
from labmates.models.names import RECORDED, is_own_baseline, parse_model
from labmates.models.tracing import traced
from labmates.records.claims import Claims
from labmates.records.run import RunRecord
from labmates.records.shared_calls import StoredCalls
from labmates.records.steps import LeaseLostError, Writer
from labmates.records.store import Store
from labmates.sandboxes.choose import choose_backend
from labmates.sandboxes.pool import SandboxPool, default_sandboxes
from labmates.studies.execution import Leases, OpenSession, Watch, shared_resources
from labmates.studies.made import check_made
from labmates.studies.runs import check_salt
from labmates.studies.settings import RunSettings
from labmates.util.garbage import rare_collection
from labmates.util.loops import Batches
from labmates.util.process_ids import this_worker
from labmates.workflows.calls.assessing import Judging
from labmates.workflows.calls.stop_signal import StopSignal
from labmates.workflows.people.answerers import people_of
from labmates.workflows.people.approval import NOBODY, Approver, approve_all
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, condition_of
from labmates.workflows.protocol.services import VIEWER, SessionServices


async def checked(conditions: Iterable[Condition], settings: RunSettings) -> tuple[list[str], set[str], Panel]:
    """Check conditions, and return their models, their kinds, and the judges.

    Raises `UsageError` if a condition is impossible, or a model can't be called.
    """
    named: dict[str, None] = {}
    kinds = set()
    for condition in conditions:
        condition.check()
        _check_players(condition)
        check_capabilities(condition.models(), condition.needs(), settings.models)
        for model in condition.models():
            check_thinking(model, condition.longest_reply(model))
        named |= dict.fromkeys(condition.models())
        kinds.add(condition.kind)
    models = list(named)
    panel = make_panel(settings.judges, settings.extractor)
    await check_models([*models, *panel.models], settings.models)
    return models, kinds, panel


def _check_players(condition: Condition) -> None:
    for model in condition.models():
        if parse_model(model).settings.structured:
            raise UsageError(
                f"model '{model}': structured is a setting of judges; players' decisions are held to their schema by "
                "--structured"
            )


@dataclass(eq=False)
class Session:
    """Executes runs with shared models and sandboxes, as one worker."""

    store: Store
    settings: RunSettings
    _: KW_ONLY
    watch: Watch | None = None  # receives events for a progress display
    notify: Callable[[str], None] | None = None  # receives messages for the user
    stop_signal: StopSignal | None = None  # ends runs at their next step
    approver: Approver | Literal["viewer"] | None = None  # answers requests for approval, unless the settings do

    def __post_init__(self) -> None:
        if self.settings.approve_in_viewer:
            self.approver = VIEWER
        if self.settings.approve_all:
            self.approver = approve_all
        self.claims = Claims(self.store, this_worker())

    async def execute(self, runs: Sequence[RunRecord]) -> list[RunRecord]:
        """Execute runs and return the ended runs, in the given order.

        Planned runs are inserted into the store; others are resumed. The result leaves out runs that were not started
        or were taken over by another worker.

        Raises `UsageError` before anything starts, if the runs can't be executed; `StoreError` if the store can't be
        written, so that the runs can be resumed later; `asyncio.CancelledError` if interrupted, after the runs are
        recorded as interrupted.
        """
        for run in runs:
            check_salt(run)
        check_made(runs, allow=self.settings.allow_mixed)
        conditions = {run.key: condition_of(run) for run in runs}
        async with self.opened(conditions.values()) as lab:
            places = asyncio.Semaphore(self.settings.max_concurrent_runs)
            new = Batches(self.claims.all_new)

            async def execute(run: RunRecord) -> RunRecord | None:
                async with places:
                    if self.stop_signal is not None and self.stop_signal.pulled.is_set():
                        return None
                    if run.status == "planned":
                        claimed = await new.result(run)
                    else:
                        claimed = await asyncio.to_thread(self.claims.take, run.id)
                    with suppress(LeaseLostError):
                        return await lab.carry_out(claimed)
                    if self.notify:
                        self.notify(f"the run {run.id} was taken over by another worker")
                    return None

            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(execute(run)) for run in runs]
            except ExceptionGroup as group_error:
                raise group_error.exceptions[0] from None
            return [ended for task in tasks if (ended := task.result()) is not None]

    @asynccontextmanager
    async def opened(self, conditions: Iterable[Condition]) -> AsyncIterator[OpenSession]:
        """Open the models and sandboxes for runs of these conditions, and renew the leases of running runs.

        Raises `UsageError` if runs of the conditions can't be executed.
        """
        settings = self.settings
        models, kinds, panel = await checked(self._answerable(conditions), settings)
        if self.notify and (warning := partial_judges(panel, models)):
            self.notify(warning)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(traced(self.notify))
            cache = StoredCalls(self.store) if settings.cache else None
            hub = await stack.enter_async_context(ModelHub(settings.models, cache=cache))
            sandbox_pool = await stack.enter_async_context(
                open_sandbox_pool(
                    kinds,
                    settings.sandbox,
                    settings.max_sandboxes,
                    trusted_code=all(map(is_own_baseline, models)),
                    notify=self.notify,
                )
            )
            shared = shared_resources(settings, stack.enter_context(ExitStack()))
            services = SessionServices(
                hub=hub,
                sandbox_pool=sandbox_pool,
                judging=Judging(panel, hub),
                stop_signal=self.stop_signal,
                approver=self.approver,
                approval_timeout=settings.approval_timeout,
            )
            leases = Leases(self.claims)
            await stack.enter_async_context(leases.beating())
            writer = Writer(self.store)
            stack.push_async_callback(writer.close)
            stack.enter_context(rare_collection())
            yield OpenSession(self.store, leases, writer, services, shared, self.watch)

    def _answerable(self, conditions: Iterable[Condition]) -> Iterator[Condition]:
        """Yield the conditions; requests for approval without an approver, and unknown runs in them, are an error."""
        told: set[str] = set()

        def tell_once(text: str) -> None:
            if self.notify and text not in told:
                self.notify(text)
            told.add(text)

        for condition in conditions:
            for doubt in condition.doubts():
                tell_once(doubt)
            if condition.approvals and self.approver is None:
                points = ", ".join(condition.approvals)
                raise UsageError(f"this organisation requires a person's approval of each {points}, but {NOBODY}")
            if (condition.approvals or condition.interrupts) and self.approver == VIEWER:
                tell_once("Approvals wait for you on the runs' pages: labmates view")
            if persons := people_of(condition.models()):
                tell_once(f"{', '.join(persons)}: answer on the runs' pages: labmates view")
            for model in map(parse_model, condition.models()):
                if model.provider == RECORDED:
                    self.store.run(model.name)
            yield condition


@asynccontextmanager
async def open_sandbox_pool(
    kinds: Iterable[str],
    sandbox: str,
    most: int | None,
    *,
    trusted_code: bool,
    notify: Callable[[str], None] | None,
) -> AsyncIterator[SandboxPool | None]:
    """Open a session's pool of up to `most` sandboxes (by default limited by memory); None if no kind needs any.

    `trusted_code` tells that only the project's baselines write code. Raises `UsageError` if the `sandbox` is unusable.
    """
    if not any(EXPERIMENTS.get(kind).needs_sandbox for kind in kinds):
        yield None
        return
    choice = await asyncio.to_thread(choose_backend, sandbox, trusted_code=trusted_code)
    if choice.note and notify:
        notify(choice.note)
    try:
        yield SandboxPool(choice.backend, most or default_sandboxes())
    finally:
        await asyncio.shield(choice.backend.close())
