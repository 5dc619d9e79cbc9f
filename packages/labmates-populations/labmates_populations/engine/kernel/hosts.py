"""Processes of players, from the engine's side: messages, answers and termination.

All players of compiled strategies share a process, because their code has no access to anything in it; so do those of
any other strategy, whose code has no access to anything that they share.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import pickle
import select
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates_populations.engine.kernel.forking import fork
from labmates_populations.engine.kernel.limits import BEATS, HUNG, MARKS, PLACE
from labmates_populations.engine.kernel.players import FAILED
from labmates_populations.engine.kernel.source import Source
from labmates_populations.engine.kernel.wire import ClosedError, complete, parsed, send

_POLL_SECONDS = 0.25
_ASLEEP_SECONDS = 5.0
_LATE_SECONDS = 1.0
"""Processor time beyond its limit after which a process is killed."""
_SEND_SECONDS = 60.0
_MOST_BYTES = 4 << 20
"""Maximum size of an answer."""
_MOST_TOLD = 200
_MOST_SECONDS = 1e6
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class HostError(Exception):
    """A process of players has died or was ended; `place` is the deciding player (-1: none), `what` the reason."""

    def __init__(self, place: int, what: str) -> None:
        super().__init__(what)
        self.place = place
        self.what = what


@dataclass
class History:
    """The moves of a batch so far: arrays with a row for each player, ``(places, rounds)``.

    Attributes
    ----------
    actions, counts
        Cooperation and the number of other cooperators; in games of named actions their indices and, with one more
        axis, the number of others with each action.
    stocks
        The stock before each round; None in games without one.
    their_actions, their_payoffs
        Of each player's opponents, ``(places, rounds, players - 1)``; None if no strategy observes them.
    """

    actions: NDArray[Any]
    payoffs: NDArray[np.float64]
    counts: NDArray[np.int64]
    stocks: NDArray[np.float64] | None
    their_actions: NDArray[np.bool_] | None
    their_payoffs: NDArray[np.float64] | None

    def rows(self, places: NDArray[Any], told: NDArray[Any], t: int) -> tuple[Any, list[NDArray[Any]], Any]:
        """The rows after `told` rounds and before round `t` of some players, and their stocks up to that round.

        First the places and rounds of the rows, then their observations, then the same for stocks, or None.
        """
        missing = t - told
        which = np.repeat(np.arange(len(places)), missing)
        rounds = np.arange(len(which)) - np.repeat(np.cumsum(missing) - missing, missing) + np.repeat(told, missing)
        at = places[which], rounds
        every = (self.actions, self.payoffs, self.counts, self.their_actions, self.their_payoffs)
        seen = [each[at] for each in every if each is not None]
        if self.stocks is None:
            return at, seen, None
        until = np.concatenate([at[0], places]), np.concatenate([rounds, np.full(len(places), t)])
        return at, seen, (until, self.stocks[until])


@dataclass(frozen=True)
class Failure:
    """The failure of a player to decide.

    Attributes
    ----------
    index
        The player's place among those asked.
    round
        The round; -1 if the player could not be made.
    over, spent, memory
        Whether the player is not asked again, exceeded a limit, and the limit of memory.
    """

    index: int
    round: int
    what: str
    over: bool
    spent: bool
    memory: bool


@dataclass(frozen=True)
class Answers:
    """The answers of a process of players.

    Attributes
    ----------
    moves
        One for each asked player; see `players`.
    failures
        One for each player that failed, in their order.
    seconds
        Processor time.
    """

    moves: NDArray[np.uint8]
    failures: list[Failure]
    seconds: float


def read_answers(message: bytes | bytearray, asked: int, actions: int, t: int) -> Answers:
    """The answers of `asked` players in round `t` in an untrusted message; an exception if they are malformed."""
    told, data = parsed(message)
    moves, seconds = np.frombuffer(data, np.uint8), told["seconds"]
    failures = [_failure(one, t) for one in told["failures"]]
    if [one.index for one in failures] != np.flatnonzero(moves == FAILED).tolist():
        raise ValueError("not one failure for each player that failed")
    if len(moves) != asked or not ((moves < actions) | (moves == FAILED)).all():
        raise ValueError("not one answer for each player")
    if type(seconds) is not float or not 0 <= seconds <= _MOST_SECONDS:
        raise ValueError("not a time")
    return Answers(moves, failures, seconds)


def _failure(told: Any, t: int) -> Failure:
    failure = Failure(**told)
    numbers, flags = (failure.index, failure.round), (failure.over, failure.spent, failure.memory)
    if {*map(type, numbers)} != {int} or {*map(type, flags)} != {bool} or type(failure.what) is not str:
        raise ValueError("a failure of wrong types")
    # A player that could not be made, or is not run any more, fails in an earlier round than the present one.
    if not -1 <= failure.round <= t:
        raise ValueError("a failure in no round")
    return replace(failure, what=failure.what[:_MOST_TOLD].encode(errors="replace").decode())


@dataclass
class Host:
    """A process of players.

    Parameters
    ----------
    requests
        Socket to the process that forks.
    settings
        See `players.serve`.
    most
        Limit of the processor time for one request, in decisions' limits: its code could fake the ticks of the timer.
    """

    requests: socket.socket
    settings: Mapping[str, Any]
    most: float = math.inf
    pid: int = 0
    _known: set[int] = field(default_factory=set)
    _told: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _asked: int = 0
    _actions: int = 0
    _round: int = 0
    _began: float = 0.0
    _beats: tuple[int, float] = (0, 0.0)
    _asleep: int = 0

    def __post_init__(self) -> None:
        descriptor = os.memfd_create("labmates")
        try:
            os.ftruncate(descriptor, MARKS * 8)
            self._shared = mmap.mmap(descriptor, MARKS * 8)
            self._marks = memoryview(self._shared).cast("q")
            self._marks[PLACE] = -1
            self._connection, ready = fork(self.requests, "players", dict(self.settings), (descriptor,))
        finally:
            os.close(descriptor)
        if not ready.get("ready"):
            raise UnreadyError(str(ready.get("error")), confined=bool(ready.get("confined", True)))
        self._connection.settimeout(_SEND_SECONDS)
        self.pid = int(ready["pid"])
        self._handle = os.pidfd_open(self.pid)

    def begin(self, game: Mapping[str, Any], numbers: NDArray[np.int64], places: int) -> None:
        """Start a batch of so many players, whose groups have these numbers."""
        self._told, self._actions = np.zeros(places, np.int64), game["moves"]
        with contextlib.suppress(ClosedError):  # `answers` raises the error
            send(self._connection, {**game, "places": places}, numbers.astype(np.int64).tobytes())

    def ask(
        self, t: int, places: NDArray[np.int64], numbers: NDArray[np.int64], history: History, sources: list[Source]
    ) -> None:
        """Request decisions; `answers` waits for them."""
        new = sorted(set(numbers.tolist()) - self._known)
        self._known.update(new)
        rows = history.rows(places, self._told[places], t)
        self._told[places] = t
        self._asked, self._round = len(places), t
        self._began = processor_seconds(self.pid)[0]
        self._beats, self._asleep = (self._marks[BEATS], self._began), 0
        request = t, places.tolist(), numbers.tolist(), rows, [(one, sources[one].code) for one in new]
        with contextlib.suppress(ClosedError):
            send(self._connection, {}, pickle.dumps(request))

    def answers(self) -> Answers:
        """The requested decisions and errors; HostError if the process has died or hangs."""
        message = bytearray()
        try:
            while not complete(message, _MOST_BYTES):
                if message:
                    self._check()
                message += self._received()
            return read_answers(message, self._asked, self._actions, self._round)
        except HostError:
            raise
        except Exception as error:  # whatever is wrong with a message is the fault of those that can send it
            hung = self._marks[BEATS] == HUNG
            raise HostError(self._blamed(), _HANGS if hung else "ended its process") from error

    def _received(self) -> bytes:
        while not select.select([self._connection], [], [], _POLL_SECONDS)[0]:
            self._check()
        received = self._connection.recv(1 << 16)
        if not received:
            raise ClosedError("the other side has gone")
        return received

    def _check(self) -> None:
        """Raise HostError unless the process computes (without sleeping), ticks, and is within its limits."""
        now, sleeps = processor_seconds(self.pid)
        self._asleep += sleeps
        if self._marks[BEATS] != self._beats[0]:
            self._beats = self._marks[BEATS], now
        seconds = self.settings["seconds"]
        hangs = now - self._beats[1] > seconds + _LATE_SECONDS
        hangs |= now - self._began > self.most * seconds + _LATE_SECONDS
        if hangs or self._asleep * _POLL_SECONDS > _ASLEEP_SECONDS:
            raise HostError(self._blamed(), _HANGS)

    def _blamed(self) -> int:
        place = self._marks[PLACE]
        return int(place) if 0 <= place < len(self._told) else -1

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        os.close(self._handle)
        self._marks.release()
        self._shared.close()


_HANGS = "took too long and could not be interrupted"


class UnreadyError(Exception):
    """A process of players could not be started."""

    def __init__(self, what: str, *, confined: bool) -> None:
        super().__init__(what)
        self.confined = confined


def processor_seconds(pid: int) -> tuple[float, bool]:
    """Processor time of a process, and whether it sleeps."""
    try:
        with open(f"/proc/{pid}/stat", "rb", 0) as file:  # noqa: PTH123 - read for each request: pathlib takes longer
            fields = file.read().rpartition(b")")[2].split()  # the name may not be UTF-8
    except OSError:
        return 0.0, False
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND, fields[0] == b"S"
