"""Worker processes that play strategies: confined, loaded once, on all cores; a strategy that kills one is named.

`Workers` is the only way to run a strategy's code. It never runs in this process.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates.errors import UsageError
from labmates.games.repeated import RepeatedGame
from labmates.sandboxes.interpreter import FLAGS, this_interpreter
from labmates.workflows.populations.engine.errors import WorkersError
from labmates.workflows.populations.engine.kernel.limits import HUNG
from labmates.workflows.populations.engine.kernel.server import MOST_WORKERS
from labmates.workflows.populations.engine.kernel.source import Found
from labmates.workflows.populations.engine.kernel.wire import ClosedError, receive, send
from labmates.workflows.populations.engine.kernel.worker import BEATS, MARKS, NOTE

DECISION_SECONDS = 1.0
"""Processor time that a decision may take."""
MEMORY_BYTES = 512 << 20
"""What all strategies together may use in one worker."""
_POLL = 0.25
_SILENT_SECONDS = 60.0
_START_SECONDS = 60.0
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Loaded(Found):
    """A strategy as it was found in a file.

    Attributes
    ----------
    index
        Its number among all strategies that these workers have loaded.
    """

    index: int


@dataclass(frozen=True)
class Batch:
    """Games to be played, one in each group.

    Attributes
    ----------
    groups
        Numbers of strategies, ``(groups, players)``; ``(groups, 1)`` where `opponents` are given.
    seed, first
        What the players' random numbers derive from, with the number of the group (counted from `first`) and the seat.
    cooperate
        The strategies that fall back to cooperation.
    broken
        Strategies that are not run: they fall back in each round.
    opponents
        What the others do, ``(groups, rounds, players - 1)``; None if they are strategies, too.
    """

    game: RepeatedGame
    groups: NDArray[np.int64]
    seed: int
    first: int = 0
    cooperate: frozenset[int] = frozenset()
    broken: frozenset[int] = frozenset()
    opponents: NDArray[np.bool_] | None = None
    measure: bool = False


@dataclass(frozen=True)
class Errors:
    """What a strategy did wrong in a batch.

    Attributes
    ----------
    count
        Decisions that it failed to make, and those that were not asked for any more.
    over
        Players that fell back for the rest of their game: they took too long or too much memory, or could not be made.
    group, seat, round
        Where it happened first; round -1 is when the player was made. The seat is -1 where the worker died.
    what
        What happened first.
    spent
        Players that took too long or too much memory, when they were made or later.
    seats
        The same for each seat, as ``{"group seat": {"round", "what", "count"}}``; empty for very many.
    fatal
        Whether its code ended or blocked a worker, so that it was not run again in this batch.
    """

    strategy: int
    count: int
    over: int
    group: int
    seat: int
    round: int
    what: str
    spent: int = 0
    seats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fatal: bool = False

    def joined(self, later: Errors) -> Errors:
        """Return this and what the same strategy did wrong later."""
        return replace(
            self,
            count=self.count + later.count,
            over=self.over + later.over,
            spent=self.spent + later.spent,
            fatal=self.fatal or later.fatal,
        )

    @property
    def stopped(self) -> bool:
        """Whether the strategy took what it must not take, so that it is better not to be run again."""
        return self.fatal or self.spent > 0


@dataclass(frozen=True)
class Result:
    """What came of a batch.

    Attributes
    ----------
    actions
        Shape ``(groups, rounds, players)``; True for cooperation.
    errors
        By the strategy's number.
    own_seconds, seconds
        Time within the strategies' own code, if it was measured, and in all.
    """

    actions: NDArray[np.bool_]
    errors: Mapping[int, Errors]
    own_seconds: float
    seconds: float

    def payoffs(self, batch: Batch) -> NDArray[np.float64]:
        """Return all payoffs, ``(groups, rounds, players)``; computed here, where no strategy can forge them."""
        return batch.game.play(self.actions)


@dataclass
class _Worker:
    pid: int
    connection: socket.socket
    place: int
    doing: int | None = None
    beats: bytes = b""
    since: float = 0.0
    used: float = 0.0
    hung: bool = False


@dataclass
class _Job:
    batch: Batch
    careful: bool = False
    fatal: dict[int, Errors] = field(default_factory=dict)


class Workers:
    """Worker processes. To be used as a context manager, by one thread at a time (others wait).

    Parameters
    ----------
    processes
        How many; by default one for each processor that this process may use.
    seconds
        Processor time that a decision may take.
    memory
        Bytes that all strategies together may use in one worker.
    unsafe
        Leave out the confinement: strategies' code can then do whatever this user can do.

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
    ) -> None:
        self.processes = min(processes or len(os.sched_getaffinity(0)), MOST_WORKERS)
        self.loaded: list[Loaded] = []
        self._options = {"seconds": seconds, "memory": memory, "unsafe": unsafe}
        self._seconds = seconds
        self._workers: list[_Worker] = []
        self._lock = threading.RLock()
        self._server: tuple[subprocess.Popen[bytes], socket.socket, mmap.mmap] | None = None
        self._texts: list[tuple[str, str]] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def load(self, name: str, text: str) -> list[Loaded]:
        """Read a file of strategies; nothing of it is run.

        Parameters
        ----------
        name
            What the file is called in errors.

        Raises
        ------
        UsageError
            If it can't be read as Python.
        """
        with self._lock:
            self._end_workers()
            return self._load(name, text)

    def _load(self, name: str, text: str) -> list[Loaded]:
        _, connection, _ = self._started()
        try:
            send(connection, {"load": name}, text.encode("utf-8", "surrogatepass"))
            told, _ = receive(connection)
        except ClosedError as error:
            self._end_server()
            for before, its_text in list(self._texts):
                self._again(before, its_text)
            raise UsageError(f"{name} can't be read as Python: it ends the process that reads it") from error
        if "error" in told:
            raise UsageError(str(told["error"]))
        found = [
            Loaded(index=index, **{**one, "problems": tuple(one["problems"])})
            for index, one in enumerate(told["found"], start=told["first"])
        ]
        self._texts.append((name, text))
        self.loaded += found
        return found

    def _again(self, name: str, text: str) -> None:
        _, connection, _ = self._started()
        send(connection, {"load": name}, text.encode("utf-8", "surrogatepass"))
        receive(connection)

    def play(self, batches: Sequence[Batch], *, stop: Callable[[], bool] | None = None) -> list[Result]:
        """Play batches, side by side; the results depend on nothing but the batches.

        Parameters
        ----------
        stop
            Asked now and then whether to leave off.

        Raises
        ------
        UsageError
            If strategies can't be confined here.
        WorkersError
            If the workers fail through no fault of any strategy.
        InterruptedError
            If it was to leave off.
        """
        with self._lock:
            try:
                return self._play(batches, stop or (lambda: False))
            except BaseException:
                self._end_workers()
                raise

    def close(self) -> None:
        """End all processes; may be called more than once."""
        with self._lock:
            self._end_workers()
            self._end_server()

    def _play(self, batches: Sequence[Batch], stop: Callable[[], bool]) -> list[Result]:
        jobs = [_Job(batch) for batch in batches]
        waiting = deque(range(len(jobs)))
        results: dict[int, Result] = {}
        for _ in range(min(self.processes, len(jobs)) - len(self._workers)):
            self._workers.append(self._fork(len(self._workers)))
        with selectors.DefaultSelector() as selector:
            for worker in self._workers:
                selector.register(worker.connection, selectors.EVENT_READ, worker)
            for worker in self._workers:
                self._give(worker, waiting, jobs)
            while len(results) < len(jobs):
                for key, _ in selector.select(_POLL):
                    worker = key.data
                    assert worker.doing is not None
                    job = worker.doing
                    try:
                        worker.connection.settimeout(_SILENT_SECONDS)
                        results[job] = _result(jobs[job], *receive(worker.connection))
                        worker.doing = None
                    except (ClosedError, ValueError, KeyError, TypeError):
                        self._died(worker, jobs[job], selector)
                        waiting.appendleft(job)
                    self._give(worker, waiting, jobs)
                for worker in self._workers:
                    if worker.doing is not None and self._hangs(worker):
                        _kill(worker.pid)
                if stop():
                    raise InterruptedError("stopped")
        return [results[number] for number in range(len(jobs))]

    def _give(self, worker: _Worker, waiting: deque[int], jobs: Sequence[_Job]) -> None:
        if not waiting or worker.doing is not None:
            return
        number = waiting.popleft()
        worker.doing, worker.since, worker.used = number, time.monotonic(), _processor_seconds(worker.pid)
        # A worker that has died meanwhile is found out when it is read from.
        with contextlib.suppress(ClosedError):
            send(worker.connection, *_asked(jobs[number]))

    def _died(self, worker: _Worker, job: _Job, selector: selectors.BaseSelector) -> None:
        """Put a new worker in the place of one that died; find out who was to blame if that can be said."""
        note = bytes(self._marks(worker)[NOTE])
        blamed, group, t = (int.from_bytes(note[at : at + 8], "little", signed=True) for at in (0, 8, 16))
        hung = worker.hung or bytes(self._marks(worker)[BEATS]) == HUNG
        selector.unregister(worker.connection)
        worker.connection.close()
        _kill(worker.pid)
        fresh = self._fork(worker.place)
        worker.pid, worker.connection, worker.doing, worker.hung = fresh.pid, fresh.connection, None, False
        selector.register(worker.connection, selectors.EVENT_READ, worker)
        if not job.careful:
            job.careful = True
            return
        if blamed not in job.batch.groups or blamed in job.fatal:
            raise WorkersError("a worker process died, and no strategy's code was running")
        what = "took too long and could not be interrupted" if hung else "ended its process"
        job.fatal[blamed] = Errors(blamed, 1, 1, group, -1, t, what, fatal=True)
        job.batch = replace(job.batch, broken=job.batch.broken | {blamed})

    def _hangs(self, worker: _Worker) -> bool:
        """Whether a worker does not tick although it uses its processor, or does nothing at all for long."""
        beats = bytes(self._marks(worker)[BEATS])
        now, used = time.monotonic(), _processor_seconds(worker.pid)
        if beats != worker.beats:
            worker.beats, worker.since, worker.used = beats, now, used
            return False
        worker.hung = used - worker.used > self._seconds + 1 or now - worker.since > _SILENT_SECONDS
        return worker.hung

    def _marks(self, worker: _Worker) -> memoryview:
        assert self._server is not None
        place = worker.place * MARKS
        return memoryview(self._server[2])[place : place + MARKS]

    def _fork(self, place: int) -> _Worker:
        process, connection, _ = self._started()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                send(connection, {"place": place, **self._options})
                socket.send_fds(connection, [b"w"], [theirs.fileno()])
                told, _ = receive(connection)
            ours.settimeout(_START_SECONDS)
            ready, _ = receive(ours)
        except (ClosedError, OSError) as error:
            ours.close()
            raise WorkersError(f"a worker process could not be started ({process.args!r}): {error}") from error
        if not ready.get("ready"):
            ours.close()
            if ready.get("confined"):
                raise WorkersError(f"a worker process could not be started: {ready.get('error')}")
            raise UsageError(
                f"strategies' code can't be confined on this machine: {ready.get('error')}. Play them on a Linux that "
                "has seccomp, or let their code do whatever it wants on this machine with --sandbox unsafe-local."
            )
        worker = _Worker(int(told["pid"]), ours, place)
        self._marks(worker)[:] = bytes(MARKS)
        return worker

    def _started(self) -> tuple[subprocess.Popen[bytes], socket.socket, mmap.mmap]:
        if self._server is None:
            ours, theirs = socket.socketpair()
            descriptor = os.memfd_create("labmates")
            os.ftruncate(descriptor, MARKS * MOST_WORKERS)
            shared = mmap.mmap(descriptor, MARKS * MOST_WORKERS)
            command = [
                sys.executable,
                *FLAGS,
                "-m",
                "labmates.workflows.populations.engine.kernel.server",
                str(descriptor),
            ]
            with theirs:
                process = subprocess.Popen(  # noqa: S603
                    command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, pass_fds=[descriptor], env=_environment()
                )
            os.close(descriptor)
            self._server = process, ours, shared
        return self._server

    def _end_workers(self) -> None:
        for worker in self._workers:
            worker.connection.close()
            _kill(worker.pid)
        self._workers = []

    def _end_server(self) -> None:
        if self._server is not None:
            process, connection, shared = self._server
            self._server = None
            connection.close()
            process.kill()
            process.wait()
            shared.close()


