"""A check of instructions from another process before `machine` executes them, since it does not check memory bounds.

Valid instructions access only registers of their own strategy, and terminate. The machine ensures the rest: no operand
turns a number into a sequence, and no sequence outlives its heap memory.
"""

from __future__ import annotations

import numpy as np

from labmates.workflows.populations.engine.kernel import instructions as ops
from labmates.workflows.populations.engine.kernel.lowering.program import MOST_INSTRUCTIONS, MOST_REGISTERS, Program

_UNUSED, _READ, _WRITTEN, _TWO, _THREE, _FOUR, _JUMP, _ATTRIBUTE, _FUNCTION, _COUNT = range(10)
_ROLES = np.full((max(ops.FORMS) + 1, 3), _UNUSED)
for _op, _form in ops.FORMS.items():
    _ROLES[_op, : len(_form)] = [" rw234jafn".index(role) for role in _form]
_KNOWN = np.isin(np.arange(len(_ROLES)), [*ops.FORMS])
_LAST = (ops.JUMP, ops.ANSWER, ops.LEAVE, ops.END)
_ANY = np.iinfo(np.int16)


def is_valid(program: Program) -> bool:
    """Whether instructions stay within their registers and code, and the initial registers have no sequence."""
    code, first, words = program.code.astype(np.int64), len(program.registers), program.words
    if not 0 < len(code) <= MOST_INSTRUCTIONS or not 0 <= program.deciding < len(code):
        return False
    # The arguments of a decision are a history and perhaps a stock.
    if first % 2 or words % 2 or not first + 4 <= words <= 2 * MOST_REGISTERS:
        return False
    kinds, names = program.registers[::2], code[:, 0]
    if (kinds < ops.UNSET).any() or (kinds >= ops.DESCRIPTION).any():
        return False
    if (names < 0).any() or (names >= len(_KNOWN)).any() or not _KNOWN[names].all() or names[-1] not in _LAST:
        return False
    roles, operands = _ROLES[names], code[:, 1:]
    targets = operands + np.arange(1, len(code) + 1)[:, None]
    operands = np.where(roles == _JUMP, targets, operands)
    least = np.array([_ANY.min, 0, first, first, first, first, 0, 0, 0, 0])
    most = np.array([
        _ANY.max, words - 2, words - 2, words - 4, words - 6, words - 8, len(code) - 1, len(ops.ATTRIBUTES) - 1,
        len(ops.FUNCTIONS) - 1, words // 2,
    ])  # fmt: skip
    within = (least[roles] <= operands) & (operands <= most[roles])
    registers = (roles >= _READ) & (roles <= _FOUR)
    following = operands[:, 1] + 2 * operands[:, 2] <= words
    return bool(within.all() and not (operands[registers] % 2).any() and following[roles[:, 2] == _COUNT].all())
