"""Operators of numbers as Python and numpy have them, and conversions of one number."""

# ruff: noqa: SIM109

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labmates_fast.instructions import (
    ADD,
    BIT_AND,
    BIT_OR,
    BOOL,
    DIVIDE,
    EQUAL,
    FLOAT,
    FLOOR_DIVIDE,
    GREATER,
    GREATER_EQUAL,
    INT,
    LESS,
    LESS_EQUAL,
    MODULO,
    MULTIPLY,
    NOT_EQUAL,
    NUMPY_BOOL,
    NUMPY_FLOAT,
    POWER,
    SUBTRACT,
    UNSET,
)
from labmates_fast.machine.compiling import compiled, within
from labmates_fast.machine.layout import LARGEST


@compiled
def calculate(op: int, tag_a: int, a: int, x: float, tag_b: int, b: int, y: float) -> tuple[int, int, float]:
    """The result of a binary operator on two numbers, each as an integer and a float: its kind, integer and float.

    Its kind is `UNSET` if Python has to do it.
    """
    if tag_a < BOOL or tag_a > NUMPY_FLOAT or tag_b < BOOL or tag_b > NUMPY_FLOAT:
        return UNSET, 0, 0.0
    numpy = NUMPY_BOOL - BOOL if tag_a >= NUMPY_BOOL or tag_b >= NUMPY_BOOL else 0
    level = max((tag_a - BOOL) % 3, (tag_b - BOOL) % 3)
    floats = level == 2
    if LESS <= op <= NOT_EQUAL:
        return BOOL + numpy, int(compare(op, x, y) if floats else compare(op, a, b)), 0.0
    if op == BIT_AND or op == BIT_OR:
        if floats:
            return UNSET, 0, 0.0
        return BOOL + level + numpy, a & b if op == BIT_AND else a | b, 0.0
    if op == DIVIDE:
        if y == 0.0 and not numpy:
            return UNSET, 0, 0.0
        return FLOAT + numpy, 0, x / y
    if level == 0 and numpy:
        if op == ADD:
            return NUMPY_BOOL, a | b, 0.0
        return (NUMPY_BOOL, a & b, 0.0) if op == MULTIPLY else (UNSET, 0, 0.0)
    if op == POWER and floats and numpy and tag_a != NUMPY_FLOAT and tag_b != NUMPY_FLOAT:
        return UNSET, 0, 0.0  # numpy has its own power of an integer and Python's float, whose last bit may differ
    if floats:
        done, result = _calculate_floats(op, x, y)
        return (FLOAT + numpy, 0, result) if done else (UNSET, 0, 0.0)
    kind, whole, result = _calculate_integers(op, a, b, numpy > 0)
    return (UNSET if kind == UNSET else kind + numpy), whole, result


@within
def compare(op: int, a: Any, b: Any) -> bool:
    """Whether two numbers compare in this way."""
    if op == LESS:
        return a < b
    if op == LESS_EQUAL:
        return a <= b
    if op == GREATER:
        return a > b
    if op == GREATER_EQUAL:
        return a >= b
    return a == b if op == EQUAL else a != b


@compiled
def _calculate_floats(op: int, x: float, y: float) -> tuple[bool, float]:
    if op == ADD:
        return True, x + y
    if op == SUBTRACT:
        return True, x - y
    if op == MULTIPLY:
        return True, x * y
    if op == POWER:
        if x > 0.0 or (x == 0.0 and y >= 0.0):
            power = x**y
            return math.isfinite(power), power
        if x < 0.0 and y == math.floor(y) and abs(y) < LARGEST:
            power = (-x) ** y
            return math.isfinite(power), -power if y % 2.0 else power
        return False, 0.0
    if y == 0.0 or not math.isfinite(x) or not math.isfinite(y):
        return False, 0.0
    remainder = np.fmod(x, y)
    quotient = (x - remainder) / y
    if remainder != 0.0:
        if (y < 0.0) != (remainder < 0.0):
            remainder += y
            quotient -= 1.0
    else:
        remainder = math.copysign(0.0, y)
    if op == MODULO:
        return True, remainder
    if quotient == 0.0:
        return True, math.copysign(0.0, x / y)
    whole = np.floor(quotient)
    return True, whole + 1.0 if quotient - whole > 0.5 else whole


@compiled
def _calculate_integers(op: int, a: int, b: int, numpy: bool) -> tuple[int, int, float]:
    if op == ADD:
        result = a + b
    elif op == SUBTRACT:
        result = a - b
    elif op == MULTIPLY:
        if abs(float(a) * float(b)) > LARGEST:
            return UNSET, 0, 0.0
        result = a * b
    elif op == POWER:
        if b < 0 and (a == 0 or numpy):
            return UNSET, 0, 0.0
        if b < 0:
            return FLOAT, 0, float(a) ** float(b)
        if b > 64:
            return UNSET, 0, 0.0
        result = 1
        for _ in range(b):
            if abs(float(result) * float(a)) > LARGEST:
                return UNSET, 0, 0.0
            result *= a
    else:
        if b == 0:
            return UNSET, 0, 0.0
        result = a // b if op == FLOOR_DIVIDE else a % b
    if result > LARGEST or result < -LARGEST:
        return UNSET, 0, 0.0
    return INT, result, 0.0


@compiled
def converted(wanted: int, kind: int, value: int, real: float) -> tuple[int, int, float]:
    """A number as another kind; `UNSET` if Python has to do it."""
    level = (wanted - BOOL) % 3
    from_float = kind == FLOAT or kind == NUMPY_FLOAT
    if level == 2:
        return wanted, 0, real
    if level == 0:
        return wanted, int(real != 0.0 if from_float else value != 0), 0.0
    if not from_float:
        return wanted, value, 0.0
    if not abs(real) <= LARGEST:
        return UNSET, 0, 0.0
    return wanted, int(real), 0.0


_POWERS = np.array([float(10**number) for number in range(23)])
"""The powers of ten that are floats."""
MOST_DIGITS = len(_POWERS) - 1
_SPLIT = float((1 << 27) + 1)


@within
def rounded(x: float, digits: int, exact: bool) -> tuple[bool, float]:
    """A float with some digits after the point: the nearest decimal number of Python, or with less care numpy's.

    The first part is False if Python has to do it.
    """
    power = _POWERS[digits]
    scaled = x * power
    if not abs(scaled) < LARGEST / 2:
        return False, 0.0
    whole = np.rint(scaled)
    # Numbers halfway between integers are floats here, so that no other product is rounded across one of them.
    if exact and abs(scaled - whole) == 0.5:
        rest = _rest_of_product(x, power, scaled)
        if rest != 0.0:
            whole = math.floor(scaled) + (1.0 if rest > 0.0 else 0.0)
    return True, math.copysign(whole / power, x)


@compiled
def _rest_of_product(x: float, y: float, product: float) -> float:
    """The exact product of two floats less the float nearest to it (Dekker, 1971)."""
    left, right = x * _SPLIT, y * _SPLIT
    left, right = left - (left - x), right - (right - y)
    low, small = x - left, y - right
    return low * small - (((product - left * right) - low * right) - left * small)
