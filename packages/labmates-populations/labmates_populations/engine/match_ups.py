"""A cache of games between deterministic strategies: a group of the same strategies makes the same moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates_populations.engine.kernel.engine import Batch, Errors, Result
from labmates_populations.repeated import RepeatedGame

_MOST_PLAYERS = 32
"""In larger groups repetitions of a game are rare."""
_MOST_BYTES = 128 << 20
_ENTRY_BYTES = 200
"""Overhead of an entry, in addition to its strategies and moves."""


class MatchUps:
    """The moves of past games without failures, by game and strategies."""

    def __init__(self) -> None:
        self._games: dict[RepeatedGame, dict[bytes, bytes]] = {}
        self._bytes = 0

    def play(
        self, batches: Sequence[Batch], same: NDArray[np.bool_], play: Callable[[Sequence[Batch]], list[Result]]
    ) -> list[Result]:
        """Play batches with `play`, except cached games.

        Parameters
        ----------
        same
            Whether each strategy is deterministic, by index.
        """
        parts = [_Part(batch, _repeated(batch, same), self._games.setdefault(batch.game, {})) for batch in batches]
        for once in (True, False):  # if a game fails, the other groups of the same strategies are played as well
            met = {id(part.known): set[bytes]() for part in parts}
            wanted = [part.missing(met[id(part.known)] if once else None) for part in parts]
            asked = [(part, groups) for part, groups in zip(parts, wanted, strict=True) if len(groups)]
            results = play([part.of(groups) for part, groups in asked]) if asked else []
            for (part, groups), result in zip(asked, results, strict=True):
                self._bytes += part.add(groups, result)
        if self._bytes > _MOST_BYTES:
            self._games, self._bytes = {}, 0
        return [part.result() for part in parts]


def _repeated(batch: Batch, same: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mask of the groups with a deterministic game."""
    game, others = batch.game, batch.anew or batch.opponents is not None or batch.given is not None
    if others or game.noise or game.sources or not game.is_binary or game.n_players > _MOST_PLAYERS:
        return np.zeros(len(batch.groups), bool)
    broken = np.isin(batch.groups, list(batch.broken))
    return np.asarray((same[batch.groups] & ~broken).all(axis=1))


def _bytes_of_rows(rows: NDArray[Any]) -> list[bytes]:
    data, size = rows.tobytes(), rows.shape[1] * rows.itemsize
    return [data[start : start + size] for start in range(0, len(data), size)]


class _Part:
    """A batch with some cached games."""

    def __init__(self, batch: Batch, repeated: NDArray[np.bool_], known: dict[bytes, bytes]) -> None:
        self.known = known
        self._batch = batch
        self._repeated = repeated
        groups, game = batch.groups, batch.game
        self._actions = np.empty((len(groups), game.n_rounds, game.n_players), bool)
        self._failed = np.zeros(len(groups), bool)
        self._left = np.ones(len(groups), bool)
        self._results: list[Result] = []
        # Players see only how many others cooperate, so seats are sorted; but a stock's sum depends on their order.
        seats = np.argsort(groups, axis=1, kind="stable") if game.start(1) is None else np.indices(groups.shape)[1]
        self._seats = seats[:, None, :]
        rows = np.take_along_axis(groups, seats, axis=1).astype(np.int32)
        self._keys = dict(zip(np.flatnonzero(repeated).tolist(), _bytes_of_rows(rows[repeated]), strict=True))

    def missing(self, met: set[bytes] | None) -> NDArray[np.int64]:
        """The groups to play; with `met`, only the first group of the same strategies."""
        self._recall([group for group, key in self._keys.items() if self._left[group] and key in self.known])
        wanted = self._left.copy()
        if met is not None:
            for group in np.flatnonzero(self._repeated & self._left).tolist():
                wanted[group] = self._keys[group] not in met
                met.add(self._keys[group])
        return np.flatnonzero(wanted)

    def _recall(self, groups: list[int]) -> None:
        if groups:
            packed = np.frombuffer(b"".join(self.known[self._keys[group]] for group in groups), np.uint8)
            shape = len(groups), *self._actions.shape[1:]
            moves = np.unpackbits(packed.reshape(len(groups), -1), axis=1, count=shape[1] * shape[2]).reshape(shape)
            actions = np.empty(shape, bool)
            np.put_along_axis(actions, self._seats[groups], moves.astype(bool), axis=2)
            self._actions[groups] = actions
            self._left[groups] = False

    def of(self, groups: NDArray[np.int64]) -> Batch:
        """The games of some groups."""
        if len(groups) == len(self._left):
            return self._batch
        return replace(self._batch, groups=self._batch.groups[groups], numbers=self._batch.group_numbers[groups])

    def add(self, groups: NDArray[np.int64], result: Result) -> int:
        """Add results of groups and cache them; return the size of the new entries in bytes."""
        self._results.append(result)
        self._left[groups] = False
        if not self._repeated.any():
            return 0
        self._actions[groups], self._failed[groups] = result.actions, result.failed
        new = groups[self._repeated[groups] & ~result.failed]
        moves = np.take_along_axis(self._actions[new], self._seats[new], axis=2)
        packed = np.packbits(moves.reshape(len(new), moves.shape[1] * moves.shape[2]), axis=1)
        self.known.update(zip(map(self._keys.__getitem__, new.tolist()), _bytes_of_rows(packed), strict=True))
        return len(new) * (_ENTRY_BYTES + int(packed.shape[1]) + 4 * self._batch.game.n_players)

    def result(self) -> Result:
        """The result of all games."""
        if len(self._results) == 1 and not self._repeated.any():
            return self._results[0]
        own = Counter[int]()
        for result in self._results:
            own.update(result.own)
        seconds = [sum(getattr(result, name) for result in self._results) for name in ("own_seconds", "seconds")]
        return Result(self._actions, self._failed, merged(self._results), own, *seconds)


def merged(results: Sequence[Result]) -> dict[int, Errors]:
    """The errors of strategies in several batches: the total number, and the first one."""
    found: dict[int, Errors] = {}
    for result in results:
        for index, error in result.errors.items():
            before = found.get(index)
            found[index] = error if before is None else before.joined(error)
    return found
