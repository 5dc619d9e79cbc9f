"""A check of instructions from another process before `machine` executes them, since it does not check memory bounds.

Valid instructions access only registers of their own strategy, call only its routines, and terminate. The machine
ensures the rest: no operand turns a number into a sequence, and no sequence outlives its heap memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labmates_fast import instructions as ops
from labmates_fast.lowering.program import MOST_INSTRUCTIONS, MOST_REGISTERS, Program

_UNUSED, _READ, _WRITTEN, _TWO, _THREE, _FOUR, _JUMP, _ATTRIBUTE, _FUNCTION, _COUNT = range(10)
_ROLES = np.full((max(ops.FORMS) + 1, 3), _UNUSED)
for _op, _form in ops.FORMS.items():
    _ROLES[_op, : len(_form)] = [" rw234jafn".index(role) for role in _form]
_KNOWN = np.isin(np.arange(len(_ROLES)), [*ops.FORMS])
_LAST = (ops.JUMP, ops.ANSWER, ops.LEAVE, ops.END, ops.RETURN)
_ANY = np.iinfo(np.int16)


_TOGETHER = 64
"""Number of programs that are checked at once."""


def are_valid(programs: Sequence[Program]) -> bool:
    """Whether instructions stay within their registers and code, and the initial registers have no sequence."""
    parts = [programs[start : start + _TOGETHER] for start in range(0, len(programs), _TOGETHER)]
    return all(map(_has_valid_sizes, programs)) and all(map(_stay_within, parts))


def _has_valid_sizes(program: Program) -> bool:
    length, first, words = len(program.code), len(program.registers), program.words
    if not 0 < length <= MOST_INSTRUCTIONS or not 0 <= program.deciding < length or first % 2 or words % 2:
        return False
    # The arguments of a decision are a history and perhaps a stock.
    return first + 4 <= words <= 2 * MOST_REGISTERS


def _stay_within(programs: Sequence[Program]) -> bool:
    kinds = np.concatenate([program.registers[::2] for program in programs])
    code = np.concatenate([program.code for program in programs]).astype(np.int64)
    sizes = [(len(program.code), len(program.registers), program.words) for program in programs]
    lengths, first, words = np.repeat(sizes, [length for length, _, _ in sizes], axis=0).T
    after = np.concatenate([np.arange(1, length + 1) for length, _, _ in sizes])
    names, operands = code[:, 0], code[:, 1:]
    if (kinds < ops.UNSET).any() or (kinds >= ops.DESCRIPTION).any():
        return False
    if (names < 0).any() or (names >= len(_KNOWN)).any() or not _KNOWN[names].all():
        return False
    if not np.isin(names[after == lengths], _LAST).all():
        return False
    nothing = np.zeros_like(first)
    least = np.array([nothing + _ANY.min, nothing, first, first, first, first, -after, nothing, nothing, nothing])
    most = np.array([
        nothing + _ANY.max, words - 2, words - 2, words - 4, words - 6, words - 8, lengths - 1 - after,
        nothing + len(ops.ATTRIBUTES) - 1, nothing + len(ops.FUNCTIONS) - 1, words // 2,
    ])  # fmt: skip
    roles, rows = _ROLES[names], np.arange(len(code))[:, None]
    within = (least[roles, rows] <= operands) & (operands <= most[roles, rows])
    if not within.all():
        return False
    calls = np.flatnonzero(names == ops.CALL_ROUTINE)
    routines = calls + 1 + operands[calls, 2]
    passed = operands[calls, 1] + 2 * operands[routines, 2] <= words[calls]
    if not (names[routines] == ops.ENTER).all() or not passed.all():
        return False
    registers = (roles >= _READ) & (roles <= _FOUR)
    following = operands[:, 1] + 2 * operands[:, 2] <= words
    return bool(not (operands[registers] % 2).any() and following[roles[:, 2] == _COUNT].all())
