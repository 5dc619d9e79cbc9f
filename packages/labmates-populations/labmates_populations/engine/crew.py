"""The workers of a session, shared by its runs along with the loaded strategies."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import ModuleType

from labmates.errors import UsageError
from labmates.studies.executor import LOCAL, executor_at
from labmates.workflows.protocol.experiment import SessionSettings
from labmates_populations.engine.library import Population, library_digest, load_population
from labmates_populations.engine.workers import Batch, Result, Workers

_MOST_LIBRARIES = 2
"""More libraries than this are unloaded as soon as no run uses them."""
Wanted = tuple[str, str, tuple[str, ...], tuple[str, ...]]
"""Folder, game, models and attitudes."""
_Key = tuple[Wanted, str]


class Crew:
    """Workers by loaded library: all libraries in use, and some recently used ones.

    Parameters
    ----------
    processes
        Worker processes; by default one for each processor.
    unsafe
        Play without confinement.
    executor
        Execution of strategies: ``local``, or ``ray`` with an address of a cluster or none. Connects at first use.
    """

    def __init__(
        self,
        *,
        processes: int | None = None,
        unsafe: bool = False,
        executor: str = LOCAL,
    ) -> None:
        self._processes = processes
        self._unsafe = unsafe
        self._executor = executor
        self._connection = ExitStack()
        self._ray: ModuleType | None = None
        self._lock = threading.Lock()
        self._known: dict[_Key, tuple[Workers, Population]] = {}
        self._users: dict[_Key, weakref.WeakSet[Strategies]] = {}

    def open(self, wanted: Wanted, digest: str) -> Strategies:
        """The strategies of a library, with the workers that play them.

        Raises
        ------
        UsageError
            If there are none, or the library no longer matches its `digest`
            (`labmates_populations.engine.library.library_digest`).
        """
        folder, game, models, attitudes = wanted
        with self._lock:
            key = wanted, digest
            if key in self._known:
                self._known[key] = self._known.pop(key)  # least recently used first
            else:
                if library_digest(Path(folder), game) != digest:
                    raise UsageError(f"the strategies in {folder} have changed since this run began")
                self._make_room()
                workers = self._shared_workers()
                try:
                    population = load_population(workers, Path(folder), game, models=models, attitudes=attitudes)
                except BaseException:
                    workers.close()
                    raise
                self._known[key] = workers, population
                self._users[key] = weakref.WeakSet()
            strategies = Strategies(*self._known[key])
            self._users[key].add(strategies)
            return strategies

    def _make_room(self) -> None:
        """Close the least recently used workers without users until there is room for others."""
        for key in [key for key in self._known if not self._users[key]]:
            if len(self._known) < (_MOST_LIBRARIES if self._ray is None else 1):
                break  # on Ray, workers hold the processors that the next ones need
            self._known.pop(key)[0].close()
            del self._users[key]

    def _shared_workers(self) -> Workers:
        if self._executor == LOCAL:
            return self.workers()
        from labmates_populations.engine.ray_workers import RayWorkers

        if self._ray is None:
            processors = self._processes or len(os.sched_getaffinity(0))
            executor, address = executor_at(self._executor)
            self._ray = self._connection.enter_context(executor.connected(address, cpus=processors))
        return RayWorkers(self._ray, processes=self._processes, unsafe=self._unsafe)

    def workers(self) -> Workers:
        """Unshared workers on this machine, closed by the caller; UsageError with another executor."""
        if self._executor != LOCAL:
            raise UsageError(f"--executor {self._executor}: strategies are checked on this machine")
        return Workers(processes=self._processes, unsafe=self._unsafe)

    def close(self) -> None:
        """Close all shared workers."""
        with self._lock:
            for workers, _ in self._known.values():
                workers.close()
            self._known.clear()
            self._users.clear()
            self._connection.close()


@contextmanager
def open_crew(settings: SessionSettings) -> Iterator[Crew]:
    """Open the shared workers of a session; they start with the first game."""
    with closing(
        Crew(
            processes=settings.processes,
            unsafe=settings.sandbox == "unsafe-local",
            executor=settings.executor,
        )
    ) as crew:
        yield crew


class Strategies:
    """Strategies and the workers that play them."""

    def __init__(self, workers: Workers, population: Population) -> None:
        self.population = population
        self._workers = workers

    def play(self, batches: Sequence[Batch], stop: Callable[[], bool] | None = None) -> list[Result]:
        """Play batches; see `labmates_populations.engine.workers.Workers.play`."""
        return self._workers.play(batches, stop=stop)

    def text(self, strategy: int) -> str:
        """The code of a strategy's class, as in its file."""
        return self._workers.text(strategy)
