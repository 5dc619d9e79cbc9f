"""Workers on a Ray cluster: each player of batches uses one processor on any node.

Batches and results are pure values. If a node is lost, another player repeats its batch. So results depend neither on
the number of nodes nor on losses.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from labmates.errors import LabmatesError
from labmates_populations.engine.kernel.source import Source
from labmates_populations.engine.workers import Batch, Result, Workers, WorkersError

_POLL_SECONDS = 0.25
_PLACE_SECONDS = 120.0
"""Timeout for the start of the first player."""
_MOST_LOSSES = 10
"""Maximum repetitions of a batch after losses of its player."""


class BatchPlayer:
    """A Ray actor that plays batches with its own workers.

    Parameters
    ----------
    unsafe
        See `Workers`.
    """

    def __init__(self, *, unsafe: bool) -> None:
        self._workers = Workers(processes=1, unsafe=unsafe)

    def is_ready(self) -> None:
        """Return once the actor runs."""

    def play(self, batch: Batch, *new: list[Source]) -> Result | LabmatesError:
        """The result of a batch, or its error; `new` are strategies that this player has not received yet."""
        for sources in new:
            self._workers.learn(sources)
        try:
            return self._workers.play([batch])[0]
        except LabmatesError as error:
            return error


@dataclass
class _Player:
    """An actor, and the number of strategies that it has received."""

    actor: Any
    known: int = 0


class RayWorkers(Workers):
    """Workers that play on a Ray cluster; files are read on this machine.

    Players are added while there are free processors, including nodes that join later.

    Parameters
    ----------
    ray
        The connected module.
    processes
        Maximum number of players; by default one for each processor of the cluster.
    unsafe
        Play without confinement.
    """

    def __init__(self, ray: ModuleType, *, processes: int | None = None, unsafe: bool = False) -> None:
        super().__init__(processes=processes, unsafe=unsafe)
        self._ray = ray
        self._most = processes
        self._actor = ray.remote(BatchPlayer).options(num_cpus=1)
        self._idle: list[_Player] = []
        self._busy: dict[Any, tuple[_Player, int | None]] = {}
        """By pending reference: players and the indices of their batches; None while a player starts."""
        self._stored: dict[tuple[int, int], Any] = {}

    def _play(self, batches: Sequence[Batch], stop: Callable[[], bool]) -> list[Result]:
        waiting, losses = deque(range(len(batches))), Counter[int | None]()
        results: dict[int, Result] = {}
        placed = time.monotonic()
        self._add_players(len(batches))
        while len(results) < len(batches):
            while waiting and self._idle:
                player, next_number = self._idle.pop(), waiting.popleft()
                self._busy[self._asked(player, batches[next_number])] = player, next_number
            for ended in self._ended():
                player, number = self._busy.pop(ended)
                answer = self._answer(ended, player)
                if isinstance(answer, Exception):
                    losses[number] += 1
                    if losses[number] > _MOST_LOSSES:
                        raise WorkersError(f"players on the Ray cluster end again and again: {answer}") from answer
                    waiting.extend([] if number is None else [number])
                    self._add_players(len(batches))
                    continue
                self._idle.append(player)
                if number is not None:
                    results[number] = answer
            if self._idle or any(number is not None for _, number in self._busy.values()):
                placed = time.monotonic()
            elif time.monotonic() - placed > _PLACE_SECONDS:
                raise WorkersError(f"no processor of the Ray cluster was free for {_PLACE_SECONDS:.0f} s")
            if stop():
                raise InterruptedError("stopped")
        return [results[number] for number in range(len(batches))]

    def _add_players(self, batches: int) -> None:
        """Start as many players as there are batches and processors."""
        processors = int(self._ray.cluster_resources().get("CPU", 0))
        for _ in range(min(batches, self._most or processors, processors) - len(self._idle) - len(self._busy)):
            player = _Player(self._actor.remote(unsafe=self._settings["unsafe"]))
            self._busy[player.actor.is_ready.remote()] = player, None

    def _asked(self, player: _Player, batch: Batch) -> Any:
        """Send a player a batch and any strategies that it has not received yet."""
        known, player.known = player.known, len(self._sources)
        if known == player.known:
            return player.actor.play.remote(batch)
        if (known, player.known) not in self._stored:
            self._stored[known, player.known] = self._ray.put(self._sources[known:])
        return player.actor.play.remote(batch, self._stored[known, player.known])

    def _ended(self) -> list[Any]:
        if not self._busy:
            time.sleep(_POLL_SECONDS)
            return []
        ended: list[Any] = self._ray.wait(list(self._busy), num_returns=1, timeout=_POLL_SECONDS)[0]
        return ended

    def _answer(self, ended: Any, player: _Player) -> Any:
        """A player's result, or an exception if the player was lost; LabmatesError if the batch can't be played."""
        try:
            answer = self._ray.get(ended)
        except self._ray.exceptions.RayTaskError as error:
            raise WorkersError(f"a player on the Ray cluster failed: {error}") from error
        except self._ray.exceptions.RayError as error:
            self._ray.kill(player.actor)  # it may be alive but unreachable
            return error
        if isinstance(answer, LabmatesError):
            raise answer
        return answer

    def close(self) -> None:
        """End all players and processes; loaded strategies can be played again."""
        with self._lock:
            super().close()
            for player in [*self._idle, *(player for player, _ in self._busy.values())]:
                with contextlib.suppress(self._ray.exceptions.RayError):
                    self._ray.kill(player.actor)
            self._idle, self._busy = [], {}
            self._stored = {}
