"""That instructions from a hostile process of sources reach nothing but their own player's words, or are refused."""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from labmates_fast import instructions as ops
from labmates_fast import machine
from labmates_fast.lowering.program import Program, packed, unpacked
from labmates_fast.machine import execution, layout
from labmates_fast.programs import FAST, NativePlayers, Programs, load_decide
from labmates_fast.verification import are_valid
from labmates_populations.engine.kernel.engine import terms_of
from labmates_populations.engine.kernel.source import read_source
from labmates_populations.repeated import make_repeated
from tests.fast.test_machine import BODIES, SEARCHES, _source

_GAME = make_repeated("common-pool", 4, 6)
_SOURCES = read_source(_source([*BODIES.values(), *SEARCHES.values()]), "test.py", FAST)
_PROGRAMS = [unpacked(one.program) for one in _SOURCES if one.program]


def test_instructions_of_strategies_are_valid() -> None:
    assert len(_PROGRAMS) == len(BODIES) + len(SEARCHES)
    assert are_valid(_PROGRAMS)


def _with(place: int, operand: int, value: int) -> Callable[[Program], Program]:
    def change(program: Program) -> Program:
        code = program.code.copy()
        code[place, operand] = value
        return replace(program, code=code)

    return change


def _both(one: Callable[[Program], Program], other: Callable[[Program], Program]) -> Callable[[Program], Program]:
    return lambda program: other(one(program))


def _beginning(kind: int) -> Callable[[Program], Program]:
    return lambda program: replace(program, registers=np.array([kind, 1 << 40], np.int64))


_SMALL = Program(
    code=np.array([
        [ops.END, 0, 0, 0], [ops.MOVE, 4, 0, 0], [ops.ATTRIBUTE, 6, 2, ops.ROUND_NUMBER], [ops.CALL, 6, 6, ops.INT_OF],
        [ops.NEW_LIST, 6, 2, 2], [ops.SLICE, 6, 6, 2], [ops.JUMP_TRUE, 0, 1, 0], [ops.LEAVE, 0, 0, 0],
        [ops.IS_CLOSE, 6, 2, 0], [ops.ANSWER, 0, 0, 0],
    ], np.int16),
    deciding=1, registers=np.array([ops.ACTION, 1], np.int64), words=10, keeps_lists=False, arguments=1,
)  # fmt: skip
_INVALID: dict[str, Callable[[Program], Program]] = {
    "a register before the first": _with(1, 2, -2),
    "a register after the last": _with(1, 2, 10),
    "half a register": _with(1, 1, 5),
    "a constant that is changed": _with(1, 1, 0),
    "an unknown instruction": _with(1, 0, 17),
    "an instruction before the first": _with(1, 0, -1),
    "an instruction after the last": _with(1, 0, 99),
    "an unknown attribute": _with(2, 3, -8),
    "an unknown function": _with(3, 3, len(ops.FUNCTIONS)),
    "items after the last register": _with(4, 3, 5),
    "a negative number of items": _with(4, 3, -1),
    "bounds after the last register": _with(5, 3, 6),
    "numbers after the last register": _with(8, 2, 4),
    "a jump before the code": _with(6, 2, -8),
    "a jump after the code": _with(6, 2, 3),
    "code without an end": _with(9, 0, ops.MOVE),
    "no code": lambda program: replace(program, code=program.code[:0]),
    "a decision outside of the code": lambda program: replace(program, deciding=10),
    "no room for a history": lambda program: replace(program, words=4),
    "too many registers": lambda program: replace(program, words=1 << 40),
    "a list at the beginning": _beginning(ops.LIST),
    "an array at the beginning": _beginning(ops.FLOATS),
    "an unknown kind": _beginning(-1),
}


