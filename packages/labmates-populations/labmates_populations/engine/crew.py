"""The workers of a session, shared by its runs along with the loaded strategies."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import ModuleType
from weakref import WeakValueDictionary

from labmates.errors import UsageError
from labmates.studies.executor import LOCAL, executor_at
from labmates.workflows.protocol.experiment import SessionSettings
from labmates_populations.engine.library import Population, library_digest, load_population
from labmates_populations.engine.workers import Batch, Result, Workers

_MOST_LIBRARIES = 2
"""Libraries that stay loaded without a run that uses them."""
Wanted = tuple[str, str, tuple[str, ...], tuple[str, ...]]
"""Folder, game, models and attitudes."""


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

    def __init__(self, *, processes: int | None = None, unsafe: bool = False, executor: str = LOCAL) -> None:
        self._processes = processes
        self._unsafe = unsafe
        self._executor = executor
        self._connection = ExitStack()
        self._ray: ModuleType | None = None
        self._lock = threading.Lock()
        self._known: WeakValueDictionary[tuple[Wanted, str], Strategies] = WeakValueDictionary()
        self._recent: list[Strategies] = []

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
            strategies = self._known.get((wanted, digest))
            if strategies is None:
                if library_digest(Path(folder), game) != digest:
                    raise UsageError(f"the strategies in {folder} have changed since this run began")
                # On Ray, workers hold the processors that the next ones need.
                kept = 0 if self._ray else _MOST_LIBRARIES - 1
                del self._recent[: len(self._recent) - kept]
                workers = self._shared_workers()
                try:
                    population = load_population(workers, Path(folder), game, models=models, attitudes=attitudes)
                except BaseException:
                    workers.close()
                    raise
                strategies = self._known[wanted, digest] = Strategies(workers, population)
            self._recent = [*(one for one in self._recent if one is not strategies), strategies]
            return strategies

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
            for strategies in self._known.values():
                strategies.workers.close()
            self._known.clear()
            self._recent.clear()
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
    """Strategies and the workers that play them, which end with the last user."""

    def __init__(self, workers: Workers, population: Population) -> None:
        self.population = population
        self.workers = workers
        weakref.finalize(self, workers.close)

    def play(self, batches: Sequence[Batch], stop: Callable[[], bool] | None = None) -> list[Result]:
        """Play batches; see `labmates_populations.engine.workers.Workers.play`."""
        return self.workers.play(batches, stop=stop)
