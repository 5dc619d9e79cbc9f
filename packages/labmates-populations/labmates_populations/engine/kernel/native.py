"""Players executed by the machine in the engine's process: their code contains no Python."""

from __future__ import annotations

import importlib
import os
import socket
import time
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates.util.seeds import derive
from labmates_populations.engine.kernel import forking
from labmates_populations.engine.kernel.instructions import (
    ATTRIBUTES,
    FLOAT,
    INSTRUCTION_LIMIT,
    INT,
    N_PARAMETERS,
    ROUTINES_LIMIT,
    UNSET,
)
from labmates_populations.engine.kernel.machine import layout
from labmates_populations.engine.kernel.source import Source
from labmates_populations.engine.kernel.wire import send
from labmates_populations.repeated import RepeatedGame

_GLOBALS = 64
_KEPT_WORDS = 8192
"""Heap of a player whose lists outlive a decision."""
_STREAM_WORDS = 625
_MEASURED_EACH = 10
_seed_of = lru_cache(1 << 15)(derive)


@cache
def load_machine() -> Callable[..., None] | None:
    """The machine's `decide`; None if it is not installed, or its compiled code can't be cached."""
    try:
        machine = importlib.import_module("labmates_populations.engine.kernel.machine.execution")
    except (ImportError, RuntimeError):
        return None
    decide: Callable[..., None] = machine.decide
    words, nobody = np.zeros(1, np.int64), np.zeros(0, np.int64)
    players = np.zeros((0, layout.PLAYER_COLUMNS), np.int64)
    decide(np.zeros((0, 4), np.int16), words, words, players, nobody, 0, np.empty(0), np.empty(0, np.uint8))
    return decide


def serve(connection: socket.socket, _settings: dict[str, Any], requests: int) -> None:
    """Fork engines with the machine loaded; `requests` is the descriptor of the requests."""
    load_machine()
    send(connection, {"ready": True})
    connection.close()
    os.dup2(requests, 0)
    os.close(requests)
    forking.serve()


class Programs:
    """The instructions of all strategies for the machine; `learn` adds strategies.

    Attributes
    ----------
    decide
        See `load_machine`.
    table
        The first columns of a player's row, by strategy; -1 without instructions.
    keeps, routines, draws, arguments
        By strategy: whether it keeps lists between decisions, whether it has routines, whether it draws random numbers,
        and the number of a decision's arguments.
    """

    def __init__(self, decide: Callable[..., None]) -> None:
        self.decide = decide
        self.code, self.initial = np.zeros((0, 4), np.int16), np.zeros(0, np.int64)
        self.table = np.zeros((0, layout.FRAME), np.int64)
        self.keeps, self.routines, self.draws = (np.zeros(0, bool) for _ in range(3))
        self.arguments = np.zeros(0, np.int64)

    def learn(self, sources: Sequence[Source]) -> None:
        """Add strategies, which follow those known before."""
        programs = [source.program for source in sources]
        known = [program for program in programs if program is not None]
        at, first = len(self.code), len(self.initial)
        self.code = np.concatenate([self.code, *(program.code for program in known)])
        self.initial = np.concatenate([self.initial, *(program.registers for program in known)])
        table = np.full((len(sources), layout.FRAME), -1, np.int64)
        for number, program in enumerate(programs):
            if program is not None:
                table[number] = at, at + program.deciding, first, len(program.registers), program.words
                at, first = at + len(program.code), first + len(program.registers)
        self.table = np.concatenate([self.table, table])
        keeps = [program is not None and program.keeps_lists for program in programs]
        self.keeps = np.concatenate([self.keeps, np.array(keeps, bool)])
        routines = [program is not None and program.has_routines for program in programs]
        self.routines = np.concatenate([self.routines, np.array(routines, bool)])
        self.draws = np.concatenate([self.draws, np.array([source.found.random for source in sources], bool)])
        arguments = np.array([source.found.arguments for source in sources], np.int64)
        self.arguments = np.concatenate([self.arguments, arguments])

    def forget(self, strategies: NDArray[np.int64]) -> None:
        """Leave the later players of strategies to Python."""
        self.table[strategies] = -1


