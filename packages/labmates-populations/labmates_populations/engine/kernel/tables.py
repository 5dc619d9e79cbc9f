"""Cached moves of deterministic players: equal strategies with equal observations make equal moves.

A player's observations are a path through a tree: what the others did in each round, as a number. Its own moves and
payoffs follow from the path. A node of the tree holds the player's move, once it is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_BYTES = 96 << 20
_FIRST = 4096
UNKNOWN = -1


class Table:
    """The moves of deterministic strategies in one game, in which a round has one of some `outcomes` for a player."""

    def __init__(self, outcomes: int) -> None:
        self.outcomes = outcomes
        self._most = _MOST_BYTES // (4 * outcomes)
        self._forget()

    def _forget(self) -> None:
        self._roots: dict[int, int] = {}
        self._used = 1  # node 0 is unused
        self._next = np.zeros((_FIRST, self.outcomes), np.int32)
        self._moves = np.full(_FIRST, UNKNOWN, np.int8)

    def start(self, numbers: NDArray[np.int64], kept: NDArray[np.bool_], rounds: int) -> NDArray[np.int64]:
        """The players' initial nodes; 0 for players that are not `kept`, or for all if the table is too small.

        `numbers` are the players' strategies; each player may need a node for each of the `rounds`.
        """
        if not kept.any() or np.count_nonzero(kept) * rounds > self._most // 2:
            return np.zeros(len(numbers), np.int64)
        if self._used + np.count_nonzero(kept) * rounds > self._most:
            self._forget()
        for number in np.unique(numbers[kept]).tolist():
            if number not in self._roots:
                self._roots[number] = int(self._new(1)[0])
        return np.array(
            [self._roots.get(number, 0) if keep else 0 for number, keep in zip(numbers.tolist(), kept, strict=True)]
        )

    def moves(self, nodes: NDArray[np.int64]) -> NDArray[np.int8]:
        """The moves in these nodes: 0, 1, or `UNKNOWN`."""
        return self._moves[nodes]

    def keep(self, nodes: NDArray[np.int64], moves: NDArray[Any]) -> None:
        """Store moves."""
        self._moves[nodes] = moves
        self._moves[0] = UNKNOWN

    def after(self, nodes: NDArray[np.int64], seen: NDArray[np.int64]) -> NDArray[np.int64]:
        """The nodes after a round with these outcomes; 0 stays 0."""
        if not nodes.any():
            return nodes
        keys = nodes * self.outcomes + seen
        following = self._next.reshape(-1)[keys]
        missing = np.flatnonzero((following == 0) & (nodes > 0))
        if len(missing):
            new, which = np.unique(keys[missing], return_inverse=True)
            made = self._new(len(new))
            self._next.reshape(-1)[new] = made
            following[missing] = made[which]
        nodes_after: NDArray[np.int64] = following.astype(np.int64)
        return nodes_after

    def _new(self, count: int) -> NDArray[np.int64]:
        while self._used + count > len(self._moves):
            self._next = np.concatenate([self._next, np.zeros_like(self._next)])
            self._moves = np.concatenate([self._moves, np.full_like(self._moves, UNKNOWN)])
        self._used += count
        return np.arange(self._used - count, self._used)
