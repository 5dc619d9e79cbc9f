"""Processes that play strategies: confined, loaded once, on all cores; a strategy that ends one is named.

`Workers` is the only way to run a strategy's code. It never runs in this process, nor where anything of another
strategy can be reached: see `kernel.hosts`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path

import numpy as np

from labmates.errors import UsageError
from labmates.sandboxes.interpreter import FLAGS, this_interpreter
from labmates.workflows.populations.engine.errors import WorkersError
from labmates.workflows.populations.engine.kernel.engine import Batch, Errors, Result
from labmates.workflows.populations.engine.kernel.forking import fork
from labmates.workflows.populations.engine.kernel.source import (
    Found,
    Source,
    UnreadableError,
    lines_of,
    program_of,
    received_sources,
)
from labmates.workflows.populations.engine.kernel.wire import ClosedError, receive, send
from labmates.workflows.populations.engine.match_ups import MatchUps

__all__ = ["Batch", "Errors", "Loaded", "Result", "Workers", "chunks"]
DECISION_SECONDS = 1.0
"""Processor time that a decision may take; all decisions of a player may take twice as much."""
MEMORY_BYTES = 512 << 20
"""What a process of players may use: that of all compiled strategies, and any other player's own."""
_MOST_WORKERS = 256
_POLL_SECONDS = 0.25
_WORTH_LOADING = 200_000
"""Decisions after which the machine pays for what it takes to load it once."""


@dataclass(frozen=True)
class Loaded(Found):
    """A strategy as it was found in a file.

    Attributes
    ----------
    index
        Its number among all strategies that these workers have loaded.
    """

    index: int


