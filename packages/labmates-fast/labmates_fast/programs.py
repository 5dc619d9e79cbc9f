"""Programs of strategies, and the players of a batch that execute them in the engine's process, without Python."""

from __future__ import annotations

import ast
import importlib
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates.util.seeds import derive
from labmates_fast.instructions import (
    ATTRIBUTES,
    FLOAT,
    INSTRUCTION_LIMIT,
    INT,
    N_PARAMETERS,
    ROUTINES_LIMIT,
    UNSET,
)
from labmates_fast.lowering.program import Program, UnloweredError, packed, unpacked
from labmates_fast.lowering.statements import lower
from labmates_fast.machine import layout
from labmates_fast.verification import are_valid
from labmates_populations.machine import Terms

_GLOBALS = 64
_KEPT_WORDS = 8192
"""Heap of a player whose lists outlive a decision."""
_STREAM_WORDS = 625
_seed_of = lru_cache(1 << 15)(derive)


class Fast:
    """The machine, as populations finds it; see `labmates_populations.machine.Machine`."""

    def program(self, node: ast.ClassDef, variables: Mapping[ast.FunctionDef, Sequence[str]]) -> bytes:
        """The program of a strategy's rewritten class; empty if a construct has no instruction."""
        try:
            return packed(lower(node, variables))
        except UnloweredError:
            return b""

    def load(self) -> Programs | None:
        """No programs yet; None if compiled code can't be kept, since to compile it takes a minute."""
        decide = load_decide()
        return None if decide is None else Programs(decide)


FAST = Fast()


@cache
def load_decide() -> Callable[..., None] | None:
    """The function `machine.execution.decide`, compiled; None if compiled code can't be kept."""
    try:
        machine = importlib.import_module("labmates_fast.machine.execution")
    except RuntimeError:
        return None
    decide: Callable[..., None] = machine.decide
    words, nobody = np.zeros(1, np.int64), np.zeros(0, np.int64)
    players = np.zeros((0, layout.PLAYER_COLUMNS), np.int64)
    decide(np.zeros((0, 4), np.int16), words, words, players, nobody, 0, np.empty(0), np.empty(0, np.uint8))
    return decide


class Programs:
    """The instructions of all strategies for the machine; `learn` adds strategies.

    Attributes
    ----------
    decide
        See `load_decide`.
    table
        The first columns of a player's row, by strategy; -1 without instructions.
    facts
        By strategy: whether it keeps lists between decisions, has routines, draws random numbers, and the number of a
        decision's arguments.
    """

    def __init__(self, decide: Callable[..., None]) -> None:
        self.decide = decide
        self.code, self.initial = np.zeros((0, 4), np.int16), np.zeros(0, np.int64)
        self.table, self.facts = np.zeros((0, layout.FRAME), np.int64), np.zeros((0, 4), np.int64)

    def learn(self, programs: Sequence[bytes]) -> None:
        """Add the programs of strategies; if one is unsafe to execute, all of these are left to Python."""
        learned = _safe(programs)
        at, first = len(self.code), len(self.initial)
        self.code = np.concatenate([self.code, *(program.code for program in learned.values())])
        self.initial = np.concatenate([self.initial, *(program.registers for program in learned.values())])
        table, facts = np.full((len(programs), layout.FRAME), -1, np.int64), np.zeros((len(programs), 4), np.int64)
        for number, program in learned.items():
            table[number] = at, at + program.deciding, first, len(program.registers), program.words
            facts[number] = program.keeps_lists, program.has_routines, program.draws, program.arguments
            at, first = at + len(program.code), first + len(program.registers)
        self.table, self.facts = np.concatenate([self.table, table]), np.concatenate([self.facts, facts])

    def players(
        self,
        terms: Terms,
        strategies: NDArray[np.int64],
        able: NDArray[np.bool_],
        seed: int,
        numbers: NDArray[np.int64],
        seats: int,
    ) -> NativePlayers:
        """The players of a batch; see `labmates_populations.machine.Programs`."""
        return NativePlayers(self, terms, strategies, able, seed, numbers, seats)

    def forget(self, strategies: NDArray[np.int64]) -> None:
        """Leave the later players of strategies to Python."""
        self.table[strategies] = -1