def _asked(job: _Job) -> tuple[dict[str, Any], bytes]:
    batch = job.batch
    game = batch.game
    data = batch.groups.astype(np.int32).tobytes()
    if batch.opponents is not None:
        data += np.packbits(batch.opponents).tobytes()
    told = {"name": game.name, "n_players": game.n_players, "n_rounds": game.n_rounds, "parameters": game.parameters}
    asked = {
        "game": told,
        "groups": batch.groups.shape[0],
        "seats": batch.groups.shape[1],
        "scripted": batch.opponents is not None,
        "seed": batch.seed,
        "first": batch.first,
        "cooperate": sorted(batch.cooperate),
        "broken": sorted(batch.broken),
        "careful": job.careful,
        "measure": batch.measure,
    }
    return asked, data


def _result(job: _Job, told: Mapping[str, Any], data: bytes) -> Result:
    """Read a worker's answer, which may be anything.

    Raises
    ------
    ValueError, KeyError, TypeError
        If it is no answer.
    """
    batch = job.batch
    shape = (batch.groups.shape[0], batch.game.n_rounds, batch.game.n_players)
    size = shape[0] * shape[1] * shape[2]
    if len(data) != (size + 7) // 8:
        raise ValueError("the answer has another size")
    actions = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=size).astype(bool).reshape(shape)
    errors = {int(one["strategy"]): Errors(**one) for one in told["failures"]}
    for index, fatal in job.fatal.items():
        errors[index] = replace(fatal, count=errors[index].count, over=errors[index].over)
    return Result(actions, errors, float(told["own"]), float(told["seconds"]))


def _environment() -> dict[str, str]:
    """Return all that the processes find in their environment."""
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


def _processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()  # a name may be no text
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def chunks(batch: Batch, seats: int = 512) -> Iterator[Batch]:
    """Cut a batch into such of about `seats` players, whatever the number of processes."""
    step = max(1, seats // batch.groups.shape[1])
    for start in range(0, len(batch.groups), step):
        opponents = None if batch.opponents is None else batch.opponents[start : start + step]
        groups = batch.groups[start : start + step]
        yield replace(batch, groups=groups, opponents=opponents, first=batch.first + start)