_CALLING = replace(
    _SMALL,
    code=np.array([
        [ops.END, 0, 0, 0], [ops.CALL_ROUTINE, 4, 6, 1], [ops.ANSWER, 0, 0, 0], [ops.ENTER, 0, 6, 1],
        [ops.RETURN, 0, 0, 0],
    ], np.int16),
)  # fmt: skip
_INVALID_CALLS: dict[str, Callable[[Program], Program]] = {
    "a call without a routine": _with(1, 3, 0),
    "a call before the code": _with(1, 3, -3),
    "a routine with a constant argument": _with(3, 2, 0),
    "arguments after the last register": _with(3, 3, 3),
    "a negative number of arguments": _with(3, 3, -1),
    "passed values after the last register": _both(_with(1, 2, 8), _with(3, 3, 2)),
    "a passed constant": _with(1, 2, 0),
    "a result after the last register": _with(1, 1, 10),
}


def test_small_programs_are_valid() -> None:
    assert are_valid([_SMALL, _CALLING])


@pytest.mark.parametrize(
    "program",
    [*(change(_SMALL) for change in _INVALID.values()), *(change(_CALLING) for change in _INVALID_CALLS.values())],
    ids=[*_INVALID, *_INVALID_CALLS],
)
def test_invalid_instructions_are_refused(program: Program) -> None:
    assert not are_valid([*_PROGRAMS, program, *_PROGRAMS])
    assert not _learned(packed(_PROGRAMS[0]), packed(program)).any()


@pytest.mark.parametrize("cut", [slice(None, 20), slice(None, -1), slice(8, None)])
def test_bytes_that_are_no_program_are_refused(cut: slice) -> None:
    assert not _learned(packed(_PROGRAMS[0])[cut]).any()
    assert _learned(packed(_PROGRAMS[0])).all()


def _learned(*programs: bytes) -> NDArray[np.bool_]:
    """Which programs the machine executes."""
    learning = Programs(lambda *_: None)
    learning.learn(programs)
    return np.asarray(learning.table[:, 0] >= 0)