class NativePlayers:
    """The players of a batch that the machine executes; see `labmates_populations.machine.NativePlayers`."""

    def __init__(
        self,
        programs: Programs,
        terms: Terms,
        strategies: NDArray[np.int64],
        able: NDArray[np.bool_],
        seed: int,
        numbers: NDArray[np.int64],
        seats: int,
    ) -> None:
        self._programs = programs
        keeps, has_routines, draws, arguments = programs.facts.T
        self.playing = able & (programs.table[strategies, 0] >= 0) & (arguments[strategies] <= 1 + terms.stocked)
        places = np.flatnonzero(self.playing)
        mine = strategies[places]
        self._strategies = strategies
        players = np.zeros((len(strategies), layout.PLAYER_COLUMNS), np.int64)
        players[places, : layout.FRAME] = programs.table[mine]
        size, cells = _GLOBALS, len(strategies) * terms.n_rounds
        by_action = (terms.actions,) if terms.actions else ()
        words = np.array([1, 1, *(by_action or (1,))])  # of each array, for a round of a player
        seen = size + cells * (np.cumsum(words) - words)
        players[:, layout.SEEN :] = seen + np.arange(len(strategies))[:, None] * terms.n_rounds * words
        size += cells * int(words.sum())
        scratch, size = size, size + layout.HEAP_WORDS
        players[places, layout.KEPT_NEXT] = scratch
        size = _reserve(players, places, layout.FRAME, programs.table[mine, layout.FRAME_WORDS], size)
        keeping = places[keeps[mine] > 0]
        size = _reserve(players, keeping, layout.KEPT_NEXT, np.full(len(keeping), _KEPT_WORDS), size)
        players[keeping, layout.KEPT_END] = players[keeping, layout.KEPT_NEXT] + _KEPT_WORDS
        known, which, seats_of = np.unique(mine, return_inverse=True, return_counts=True)
        players[places, layout.BUDGET] = size + which
        budgets, size = slice(size, size + len(known)), size + len(known)
        drawing = places[draws[mine] > 0]
        size = _reserve(players, drawing, layout.RANDOM_WORDS, np.full(len(drawing), _STREAM_WORDS), size)
        self._memory = np.zeros(size, np.int64)
        self._memory[layout.MOVES] = terms.actions
        plain = INSTRUCTION_LIMIT * terms.n_rounds * seats_of
        self._memory[budgets] = np.where(has_routines[known], ROUTINES_LIMIT, plain)
        self._reals = self._memory.view(np.float64)
        self._players = players
        shape = len(strategies), terms.n_rounds
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
        self._set_parameters(terms.parameters)
        self._order = places[np.argsort(mine, kind="stable")]  # the code of one strategy stays in the cache

    def _set_parameters(self, values: Mapping[str, Any]) -> None:
        for place, name in enumerate(ATTRIBUTES[:N_PARAMETERS]):
            register = layout.PARAMETERS + 2 * place
            value = values.get(name)
            self._memory[register] = UNSET if value is None else FLOAT if isinstance(value, float) else INT
            if isinstance(value, float):
                self._reals[register + 1] = value
            else:
                self._memory[register + 1] = value or 0

    def decide(self, rounds: int, chosen: NDArray[Any], stocks: NDArray[np.float64] | None) -> None:
        """Let these players decide; see `labmates_populations.machine.NativePlayers`."""
        asked, programs = self._order, self._programs
        answers = np.empty(len(asked), np.uint8)
        stock = np.empty(0) if stocks is None else np.ascontiguousarray(stocks)  # one layout: each is compiled
        programs.decide(programs.code, programs.initial, self._memory, self._players, asked, rounds, stock, answers)
        left = answers == layout.LEFT
        if left.any():
            self.playing[asked[left]] = False
            spent = self._memory[self._players[asked, layout.BUDGET]] <= 0
            programs.forget(self._strategies[asked[left & spent]])
            self._order, answers = asked[~left], answers[~left]
        chosen[self._order] = answers


def _safe(programs: Sequence[bytes]) -> dict[int, Program]:
    """The programs by place; none if any is unsafe: the process that made them was taken over by what it read."""
    try:
        found = {number: unpacked(program) for number, program in enumerate(programs) if program}
    except (ValueError, struct.error):
        return {}
    return found if are_valid([*found.values()]) else {}


def _reserve(
    players: NDArray[np.int64], places: NDArray[np.int64], column: int, words: NDArray[np.int64], start: int
) -> int:
    """Assign memory words from `start` to players; return the next free word."""
    ends = start + np.cumsum(words)
    players[places, column] = ends - words
    return int(ends[-1]) if len(ends) else start
