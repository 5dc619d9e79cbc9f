"""Workers on Ray: each is a Ray task that executes runs like `study.work_on`, on any node.

The study and its runs are only in the store; Ray starts workers, and restarts them after the death of a process or a
node. Only the study's plan passes through Ray.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import sqlalchemy as sa

from labmates.errors import LabmatesError, UsageError
from labmates.records import schema
from labmates.records.claims import Claims
from labmates.records.database import Database
from labmates.records.run import ENDED, PAUSED
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.sandboxes.pool import default_sandboxes
from labmates.studies.executor import Executor
from labmates.studies.settings import RunSettings
from labmates.studies.spec import StudySpec
from labmates.studies.study import work_on
from labmates.util.loops import running, to_its_end
from labmates.util.process_ids import this_worker
from labmates.workflows.calls.stop_signal import StopSignal
from labmates_ray.cluster import connected

Order = Literal["work", "stop", "leave"]
"""Orders: continue, end runs at their next step, or leave them at once."""


@dataclass
class Postbox:
    """A Ray actor beside the driver, for orders to workers and their notes."""

    order: Order = "work"
    notes: dict[str, None] = field(default_factory=dict)

    def give(self, order: Order) -> None:
        """Set the workers' order."""
        self.order = order

    def ask(self) -> Order:
        """The current order."""
        return self.order

    def note(self, text: str) -> None:
        """Add a note for the user; equal notes of several workers count once."""
        self.notes[text] = None

    def heard(self, after: int) -> list[str]:
        """The notes from a position on."""
        return list(self.notes)[after:]


SANDBOX = "sandbox"
"""The Ray resource for a node's maximum number of open sandboxes."""
_ASK_SECONDS = 1.0
"""Interval at which a worker polls its order."""
_LOOK_SECONDS = 5.0
"""Interval at which the store is polled for abandoned runs, while none of our runs ends."""
_LEAVE_SECONDS = 20.0
"""Time limit of workers' clean-up before they are killed."""

_RETRIES = 100
"""Maximum restarts of a worker, for workers that die before a claim; a run that kills its workers fails earlier."""


async def work_on_ray(
    url: str,
    spec: StudySpec,
    *,
    workers: int,
    address: str | None = None,
    stop_signal: StopSignal | None = None,
    notify: Callable[[str], None] | None = None,
) -> int:
    """Execute runs of a study with workers on Ray until no run is left, and return the number of runs ended meanwhile.

    Each worker takes one processor and its share of the nodes' sandboxes: the largest share with room for all workers,
    within the settings. If there is no room for all, some workers wait. The study is in the store at `url`, which all
    workers can reach. `address` is ``HOST:PORT`` of a cluster with this machine as a node, or ``auto`` for the cluster
    on this machine; without one, an existing connection is used, else a local Ray is started. The stop
    signal ends running runs at their next step. Raises
    `UsageError` if the cluster is unreachable, has no sandboxes or can't use the store, or the runs can't be executed;
    `LabmatesError` if workers fail; the study can be resumed; `asyncio.CancelledError` if cancelled, after the workers
    have left.
    """
    settings = spec.settings()
    sandboxes = settings.max_sandboxes or default_sandboxes()
    store = await asyncio.to_thread(Store, url, must_exist=True)
    connection = ExitStack()
    try:
        to_ray = connected(address, cpus=workers, resources={SANDBOX: sandboxes})
        ray = await to_its_end(asyncio.to_thread(connection.enter_context, to_ray))
        reached = _url_for_workers(store, one_machine=is_one_machine(ray))
        # The number of sandboxes of each living node.
        share = share_of_sandboxes(
            [int(node["Resources"].get(SANDBOX, 0)) for node in ray.nodes() if node["Alive"]], workers
        )
        share = min(share, settings.max_sandboxes or share)
        settings = settings.model_copy(update={"max_sandboxes": share})
        driver = _Driver(ray, store, reached, spec, settings, stop_signal or StopSignal(), notify)
        before = await asyncio.to_thread(_ended, store, spec)
        await driver.work(workers)
        return await asyncio.to_thread(_ended, store, spec) - before
    finally:
        await to_its_end(asyncio.to_thread(connection.close))
        await asyncio.to_thread(store.close)


def is_one_machine(ray: ModuleType) -> bool:
    """Whether the cluster consists of this machine only."""
    return len({node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}) == 1


