"""A worker: confined before it runs any strategy's code, it plays batches of games until it is told no more."""

from __future__ import annotations

import gc
import os
import resource
import socket
from collections.abc import Sequence
from typing import Any

import numpy as np

from labmates.games.repeated import REPEATED, RepeatedGame
from labmates.workflows.populations.engine.kernel.confine import confine
from labmates.workflows.populations.engine.kernel.engine import MAKE_CODE, ROUND_CODE, Failure, Memory, Played, play
from labmates.workflows.populations.engine.kernel.limits import Watch
from labmates.workflows.populations.engine.kernel.source import Code
from labmates.workflows.populations.engine.kernel.strategies import Strategy
from labmates.workflows.populations.engine.kernel.wire import ClosedError, receive, send

BEATS, NOTE = slice(0, 8), slice(8, 32)
"""Where in the shared memory ticks are counted, and where the strategy, the group and the round stand."""
MARKS = 32
OUT_OF_MEMORY = 78
"""Exit code of a worker that has not enough memory left to go on."""
_COLLECT_EACH = 8


def work(
    connection: socket.socket,
    codes: Sequence[Code | None],
    marks: memoryview,
    *,
    seconds: float,
    memory: int,
    unsafe: bool,
) -> None:
    """Play what is asked for over a connection.

    Parameters
    ----------
    codes
        The strategies, by number; None for one that can't be run.
    marks
        Shared memory, `MARKS` bytes, in which this worker shows that it lives and what it does.
    seconds
        Processor time that a decision may take.
    memory
        Bytes that all strategies together may use here.
    unsafe
        Leave out the confinement.

    Raises
    ------
    UnconfinedError
        If the worker can't be confined.
    """
    strategies: list[Strategy | None] = [None if code is None else Strategy(code) for code in codes]
    held = Memory()
    _warm_up()
    gc.collect()
    gc.freeze()
    gc.disable()
    Watch(seconds, marks).start({ROUND_CODE, MAKE_CODE})
    if not unsafe:
        confine(memory)
    send(connection, {"ready": True})
    batches = 0
    while True:
        try:
            asked, data = receive(connection)
        except ClosedError:
            os._exit(0)
        try:
            played = _play(asked, data, strategies, held, marks)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        failures = _sum_up(played.failures, played.actions.shape[1])
        told = {"failures": failures, "own": played.own_seconds, "seconds": played.seconds}
        send(connection, told, np.packbits(played.actions).tobytes())
        batches += 1
        if batches % _COLLECT_EACH == 0:
            gc.collect()


class _Note:
    """Keeps account, in the shared memory, of whose code runs."""

    def __init__(self, marks: memoryview) -> None:
        self._marks = marks
        self._now = (-1, -1, -1)
        self._used = _used()
        self._grown: dict[int, int] = {}

    def __call__(self, strategy: int, group: int, t: int) -> None:
        used = _used()
        self._grown[self._now[0]] = self._grown.get(self._now[0], 0) + used - self._used
        self._used = used
        self._now = (strategy, group, t)
        self._marks[NOTE] = b"".join(one.to_bytes(8, "little", signed=True) for one in self._now)

    def out_of_memory(self, strategy: int) -> None:
        self(*self._now)
        most = max(self._grown, key=lambda one: self._grown[one])
        if most not in (strategy, -1) and self._grown[most] > _HOARD:
            self(most, *self._now[1:])
            os._exit(OUT_OF_MEMORY)


_HOARD = 64 << 20
"""A strategy that has made the process grow by so many bytes may be why another one finds no memory."""


def _used() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _play(
    asked: dict[str, Any], data: bytes, strategies: list[Strategy | None], held: Memory, marks: memoryview
) -> Played:
    game = make_game(asked["game"])
    groups = np.frombuffer(data[: asked["groups"] * asked["seats"] * 4], dtype=np.int32).astype(np.int64)
    opponents = None
    if asked["scripted"]:
        shape = (asked["groups"], game.n_rounds, game.n_players - 1)
        bits = np.frombuffer(data[asked["groups"] * asked["seats"] * 4 :], dtype=np.uint8)
        opponents = np.unpackbits(bits, count=shape[0] * shape[1] * shape[2]).astype(bool).reshape(shape)
    broken = set(asked["broken"])
    usable = [None if number in broken else one for number, one in enumerate(strategies)] if broken else strategies
    cooperate = set(asked["cooperate"])
    cooperates = [number in cooperate for number in range(len(strategies))]

    return play(
        game,
        groups.reshape(asked["groups"], asked["seats"]),
        usable,
        cooperates,
        held,
        seed=asked["seed"],
        first=asked["first"],
        opponents=opponents,
        note=_Note(marks) if asked["careful"] else None,
        measure=asked["measure"],
    )


def make_game(told: dict[str, Any]) -> RepeatedGame:
    """Return the game that a message describes."""
    return REPEATED[told["name"]](told["n_players"], told["n_rounds"], **told["parameters"])


def _sum_up(failures: Sequence[Failure], rounds: int) -> list[dict[str, Any]]:
    """Return what each strategy did wrong: how many decisions that cost, and what came first."""
    found: dict[int, dict[str, Any]] = {}
    for one in failures:
        sums = found.setdefault(
            one.strategy,
            {
                "strategy": one.strategy,
                "count": 0,
                "over": 0,
                "spent": 0,
                "group": one.group,
                "seat": one.seat,
                "round": one.round,
                "what": one.what,
                "seats": {},
            },
        )
        cost = rounds - max(one.round, 0) if one.over else 1
        sums["count"] += cost
        sums["over"] += one.over
        sums["spent"] += one.spent
        where = sums["seats"].setdefault(f"{one.group} {one.seat}", {"round": one.round, "what": one.what, "count": 0})
        where["count"] += cost
    for sums in found.values():
        if len(sums["seats"]) > _MOST_SEATS:
            sums["seats"] = {}
    return list(found.values())


_MOST_SEATS = 64


def _warm_up() -> None:
    """Let numpy load what it loads when it is first used: afterwards no file can be opened."""
    values = np.arange(6.0).reshape(2, 3)
    str(values), values.mean(), values.std(), np.median(values), np.percentile(values, 50), values @ values.T
    np.linalg.inv(np.eye(2)), np.linalg.svd(values), np.unique(values), np.random.default_rng(0).random()
    np.random.RandomState(0).rand(), np.polyfit([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], 1), np.corrcoef(values)
    np.isclose(values, values), np.array_equal(values, values), np.histogram(values), np.quantile(values, 0.5)
