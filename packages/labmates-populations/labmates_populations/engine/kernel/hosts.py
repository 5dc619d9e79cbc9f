"""Processes of players, from the engine's side: messages, answers and termination.

Players of compiled strategies share a process, because their code has no access to anything in it. Each other player
has a separate process for a single game.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
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

    def packed(self, slots: NDArray[Any], places: NDArray[Any], told: NDArray[Any], t: int) -> tuple[int, bytes]:
        """The rows before round `t` that some players have not received, and the stock of that round.

        Parameters
        ----------
        slots
            The players' indices in their process.
        told
            The number of rounds sent to each player.
        """
        missing = t - told
        which = np.repeat(np.arange(len(places)), missing)
        rounds = np.arange(len(which)) - np.repeat(np.cumsum(missing) - missing, missing) + np.repeat(told, missing)
        rows = places[which], rounds
        parts = [slots[which].astype(np.int32), rounds.astype(np.int32)]
        parts += [self.actions[rows], self.payoffs[rows], self.counts[rows]]
        if self.their_actions is not None and self.their_payoffs is not None:
            parts += [self.their_actions[rows], self.their_payoffs[rows]]
        if self.stocks is not None:
            which = np.concatenate([which, np.arange(len(places))])
            rounds = np.concatenate([rounds, np.full(len(places), t)])
            parts += [np.array([len(which)], np.int32), slots[which].astype(np.int32), rounds.astype(np.int32)]
            parts += [self.stocks[places[which], rounds]]
        return len(rows[1]), b"".join(part.tobytes() for part in parts)


@dataclass(frozen=True)
class Answers:
    """The answers of a process of players.

    Attributes
    ----------
    moves
        One for each asked player; see `players`.
    seconds
        Processor time.
    """

    moves: NDArray[np.uint8]
    failures: list[dict[str, Any]]
    seconds: float


@dataclass
class Host:
    """A process of players.

    Parameters
    ----------
    requests
        Socket to the process that forks.
    settings
        See `players.serve`.
    alone
        Whether it has a single player, whose total time limit is twice that of a decision.
    """

    requests: socket.socket
    settings: Mapping[str, Any]
    alone: bool = False
    pid: int = 0
    _known: set[int] = field(default_factory=set)
    _told: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _offset: int = 0
    _asked: int = 0
    _moves: int = 0
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

    def begin(self, game: Mapping[str, Any], numbers: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        """Start a batch, whose groups have these numbers, with the players at these places."""
        first = int(places[0]) if len(places) == 1 else 0
        size = 1 if len(places) == 1 else int(places.max()) + 1
        self._offset, self._told, self._moves = first, np.zeros(size, np.int64), game["moves"]
        with contextlib.suppress(ClosedError):  # `answers` raises the error
            send(self._connection, {**game, "places": size, "offset": first}, numbers.astype(np.int64).tobytes())

    def ask(
        self, t: int, places: NDArray[np.int64], numbers: NDArray[np.int64], history: History, sources: list[Source]
    ) -> None:
        """Request decisions; `answers` waits for them."""
        new = sorted(set(numbers.tolist()) - self._known)
        self._known.update(new)
        slots = places - self._offset
        rows, packed = history.packed(slots, places, self._told[slots], t)
        self._told[slots] = t
        self._asked = len(places)
        head = {"t": t, "asked": len(places), "rows": rows, "learn": [sources[one].told(one) for one in new]}
        codes = b"".join(sources[one].code for one in new)
        self._began = processor_seconds(self.pid)[0]
        self._beats, self._asleep = (self._marks[BEATS], self._began), 0
        data = slots.astype(np.int32).tobytes() + numbers.astype(np.int32).tobytes() + packed + codes
        with contextlib.suppress(ClosedError):
            send(self._connection, head, data)

    def answers(self) -> Answers:
        """The requested decisions and errors; HostError if the process has died or hangs."""
        message = bytearray()
        try:
            while not complete(message, _MOST_BYTES):
                if message:
                    self._check()
                message += self._received()
            told, data = parsed(message)
            answers = np.frombuffer(data, np.uint8)
            failures = [_checked(one, self._asked) for one in told["failures"]]
            if len(answers) != self._asked or not ((answers < self._moves) | (answers == FAILED)).all():
                raise ValueError("the answer is no answer")
            return Answers(answers, failures, min(max(0.0, float(told["seconds"])), 1e6))
        except (ClosedError, OSError, ValueError, KeyError, TypeError) as error:
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
        most = self.settings["seconds"] + _LATE_SECONDS
        total = 2 * self.settings["seconds"] + _LATE_SECONDS  # its code could fake the ticks
        hangs = now - self._beats[1] > most or (self.alone and now > total)
        if hangs or self._asleep * _POLL_SECONDS > _ASLEEP_SECONDS:
            raise HostError(self._blamed(), _HANGS)

    def used(self) -> float:
        """Processor time of the process since the last request."""
        return max(0.0, processor_seconds(self.pid)[0] - self._began)

    def _blamed(self) -> int:
        place = self._marks[PLACE]
        return int(place) + self._offset if 0 <= place < len(self._told) else -1

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


def _checked(told: Any, asked: int) -> dict[str, Any]:
    """A failure reported by an untrusted process; ValueError, KeyError or TypeError if it is malformed."""
    index = int(told["index"])
    if not 0 <= index < asked:
        raise ValueError("a failure of nobody")
    flags = {name: bool(told[name]) for name in ("over", "spent", "memory")}
    return {"index": index, "round": int(told["round"]), "what": str(told["what"])[:200], **flags}


def processor_seconds(pid: int) -> tuple[float, bool]:
    """Processor time of a process, and whether it sleeps."""
    try:
        with open(f"/proc/{pid}/stat", "rb", 0) as file:  # noqa: PTH123 - read for each request: pathlib takes longer
            fields = file.read().rpartition(b")")[2].split()  # the name may not be UTF-8
    except OSError:
        return 0.0, False
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND, fields[0] == b"S"