def share_of_sandboxes(nodes: Sequence[int], workers: int) -> int:
    """The number of sandboxes per worker, given those of each node: the largest share with room for all workers.

    It is at least one, even if some workers must wait. Raises `UsageError` if no node has sandboxes.
    """
    largest = max(nodes, default=0)
    if not largest:
        raise UsageError(
            f"no node of the Ray cluster has the resource '{SANDBOX}', which limits the sandboxes open on it at once; "
            f"declare it when you start the nodes: ray start … --resources='{{\"{SANDBOX}\": 8}}'"
        )
    fitting = (share for share in range(largest, 0, -1) if sum(node // share for node in nodes) >= workers)
    return next(fitting, 1)


@dataclass(frozen=True)
class _Failure:
    """A worker's error as text, since an exception may not survive pickling."""

    text: str
    is_usage: bool


class _Driver:
    def __init__(
        self,
        ray: ModuleType,
        store: Store,
        url: str,
        spec: StudySpec,
        settings: RunSettings,
        stop_signal: StopSignal,
        notify: Callable[[str], None] | None,
    ) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray = ray
        self._store = store
        self._url = url
        self._spec = spec
        self._settings = settings
        self._stop_signal = stop_signal
        self._notify = notify or (lambda _: None)
        self._claims = Claims(store, this_worker())
        self._began = store.read(store.now)
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._postbox = ray.remote(Postbox).options(num_cpus=0, scheduling_strategy=here).remote()
        options = {"num_cpus": 1, "resources": {SANDBOX: settings.max_sandboxes}, "max_retries": _RETRIES}
        self._worker = ray.remote(_work).options(**options)
        self._workers: dict[asyncio.Future[_Failure | None], Any] = {}
        self._notes = 0

    async def work(self, workers: int) -> None:
        """Keep up to `workers` workers busy until no run is left."""
        stop = asyncio.create_task(self._stop_signal.pulled.wait())
        try:
            while not stop.done():
                waiting, going_on = await asyncio.to_thread(self._look)
                for _ in range(min(waiting, workers - len(self._workers))):
                    task = self._worker.remote(self._url, self._spec, self._settings, self._postbox)
                    self._workers[asyncio.wrap_future(task.future())] = task
                if not self._workers and not going_on:
                    break
                watched: set[asyncio.Future[Any]] = {*self._workers, stop}
                await asyncio.wait(watched, timeout=_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                await self._collect()
            await self._postbox.give.remote("stop")
            while self._workers:
                await asyncio.wait(self._workers, return_when=asyncio.FIRST_COMPLETED)
                await self._collect()
        finally:
            stop.cancel()
            await asyncio.shield(self._dismiss())

    def _look(self) -> tuple[int, bool]:
        """The number of claimable runs, and whether other runs are running."""
        self._claims.free_lost(self._spec.name, attempts=self._spec.attempts)
        database = self._store
        counts = study_counts(database, self._spec.name)
        waiting = counts.of("planned", "interrupted")
        # New workers would call a paused model again; running workers continue with other models.
        is_over = counts.cannot_go_on(self._spec.cap) or _has_paused(database, self._spec.name, self._began)
        return 0 if is_over else waiting, counts.of("running") > 0

    async def _collect(self) -> None:
        """Pass on the workers' notes, and raise the errors of finished workers."""
        for note in await self._postbox.heard.remote(self._notes):
            self._notes += 1
            self._notify(note)
        for done in [worker for worker in self._workers if worker.done()]:
            del self._workers[done]
            if error := done.exception():
                raise LabmatesError(f"a worker on the Ray cluster failed: {error}") from error
            if failure := done.result():
                raise UsageError(failure.text) if failure.is_usage else LabmatesError(failure.text)

    async def _dismiss(self) -> None:
        if self._workers:
            with suppress(self._ray.exceptions.RayError):
                await self._postbox.give.remote("leave")
            await asyncio.wait(self._workers, timeout=_LEAVE_SECONDS)
            for worker, task in self._workers.items():
                if not worker.done():
                    self._ray.cancel(task, force=True)
        self._ray.kill(self._postbox)


def _work(url: str, spec: StudySpec, settings: RunSettings, postbox: Any) -> _Failure | None:
    """Execute runs as one worker; this is the Ray task."""
    where = platform.node()
    try:
        with suppress(asyncio.CancelledError):
            asyncio.run(_attend(url, spec, settings, postbox, where))
    except LabmatesError as error:
        return _Failure(f"a worker on {where}: {error}", isinstance(error, UsageError))
    return None


async def _attend(url: str, spec: StudySpec, settings: RunSettings, postbox: Any, where: str) -> None:
    task = asyncio.current_task()
    assert task is not None
    stop_signal = StopSignal()

    def notify(text: str) -> None:
        postbox.note.remote(f"{where}: {text}")

    async with running(_obey(postbox, stop_signal, task)):
        store = await asyncio.to_thread(Store, url, must_exist=True, patient=True)
        try:
            await work_on(store, spec, settings=settings, stop_signal=stop_signal, notify=notify, wait=False)
        finally:
            await asyncio.to_thread(store.close)


async def _obey(postbox: Any, stop_signal: StopSignal, work: asyncio.Task[Any]) -> None:
    """Poll and follow orders."""
    from ray.exceptions import RayError

    while True:
        try:
            order = await postbox.ask.remote()
        except RayError:  # The driver is gone.
            order = "stop"
        if order == "leave":
            work.cancel()
            return
        if order == "stop":
            stop_signal.pull()
        await asyncio.sleep(_ASK_SECONDS)


def _has_paused(database: Database, name: str, since: float) -> bool:
    """Whether a run of a study was paused after a moment (Unix time of the database)."""
    attempts, runs = schema.attempts, schema.runs
    query = sa.select(attempts.c.run).join(runs, runs.c.id == attempts.c.run)
    query = query.where(runs.c.study == name, attempts.c.reason.startswith(PAUSED), attempts.c.at >= since)
    return bool(database.rows(query.limit(1)))


def _ended(store: Store, spec: StudySpec) -> int:
    return study_counts(store, spec.name).of(*ENDED, "failed")


def _url_for_workers(store: Store, *, one_machine: bool) -> str:
    """The store's URL for workers. Raises `UsageError` if workers on other machines can't or shouldn't use it."""
    if store.sqlite_path is not None:
        if one_machine:
            path = str(Path(store.sqlite_path).absolute())
            return sa.URL.create("sqlite", database=path).render_as_string()
        raise UsageError(
            f"the store {store.shown_url} is a file of this machine, and the Ray cluster has others: give a store in "
            "PostgreSQL (postgresql://…), or leave the address of the cluster out"
        )
    if not one_machine and sa.make_url(store.url).password is not None:
        raise UsageError(
            f"the URL of the store {store.shown_url} holds a password, which would pass through the Ray cluster: leave "
            "it out of the URL, and put it on each node into ~/.pgpass, or a file that PGPASSFILE names"
        )
    return store.url


class _Ray:
    """Ray as an executor."""

    connected = staticmethod(connected)
    work_on = staticmethod(work_on_ray)


RAY: Executor = _Ray()