class NativePlayers:
    """The players of a batch that the machine executes.

    Attributes
    ----------
    playing
        Mask of their places in the batch.
    payoffs, counts, actions
        The history of all places, ``(places, rounds)``, written by the engine; an action is 1 for cooperation, or the
        number of a named one, and counts are ``(places, rounds, actions)`` then.

    Parameters
    ----------
    strategies
        The index of each place's strategy.
    able
        Mask of places that the machine may play.
    numbers
        The number of each group.
    seats
        Players per group.
    """

    def __init__(
        self,
        programs: Programs,
        game: RepeatedGame,
        strategies: NDArray[np.int64],
        able: NDArray[np.bool_],
        seed: int,
        numbers: NDArray[np.int64],
        seats: int,
    ) -> None:
        self._programs = programs
        stocked = game.start(1) is not None
        self.playing = able & (programs.table[strategies, 0] >= 0) & (programs.arguments[strategies] <= 1 + stocked)
        places = np.flatnonzero(self.playing)
        mine = strategies[places]
        self._strategies = strategies
        players = np.zeros((len(strategies), layout.PLAYER_COLUMNS), np.int64)
        players[places, : layout.FRAME] = programs.table[mine]
        size, cells = _GLOBALS, len(strategies) * game.n_rounds
        by_action = () if game.is_binary else (len(game.labels),)
        words = np.array([1, 1, *(by_action or (1,))])  # of each array, for a round of a player
        seen = size + cells * (np.cumsum(words) - words)
        players[:, layout.SEEN :] = seen + np.arange(len(strategies))[:, None] * game.n_rounds * words
        size += cells * int(words.sum())
        scratch, size = size, size + layout.HEAP_WORDS
        players[places, layout.KEPT_NEXT] = scratch
        size = _reserve(players, places, layout.FRAME, programs.table[mine, layout.FRAME_WORDS], size)
        keeping = places[programs.keeps[mine]]
        size = _reserve(players, keeping, layout.KEPT_NEXT, np.full(len(keeping), _KEPT_WORDS), size)
        players[keeping, layout.KEPT_END] = players[keeping, layout.KEPT_NEXT] + _KEPT_WORDS
        known, which, seats_of = np.unique(mine, return_inverse=True, return_counts=True)
        players[places, layout.BUDGET] = size + which
        budgets, size = slice(size, size + len(known)), size + len(known)
        drawing = places[programs.draws[mine]]
        size = _reserve(players, drawing, layout.RANDOM_WORDS, np.full(len(drawing), _STREAM_WORDS), size)
        self._memory = np.zeros(size, np.int64)
        self._memory[layout.MOVES] = sum(by_action)
        plain = INSTRUCTION_LIMIT * game.n_rounds * seats_of
        self._memory[budgets] = np.where(programs.routines[known], ROUTINES_LIMIT, plain)
        self._reals = self._memory.view(np.float64)
        self._players = players
        shape = len(strategies), game.n_rounds
        ends = (seen + cells * words).tolist()
        actions, payoffs, counts = (slice(start, end) for start, end in zip(seen.tolist(), ends, strict=True))
        self.actions: NDArray[np.int64] = self._memory[actions].reshape(shape)
        self.payoffs: NDArray[np.float64] = self._reals[payoffs].reshape(shape)
        self.counts: NDArray[np.int64] = self._memory[counts].reshape(*shape, *by_action)
        streams = players[drawing, layout.RANDOM_WORDS]
        self._memory[streams] = [
            _seed_of(seed, int(numbers[place // seats]), place % seats) for place in drawing.tolist()
        ]
        self._memory[streams + _STREAM_WORDS - 1] = -1
        self._set_parameters(game)
        self._order = places[np.argsort(mine, kind="stable")]  # the code of one strategy stays in the cache

    def _set_parameters(self, game: RepeatedGame) -> None:
        values: dict[str, Any] = {"n_players": game.n_players, "n_rounds": game.n_rounds, **game.parameters}
        for place, name in enumerate(ATTRIBUTES[:N_PARAMETERS]):
            register = layout.PARAMETERS + 2 * place
            value = values.get(name)
            self._memory[register] = UNSET if value is None else FLOAT if isinstance(value, float) else INT
            if isinstance(value, float):
                self._reals[register + 1] = value
            else:
                self._memory[register + 1] = value or 0

    def decide(
        self,
        rounds: int,
        chosen: NDArray[Any],
        stocks: NDArray[np.float64] | None,
        seconds: dict[int, float] | None = None,
    ) -> None:
        """Let these players decide; players that the machine can't continue are left to Python from now on.

        Parameters
        ----------
        chosen
            Output for the decisions, at these players' places.
        seconds
            Output for the time of each strategy's players, extrapolated from one round in ten. It is wall-clock time:
            the processor's clock may have a resolution coarser than all decisions of a strategy.
        """
        asked = self._order
        answers = np.empty(len(asked), np.uint8)
        stock = np.empty(0) if stocks is None else np.ascontiguousarray(stocks)  # one layout: each is compiled
        if seconds is None or rounds % _MEASURED_EACH != _MEASURED_EACH // 2:
            self._execute(asked, rounds, stock, answers)
        else:
            mine = self._strategies[asked]
            starts = np.flatnonzero(np.diff(mine, prepend=-1)).tolist()
            for start, end in pairwise([*starts, len(asked)]):
                began = time.perf_counter()
                self._execute(asked[start:end], rounds, stock, answers[start:end])
                seconds[int(mine[start])] += _MEASURED_EACH * (time.perf_counter() - began)
        left = answers == layout.LEFT
        if left.any():
            self.playing[asked[left]] = False
            spent = self._memory[self._players[asked, layout.BUDGET]] <= 0
            self._programs.forget(self._strategies[asked[left & spent]])
            self._order, answers = asked[~left], answers[~left]
        chosen[self._order] = answers

    def _execute(
        self, asked: NDArray[np.int64], rounds: int, stocks: NDArray[np.float64], answers: NDArray[np.uint8]
    ) -> None:
        code, initial = self._programs.code, self._programs.initial
        self._programs.decide(code, initial, self._memory, self._players, asked, rounds, stocks, answers)


def _reserve(
    players: NDArray[np.int64], places: NDArray[np.int64], column: int, words: NDArray[np.int64], start: int
) -> int:
    """Assign memory words from `start` to players; return the next free word."""
    ends = start + np.cumsum(words)
    players[places, column] = ends - words
    return int(ends[-1]) if len(ends) else start