class Workers:
    """Processes that play. To be used as a context manager, by one thread at a time (others wait).

    Parameters
    ----------
    processes
        How many play side by side; by default one for each processor that this process may use.
    seconds
        Processor time that a decision may take.
    memory
        Bytes that a process of players may use.
    unsafe
        Leave out the confinement: strategies' code can then do whatever this user can do.
    native
        Load the machine that executes most strategies many times faster before the first game; by default it is loaded
        once so much has been played that it pays. It needs the extra ``fast``; results are the same.

    Raises
    ------
    UsageError
        When strategies are first played, if this machine can't confine them and `unsafe` is not set.
    """

    def __init__(
        self,
        *,
        processes: int | None = None,
        seconds: float = DECISION_SECONDS,
        memory: int = MEMORY_BYTES,
        unsafe: bool = False,
        native: bool = False,
    ) -> None:
        self.processes = min(processes or len(os.sched_getaffinity(0)), _MOST_WORKERS)
        self.loaded: list[Loaded] = []
        self._settings = {"seconds": seconds, "memory": memory, "unsafe": unsafe, "native": native}
        self._lock = threading.RLock()
        self._root: tuple[subprocess.Popen[bytes], socket.socket] | None = None
        self._native: socket.socket | None = None
        """Socket to the process that forks engines which have the machine loaded."""
        self._engines: list[_Engine] = []
        self._sources: list[Source] = []
        self._texts: list[str] = []
        self._match_ups = MatchUps()
        self._decisions = 0

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def load(self, name: str, text: str, *, lowered: bool = True) -> list[Loaded]:
        """Read a file of strategies; nothing of it is run.

        Parameters
        ----------
        name
            What the file is called in errors.
        lowered
            Whether its strategies may be played by the machine, for which it is read more slowly.

        Raises
        ------
        UsageError
            If it can't be read as Python.
        """
        with self._lock:
            connection = self._fork("source")
            with connection:
                try:
                    send(connection, {"name": name, "lowered": lowered}, text.encode("utf-8", "surrogatepass"))
                    told, data = receive(connection)
                except ClosedError as error:
                    raise UsageError(f"{name} can't be read as Python: it ends the process that reads it") from error
            if "error" in told:
                raise UsageError(str(told["error"]))
            try:
                sources = list(received_sources(told["found"], data))
            except UnreadableError as error:
                raise UsageError(f"{name} can't be read as Python: {error}") from error
            found = self.learn(sources)
            lines = lines_of(text)
            self._texts += ["".join(lines[one.line - 1 : one.end]) for one in found]
            return found

    def learn(self, sources: Sequence[Source]) -> list[Loaded]:
        """Take strategies that have been read; they are numbered in this order."""
        first = len(self._sources)
        self._sources += sources
        found = [Loaded(**vars(one.found), index=index) for index, one in enumerate(sources, start=first)]
        self.loaded += found
        return found

    def text(self, strategy: int) -> str:
        """The code of a strategy's class, as in its file."""
        return self._texts[strategy]

    def play(self, batches: Sequence[Batch], *, stop: Callable[[], bool] | None = None) -> list[Result]:
        """Play batches, side by side; the results depend on nothing but the batches.

        Games of strategies without chance that have been played before are remembered.

        Parameters
        ----------
        stop
            Asked now and then whether to leave off.

        Raises
        ------
        UsageError
            If strategies can't be confined here.
        WorkersError
            If the processes fail through no fault of any strategy.
        InterruptedError
            If it was to leave off.
        """
        with self._lock:
            try:
                same = np.array([not (one.random or one.paper or one.problems) for one in self.loaded], bool)
                batches = list(map(self._with_texts, batches))
                return self._match_ups.play(batches, same, lambda rest: self._play(rest, stop or (lambda: False)))
            except BaseException:
                self.close()
                raise

    def _play(self, batches: Sequence[Batch], stop: Callable[[], bool]) -> list[Result]:
        wanted = min(self.processes, len(batches))
        self._decisions += sum(batch.groups.size * batch.rounds for batch in batches)
        native = bool(self._settings["native"]) or self._decisions > _WORTH_LOADING
        if native and self._native is None:
            self._end_engines()
            self._native = self._load_machine()
        while len(self._engines) < wanted:
            self._engines.append(_Engine(Connection(self._fork("engine", self._native).detach())))
        waiting = deque(range(len(batches)))
        results: dict[int, Result] = {}
        busy: dict[Connection, tuple[_Engine, int]] = {}
        free = list(self._engines)
        while len(results) < len(batches):
            while waiting and free:
                engine, number = free.pop(), waiting.popleft()
                engine.ask(batches[number], self._sources, native=native)
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
        """A batch with the code that its strategies read of each other."""
        if batch.texts or not batch.game.sources:
            return batch
        numbers = set(batch.groups.reshape(-1).tolist())
        return replace(batch, texts={one: program_of(self._texts[one], self.loaded[one].name) for one in numbers})

    def close(self) -> None:
        """End all processes; may be called more than once. What was loaded can be played again."""
        with self._lock:
            self._end_engines()
            if self._native is not None:
                self._native.close()
                self._native = None
            if self._root is not None:
                process, requests = self._root
                self._root = None
                requests.close()
                process.kill()  # all that it has forked end with it
                process.wait()

    def _end_engines(self) -> None:
        for engine in self._engines:
            engine.link.close()
        self._engines = []

    def _load_machine(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._fork("native", descriptor=theirs.fileno()).close()
        return ours

    def _fork(self, role: str, by: socket.socket | None = None, *, descriptor: int | None = None) -> socket.socket:
        """A process in a role, forked from the first one or `by` another, with one `descriptor` of ours."""
        process, requests = self._started()
        given = requests.fileno() if role == "engine" else descriptor
        try:
            connection, ready = fork(by or requests, role, self._settings, () if given is None else (given,))
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
            command = [sys.executable, *FLAGS, "-m", "labmates.workflows.populations.engine.kernel.forking"]
            with theirs:
                process = subprocess.Popen(  # noqa: S603
                    command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, env=_environment()
                )
            self._root = process, ours
        return self._root


class _Engine:
    """A process that plays batches, and the strategies that it knows."""

    def __init__(self, link: Connection) -> None:
        self.link = link
        self._told = 0

    def ask(self, batch: Batch, sources: Sequence[Source], *, native: bool) -> None:
        """Ask for a batch; `result` waits for it."""
        with contextlib.suppress(OSError):  # found out when the answer is read
            self.link.send((sources[self._told :], batch, native))
        self._told = len(sources)

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
        raise WorkersError(f"a process of players failed, and no strategy's code was running: {what}")


def _environment() -> dict[str, str]:
    """All that the processes find in their environment."""
    package = Path(__file__).parents[4]
    packages = dict.fromkeys([str(package), *map(str, this_interpreter().packages)])
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        "PYTHONPATH": os.pathsep.join(packages),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
        **dict.fromkeys(threads, "1"),
    }


def chunks(batch: Batch, seats: int = 1024) -> Iterator[Batch]:
    """Cut a batch into such of about `seats` players, whatever the number of processes."""
    step = max(1, seats // batch.groups.shape[1])
    for start in range(0, len(batch.groups), step):
        opponents = None if batch.opponents is None else batch.opponents[start : start + step]
        groups = batch.groups[start : start + step]
        yield replace(batch, groups=groups, opponents=opponents, numbers=batch.group_numbers[start : start + step])
