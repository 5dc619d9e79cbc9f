"""Processes that play strategies: confined, loaded once, on all cores; a strategy that kills a process is identified.

`Workers` is the only way to run a strategy's code. The code never runs in this process, and has no access to other
strategies: see `kernel.hosts`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path

from labmates.errors import LabmatesError, UsageError
from labmates.sandboxes.interpreter import FLAGS, this_interpreter
from labmates_populations.engine.kernel.batches import Batch, Cost, Errors, Result, chunks, merged, total_costs
from labmates_populations.engine.kernel.forking import fork
from labmates_populations.engine.kernel.source import Found, Source, lines_of, program_of, received_sources
from labmates_populations.engine.kernel.wire import ClosedError, receive, send

__all__ = ["Batch", "Cost", "Errors", "Loaded", "Result", "Workers", "chunks", "merged", "total_costs"]
DECISION_SECONDS = 1.0
"""Limit of processor time per decision; the limit for all decisions of a player is twice as high."""
MEMORY_BYTES = 512 << 20
"""Memory limit of a process: one for all compiled strategies, one for each other player."""
_MOST_WORKERS = 256
_POLL_SECONDS = 0.25


class WorkersError(LabmatesError):
    """The worker processes failed for a reason other than a strategy."""


@dataclass(frozen=True)
class Loaded(Found):
    """A strategy from a file, with its index among all strategies that these workers have loaded."""

    index: int


class Workers:
    """Processes that play strategies; a context manager for one thread at a time (others wait).

    Parameters
    ----------
    processes
        Maximum number of parallel processes; by default one for each available processor.
    seconds
        Limit of processor time per decision.
    memory
        Limit of a process's memory in bytes.
    unsafe
        Play without confinement: strategies' code then has all rights of this user.

    Raises
    ------
    UsageError
        At the first game, if this machine can't confine strategies and `unsafe` is not set.
    """

    def __init__(
        self,
        *,
        processes: int | None = None,
        seconds: float = DECISION_SECONDS,
        memory: int = MEMORY_BYTES,
        unsafe: bool = False,
    ) -> None:
        self.processes = min(processes or len(os.sched_getaffinity(0)), _MOST_WORKERS)
        self.loaded: list[Loaded] = []
        self._settings = {"seconds": seconds, "memory": memory, "unsafe": unsafe}
        self._lock = threading.RLock()
        self._root: tuple[subprocess.Popen[bytes], socket.socket] | None = None
        self._engines: list[_Engine] = []
        self._sources: list[Source] = []
        self._texts: list[str] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def load(self, name: str, text: str) -> list[Loaded]:
        """Read a file of strategies without execution; `name` is its name in error messages.

        Raises
        ------
        UsageError
            If it can't be read as Python.
        """
        return self.learn(self.read(name, text), text)

    def read(self, name: str, text: str) -> list[Source]:
        """Read the strategies of a file in a separate process, with the errors of `load`; any thread may call it."""
        with self._lock:
            connection = self._fork("source")
        with connection:
            try:
                send(connection, {"name": name}, text.encode("utf-8", "surrogatepass"))
                reply, data = receive(connection)
            except ClosedError as error:
                what = f"{name} can't be read as Python: it ends the process that reads it"
                raise UsageError(what) from error
        if "error" in reply:
            raise UsageError(str(reply["error"]))
        return received_sources(reply, data)

    def learn(self, sources: Sequence[Source], text: str = "") -> list[Loaded]:
        """Add strategies that have been read from a text, and number them in this order."""
        with self._lock:
            first, lines = len(self._sources), lines_of(text)
            self._sources += sources
            found = [Loaded(**vars(source.found), index=index) for index, source in enumerate(sources, start=first)]
            self._texts += ["".join(lines[strategy.line - 1 : strategy.end]) for strategy in found]
            self.loaded += found
        return found

    def play(self, batches: Sequence[Batch], *, stop: Callable[[], bool] | None = None) -> list[Result]:
        """Play batches in parallel; the results depend only on the batches.

        Parameters
        ----------
        stop
            Polled for a request to stop.

        Raises
        ------
        UsageError
            If this machine can't confine strategies.
        WorkersError
            If the processes fail for a reason other than a strategy.
        InterruptedError
            After a request to stop.
        """
        with self._lock:
            try:
                return self._play([*map(self._with_texts, batches)], stop or (lambda: False))
            except BaseException:
                self.close()
                raise

    def _play(self, batches: Sequence[Batch], stop: Callable[[], bool]) -> list[Result]:
        wanted = min(self.processes, len(batches))
        while len(self._engines) < wanted:
            self._engines.append(_Engine(Connection(self._fork("engine").detach())))
        waiting = deque(range(len(batches)))
        results: dict[int, Result] = {}
        busy: dict[Connection, tuple[_Engine, int]] = {}
        free = list(self._engines)
        while len(results) < len(batches):
            while waiting and free:
                engine, number = free.pop(), waiting.popleft()
                engine.ask(batches[number], self._sources)
                busy[engine.link] = engine, number
            for link in wait(list(busy), _POLL_SECONDS):
                assert isinstance(link, Connection)
                engine, number = busy.pop(link)
                results[number] = engine.result()
                free.append(engine)
            if stop():
                raise InterruptedError("stopped")
        return [results[number] for number in range(len(batches))]

    def _with_texts(self, batch: Batch) -> Batch:
        """A batch with the code of its strategies, in games in which they read each other's."""
        if batch.texts or not batch.game.sources:
            return batch
        numbers = set(batch.groups.reshape(-1).tolist())
        return replace(batch, texts={at: program_of(self._texts[at], self.loaded[at].name) for at in numbers})

    def close(self) -> None:
        """End all processes, if any; loaded strategies can be played again."""
        with self._lock:
            for engine in self._engines:
                engine.link.close()
            self._engines = []
            if self._root is not None:
                process, requests = self._root
                self._root = None
                requests.close()
                process.kill()  # its children end with it
                process.wait()

    def _fork(self, role: str) -> socket.socket:
        """A process in a role, forked from the first process."""
        process, requests = self._started()
        try:
            connection, ready = fork(requests, role, self._settings, (requests.fileno(),) if role == "engine" else ())
        except ClosedError as error:
            self.close()
            raise WorkersError(f"a process could not be started ({process.args!r}): {error}") from error
        if not ready.get("ready"):
            connection.close()
            raise WorkersError(f"a process could not be started: {ready.get('error')}")
        return connection

    def _started(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        if self._root is None:
            try:
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            except OSError as error:
                raise WorkersError(
                    f"strategies need packet sockets, which this system lacks ({error}); use Linux"
                ) from error
            command = [sys.executable, *FLAGS, "-m", "labmates_populations.engine.kernel.forking"]
            with theirs:
                process = subprocess.Popen(  # noqa: S603
                    command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, env=_environment()
                )
            self._root = process, ours
        return self._root


class _Engine:
    """A process that plays batches, and the number of strategies that it has received."""

    def __init__(self, link: Connection) -> None:
        self.link = link
        self._sent = 0

    def ask(self, batch: Batch, sources: Sequence[Source]) -> None:
        """Send a batch; `result` waits for its result."""
        with contextlib.suppress(OSError):  # `result` raises the error
            self.link.send((sources[self._sent :], batch))
        self._sent = len(sources)

    def result(self) -> Result:
        """The result of the batch."""
        try:
            result = self.link.recv()
        except (EOFError, OSError) as error:
            raise WorkersError("a playing process has died, not caused by any strategy") from error
        if isinstance(result, Result):
            return result
        what, unconfined = result
        if unconfined:
            raise UsageError(
                f"strategies' code can't be confined on this machine: {what}. Play them on a Linux with seccomp, or "
                "give their code full access to this machine with --sandbox unsafe-local."
            )
        raise WorkersError(f"a playing process failed, not caused by any strategy: {what}")


def _environment() -> dict[str, str]:
    """The complete environment of processes that find our packages."""
    names = ["labmates", "labmates_populations"]
    ours = (str(Path(package.__path__[0]).parent) for package in map(import_module, names))
    packages = dict.fromkeys([*ours, *map(str, this_interpreter().packages)])
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    bytecode = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
    return {
        "PYTHONPATH": os.pathsep.join(packages),
        "PYTHONHASHSEED": "0",
        **{name: os.environ[name] for name in bytecode if name in os.environ},
        "LANG": "C.UTF-8",
        **dict.fromkeys(threads, "1"),
    }