class _Words:
    """Words that say which of them may be read and written."""

    def __init__(self, words: NDArray[Any], read: NDArray[np.bool_], written: NDArray[np.bool_]) -> None:
        self._words, self._read, self._written = words, read, written

    def __getitem__(self, place: int) -> Any:
        assert 0 <= place < len(self._words)
        assert self._read[place]
        return self._words[place].item()

    def __setitem__(self, place: int, value: Any) -> None:
        assert 0 <= place < len(self._words)
        assert self._written[place]
        bits = 1 << 64
        wrapped = value if isinstance(value, float) else (int(value) + bits // 2) % bits - bits // 2
        self._words[place] = wrapped


def _random_program(chance: random.Random) -> Program:
    """Valid instructions that make no sense: those of a strategy with some changed, or random ones after lists."""
    program = chance.choice(_PROGRAMS)
    code, first, words = program.code.copy(), len(program.registers), program.words
    places = chance.sample(range(len(code) - 1), chance.randint(1, 3))
    if chance.random() < 0.5:
        begin = [
            [ops.END], [ops.ATTRIBUTE, first + 2, first, ops.ARRAY_NAMES + 1], [ops.NEW_LIST, first + 4, first + 2, 1],
            [ops.APPEND, first + 4, first + 4], [ops.ATTRIBUTE, first + 6, first, ops.ROUND_NUMBER],
            [ops.NEW_DICT, first + 8], [ops.SET_ITEM, first + 8, first + 6, first + 4], [ops.JUMP, 1],
            [ops.ENTER, 0, first + 12, 1],
        ]  # fmt: skip
        code = np.array([[*row, 0, 0, 0][:4] for row in begin] + [[0] * 4] * 10, np.int16)
        places, words = [*range(len(begin), len(code) - 1)], first + 16
        program = replace(program, deciding=1, words=words, keeps_lists=chance.random() < 0.5)
    for place in places:
        name = chance.choice([*ops.FORMS])
        code[place] = name, 0, 0, 0
        routines = np.flatnonzero(code[:, 0] == ops.ENTER).tolist()
        target = chance.choice(routines) if name == ops.CALL_ROUTINE and routines else chance.randint(0, len(code) - 1)
        for number, role in enumerate(ops.FORMS[name], start=1):
            code[place, number] = _operand(role, chance, first, words, target - place - 1)
    code[-1] = ops.ANSWER, 0, 0, 0
    return replace(program, code=code)


def _operand(role: str, chance: random.Random, first: int, words: int, jump: int) -> int:
    simple = {"j": jump, "a": chance.randrange(len(ops.ATTRIBUTES)), "f": chance.randrange(len(ops.FUNCTIONS)),
              "n": chance.randint(0, 2)}  # fmt: skip
    least = 0 if role == "r" else first
    end = max(least + 2, words - (6 if role == "4" else 4))
    return simple[role] if role in simple else chance.randrange(least, end, 2)


def _as_python(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The machine, run as Python."""
    for module in pkgutil.iter_modules(machine.__path__, f"{machine.__name__}."):
        loaded = importlib.import_module(module.name)
        for name, value in vars(loaded).items():
            if hasattr(value, "py_func"):
                monkeypatch.setattr(loaded, name, value.py_func)
    for part in (layout, execution):
        monkeypatch.setattr(part, "HEAP_WORDS", 1 << 12)
    decide: Callable[..., None] = execution.decide
    return decide


def _players(decide: Callable[..., None], program: Program) -> NativePlayers:
    programs = Programs(decide)
    programs.learn([packed(program)])
    terms, numbers = terms_of(_GAME), np.zeros(2, np.int64)
    players = programs.players(terms, numbers, np.ones(2, bool), 0, np.zeros(1, np.int64), 2)
    players._memory[players._players[:, layout.BUDGET]] = 2000
    return players


def _views(players: NativePlayers, player: int) -> Callable[[NDArray[Any]], _Words]:
    """What a player may read, and what it may write: its registers, heap and random numbers."""
    row = players._players[player]
    written = np.zeros(len(players._memory), bool)
    written[: layout.PARAMETERS] = True
    end = row[layout.KEPT_END] or row[layout.KEPT_NEXT] + layout.HEAP_WORDS
    for start, stop in [
        (row[layout.FRAME], row[layout.FRAME] + row[layout.FRAME_WORDS]),
        (row[layout.KEPT_NEXT], end),
        (row[layout.RANDOM_WORDS], row[layout.RANDOM_WORDS] + 625),
        (row[layout.BUDGET], row[layout.BUDGET] + 1),
    ]:
        written[start:stop] |= start > 0
    read = written.copy()
    read[layout.PARAMETERS : layout.PARAMETERS + 2 * ops.N_PARAMETERS] = True
    for start in row[layout.SEEN :]:
        read[start : start + _GAME.n_rounds] = True

    def view(words: NDArray[Any]) -> _Words:
        if words.dtype == np.int16:
            return _Words(words.reshape(-1), np.ones(words.size, bool), np.zeros(words.size, bool))
        return _Words(words, read, written)

    return view


def test_valid_instructions_reach_only_their_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = _as_python(monkeypatch)
    chance = random.Random(1)
    answered = called = 0
    for _ in range(600):
        program = _random_program(chance)
        if not are_valid([program]):
            continue
        players = _players(decide, program)
        views = [_views(players, player) for player in (0, 1)]
        for t in range(4):
            for player in np.flatnonzero(players.playing).tolist():
                monkeypatch.setattr(execution, "_POINTER", views[player])
                players._order = np.array([player])
                try:
                    with np.errstate(all="ignore"):
                        players.decide(t, np.zeros(2, bool), np.full(2, 9.0))
                except (ArithmeticError, ValueError):  # compiled code has neither these nor numpy's warnings
                    players.playing[player] = False
                answered += t > 0 and bool(players.playing[player])
                called += program.has_routines and bool(players.playing[player])
    assert answered > 20
    assert called > 20


def test_no_register_outlives_a_decision() -> None:
    decide = load_decide()
    assert decide is not None
    code = [
        [ops.END, 0, 0, 0],
        [ops.JUMP_SET, 6, 2, 0],
        [ops.NEW_LIST, 6, 2, 0],
        [ops.ANSWER, 0, 0, 0],
        [ops.LEAVE] * 4,
    ]
    program = replace(_SMALL, code=np.array(code, np.int16))
    players = _players(decide, program)
    assert are_valid([program])
    for t in range(3):
        players.decide(t, np.zeros(2, bool), np.full(2, 9.0))
    assert players.playing.all()
