"""Functions of one argument: those of Python, `math` and numpy. False leaves it to Python."""

# ruff: noqa: F403, F405, SIM109

from __future__ import annotations

import math

import numpy as np

from labmates_fast.instructions import *
from labmates_fast.machine.compiling import compiled
from labmates_fast.machine.dicts import keys_of
from labmates_fast.machine.layout import *
from labmates_fast.machine.memory import (
    allocate,
    copied,
    item_at,
    items_in,
    length_of,
    listed,
    may_read,
    new_array,
    number_at,
    set_number,
)
from labmates_fast.machine.numbers import calculate, converted
from labmates_fast.machine.operators import truth_of
from labmates_fast.machine.sequences import counted, sort_of


@compiled
def call_function(memory: Words, reals: Words, function: int, target: int, register: int) -> bool:
    """A function of one argument."""
    kind = memory[register]
    if function == LEN:
        size = memory[register + 1] if kind == NAMES else items_in(memory, register)
        if kind == DICT:
            size = memory[memory[register + 1]]
        return size >= 0 and set_number(memory, reals, target, INT, size, 0.0)
    if function in (NOT, BOOL_OF):
        truth = truth_of(memory, reals, register)
        return truth >= 0 and set_number(memory, reals, target, BOOL, truth if function == BOOL_OF else 1 - truth, 0.0)
    if BOOL <= kind <= NUMPY_FLOAT:
        return _call_number(memory, reals, function, target, register)
    if kind == LARGE and function == FLOAT_OF:
        return set_number(memory, reals, target, FLOAT, 0, float(memory[register + 1]))
    if kind == ACTION and function == INT_OF:
        return set_number(memory, reals, target, INT, memory[register + 1], 0.0)
    if kind == DICT:
        if function == AS_DICT:
            value = memory[register + 1]
            memory[target] = DICT
            memory[target + 1] = value
            return True
        if function not in (LIST_OF, TUPLE_OF, SORTED, SUM, MAX, MIN) or not keys_of(memory, target, register):
            return False
        register, kind = target, LIST
    length = length_of(memory, register)
    if length < 0 or not may_read(memory, length):
        return False
    if function == SUM:
        return _sum(memory, reals, target, register)
    if function in (MAX, MIN):
        return _extreme(memory, reals, target, register, GREATER if function == MAX else LESS)
    if function in (ALL, ANY):
        every = _every(memory, reals, register, int(function == ALL))
        return every >= 0 and set_number(memory, reals, target, BOOL, every if function == ALL else 1 - every, 0.0)
    if NUMPY_SUM <= function <= NUMPY_VAR:
        return _reduced(memory, reals, function, target, register)
    if function in (NUMPY_ARGMAX, NUMPY_ARGMIN):
        return _place_of_extreme(memory, reals, target, register, GREATER if function == NUMPY_ARGMAX else LESS)
    if function == NUMPY_MEDIAN:
        return _median(memory, reals, target, register)
    if function == NUMPY_ARRAY:
        return _as_array(memory, target, register)  # no array ever changes, so that it needs no copy
    if AS_BOOLS <= function <= AS_FLOATS:
        return _as_kind(memory, reals, target, register, BOOLS + function - AS_BOOLS)
    if function == REVERSED:
        count = length_of(memory, register)
        return copied(memory, target, register, count - 1, -1, count)
    if function == NUMPY_COUNT_NONZERO:
        return _count(memory, reals, target, register)
    if function == TUPLE_OF:
        if not listed(memory, target, register, False):
            return False
        memory[target] = TUPLE
        memory[memory[target + 1] + 1] = -1
        return True
    if function == SORTED:
        return sort_of(memory, reals, target, register)
    if function in (LIST_OF, TO_LIST):
        return listed(memory, target, register, function == TO_LIST)
    if BOOLS <= kind <= FLOATS and function in (NEGATIVE, INVERT, NUMPY_ABS):
        return _call_array(memory, reals, function, target, register)
    return False


@compiled
def _call_number(memory: Words, reals: Words, function: int, target: int, register: int) -> bool:
    """A function of a number."""
    kind = memory[register]
    value, real = number_at(memory, reals, kind, register + 1)
    floats = kind == FLOAT or kind == NUMPY_FLOAT
    if function == INT_OF:
        return set_number(memory, reals, target, *converted(INT, kind, value, real))
    if function == FLOAT_OF:
        return set_number(memory, reals, target, FLOAT, 0, real)
    if AS_BOOLS <= function <= AS_FLOATS:
        return kind >= NUMPY_BOOL and _as_kind(memory, reals, target, register, BOOLS + function - AS_BOOLS)
    if function == NUMPY_ALL or function == NUMPY_ANY:
        return set_number(memory, reals, target, NUMPY_BOOL, int(real != 0.0), 0.0)
    if function == NUMPY_ABS:
        made = NUMPY_BOOL + (kind - BOOL) % 3
        return set_number(memory, reals, target, made, abs(value), abs(real))
    if function in (NEGATIVE, POSITIVE, ABS):
        if kind == NUMPY_BOOL:
            return False
        sign = -1 if function == NEGATIVE or (function == ABS and real < 0.0) else 1
        if floats:
            changed = -real if function == NEGATIVE else abs(real) if function == ABS else real
            return set_number(memory, reals, target, kind, 0, changed)
        return set_number(memory, reals, target, INT if kind == BOOL else kind, sign * value, 0.0)
    if function == INVERT:
        return kind == NUMPY_BOOL and set_number(memory, reals, target, NUMPY_BOOL, 1 - value, 0.0)
    if MATH_CEIL <= function <= MATH_TRUNC or function == ROUND:
        if not floats:
            has = kind <= INT or function in (MATH_CEIL, MATH_FLOOR)  # numpy's integers can't be truncated
            return has and set_number(memory, reals, target, INT, value, 0.0)
        if not abs(real) <= LARGEST:
            return False
        if function == MATH_CEIL:
            real = math.ceil(real) * 1.0
        elif function == MATH_FLOOR:
            real = math.floor(real) * 1.0
        elif function == ROUND:
            real = np.rint(real)
        return set_number(memory, reals, target, INT, int(real), 0.0)
    if function == NUMPY_ARANGE:
        return kind in (INT, NUMPY_INT) and counted(memory, target, value)
    if function == MATH_EXP:
        real = math.exp(real)
        return math.isfinite(real) and set_number(memory, reals, target, FLOAT, 0, real)
    if function == MATH_LOG:
        return 0.0 < real < math.inf and set_number(memory, reals, target, FLOAT, 0, math.log(real))
    if function == MATH_SQRT:
        return real >= 0.0 and set_number(memory, reals, target, FLOAT, 0, math.sqrt(real))
    if function == MATH_ISFINITE:
        return set_number(memory, reals, target, BOOL, int(math.isfinite(real)), 0.0)
    if function == MATH_ISNAN:
        return set_number(memory, reals, target, BOOL, int(math.isnan(real)), 0.0)
    if function == MATH_ISINF:
        return set_number(memory, reals, target, BOOL, int(math.isinf(real)), 0.0)
    return False


@compiled
def _count(memory: Words, reals: Words, target: int, register: int) -> bool:
    """How many items of an array are not zero, as `numpy.count_nonzero`."""
    if not _as_array(memory, target, register):
        return False
    kind, value = memory[target], memory[target + 1]
    total = 0
    for place in range(value >> LENGTH_BITS, (value >> LENGTH_BITS) + (value & LENGTH_MASK)):
        _, x = number_at(memory, reals, kind - BOOLS + NUMPY_BOOL, place)
        total += int(x != 0.0)
    return set_number(memory, reals, target, INT, total, 0.0)


@compiled
def _call_array(memory: Words, reals: Words, function: int, target: int, register: int) -> bool:
    """The negative, the opposite or the absolute value of each item of an array."""
    kind, count = memory[register], length_of(memory, register)
    source = memory[register + 1] >> LENGTH_BITS
    if (function == INVERT) != (kind == BOOLS):
        return False
    absolute = function == NUMPY_ABS
    start = new_array(memory, target, kind, count)
    for number in range(count if start >= 0 else 0):
        if kind == FLOATS:
            reals[start + number] = abs(reals[source + number]) if absolute else -reals[source + number]
        elif kind == BOOLS:
            memory[start + number] = 1 - memory[source + number]
        else:
            memory[start + number] = abs(memory[source + number]) if absolute else -memory[source + number]
    return start >= 0


@compiled
def _as_array(memory: Words, target: int, register: int) -> bool:
    """A flat sequence of numbers, converted as numpy does."""
    kind = memory[register]
    if BOOLS <= kind <= FLOATS:
        memory[target] = kind
        memory[target + 1] = memory[register + 1]
        return True
    count = length_of(memory, register)
    level = 2 if count == 0 else -1
    for number in range(count):
        kind, _ = item_at(memory, register, number)
        if kind < BOOL or kind > NUMPY_FLOAT or level not in (-1, (kind - BOOL) % 3):
            return False
        level = (kind - BOOL) % 3
    source = memory[register + 1]
    start = new_array(memory, target, BOOLS + level, count) if count >= 0 else -1
    for number in range(count if start >= 0 else 0):
        memory[start + number] = memory[memory[source + 2] + 2 * number + 1]
    return start >= 0


@compiled
def _as_kind(memory: Words, reals: Words, target: int, register: int, wanted: int) -> bool:
    """An array of another kind (`BOOLS` and so on), or a number of numpy's."""
    kind = memory[register]
    if NUMPY_BOOL <= kind <= NUMPY_FLOAT:
        a, x = number_at(memory, reals, kind, register + 1)
        return set_number(memory, reals, target, *converted(wanted - BOOLS + NUMPY_BOOL, kind, a, x))
    if kind < BOOLS or kind > FLOATS:
        return False
    count, source = length_of(memory, register), memory[register + 1] >> LENGTH_BITS
    start = new_array(memory, target, wanted, count)
    if start < 0:
        return False
    for number in range(count):
        a, x = number_at(memory, reals, kind - BOOLS + NUMPY_BOOL, source + number)
        made, value, real = converted(wanted - BOOLS + NUMPY_BOOL, kind - BOOLS + NUMPY_BOOL, a, x)
        if made == UNSET:
            return False
        if made == NUMPY_FLOAT:
            reals[start + number] = real
        else:
            memory[start + number] = value
    return True


@compiled
def _sum(memory: Words, reals: Words, target: int, register: int) -> bool:
    """Python's `sum`."""
    count = length_of(memory, register)
    total, whole, real = INT, 0, 0.0
    for number in range(count):
        kind, word = item_at(memory, register, number)
        a, x = number_at(memory, reals, kind, word)
        if COMPENSATED and kind == FLOAT:
            return False
        total, whole, real = calculate(ADD, total, whole, float(whole) if total % 3 != 1 else real, kind, a, x)
        if total == UNSET:
            return False
    return count >= 0 and set_number(memory, reals, target, total, whole, real)


@compiled
def _sum_floats(reals: Words, start: int, count: int) -> float:
    """A sum as numpy's: in eight parts if there are so many; at most 128."""
    if count < 8:
        total = -0.0
        for place in range(start, start + count):
            total += reals[place]
        return total
    parts = (
        reals[start], reals[start + 1], reals[start + 2], reals[start + 3],
        reals[start + 4], reals[start + 5], reals[start + 6], reals[start + 7],
    )  # fmt: skip
    a, b, c, d, e, f, g, h = parts
    whole = count - count % 8
    for place in range(start + 8, start + whole, 8):
        a += reals[place]
        b += reals[place + 1]
        c += reals[place + 2]
        d += reals[place + 3]
        e += reals[place + 4]
        f += reals[place + 5]
        g += reals[place + 6]
        h += reals[place + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for place in range(start + whole, start + count):
        total += reals[place]
    return total


@compiled
def _extreme(memory: Words, reals: Words, target: int, register: int, op: int) -> bool:
    """The first item that no other is greater (less) than, as Python's `max` and `min`."""
    count = length_of(memory, register)
    if count <= 0:
        return False
    best, word = item_at(memory, register, 0)
    for number in range(1, count):
        kind, place = item_at(memory, register, number)
        a, x = number_at(memory, reals, kind, place)
        b, y = number_at(memory, reals, best, word)
        compared, better, _ = calculate(op, kind, a, x, best, b, y)
        if compared == UNSET:
            return False
        if better:
            best, word = kind, place
    value = memory[word]
    memory[target] = best
    memory[target + 1] = value
    return True


@compiled
def _place_of_extreme(memory: Words, reals: Words, target: int, register: int, op: int) -> bool:
    """The place of the first item that no other is greater (less) than, as `numpy.argmax` and `numpy.argmin`."""
    if not _as_array(memory, target, register):
        return False
    kind, value = memory[target], memory[target + 1]
    start, count = value >> LENGTH_BITS, value & LENGTH_MASK
    if count == 0:
        return False
    best = start
    for place in range(start, start + count):
        _, x = number_at(memory, reals, kind - BOOLS + NUMPY_BOOL, place)
        _, y = number_at(memory, reals, kind - BOOLS + NUMPY_BOOL, best)
        if x != x:
            return False
        if x > y if op == GREATER else x < y:
            best = place
    return set_number(memory, reals, target, NUMPY_INT, best - start, 0.0)


@compiled
def _every(memory: Words, reals: Words, register: int, wanted: int) -> int:
    """Whether each item of a sequence is as true as `wanted`; -1 if Python has to say."""
    count = length_of(memory, register)
    for number in range(count):
        kind, word = item_at(memory, register, number)
        if kind > TEXT or kind == UNSET:
            return -1
        a, x = number_at(memory, reals, kind, word)
        true = kind != NONE and (x != 0.0 if kind == FLOAT or kind == NUMPY_FLOAT else a != 0)
        if int(true) != wanted:
            return 0
    return 1 if count >= 0 else -1


@compiled
def _reduced(memory: Words, reals: Words, function: int, target: int, register: int) -> bool:
    """A reduction of all numbers of a sequence, as numpy does it."""
    if not _as_array(memory, target, register):
        return False
    kind, value = memory[target], memory[target + 1]
    start, count = value >> LENGTH_BITS, value & LENGTH_MASK
    if count > 128:
        return False
    if function in (NUMPY_ALL, NUMPY_ANY):
        every = _every(memory, reals, target, int(function == NUMPY_ALL))
        return set_number(memory, reals, target, NUMPY_BOOL, every if function == NUMPY_ALL else 1 - every, 0.0)
    if function in (NUMPY_MAX, NUMPY_MIN):
        for place in range(start, start + count):
            if kind == FLOATS and (reals[place] != reals[place] or (reals[place] == 0.0 and memory[place] != 0)):
                return False  # which zero is the greater one differs
        return _extreme(memory, reals, target, target, GREATER if function == NUMPY_MAX else LESS)
    whole, real = 0, 0.0
    if kind == FLOATS:
        real = _sum_floats(reals, start, count) + 0.0
    else:
        for place in range(start, start + count):
            whole += memory[place]
        real = float(whole)
    if function == NUMPY_SUM:
        return set_number(memory, reals, target, NUMPY_FLOAT if kind == FLOATS else NUMPY_INT, whole, real)
    if abs(real) > LARGEST or count == 0:
        return False
    mean = real / count
    if function == NUMPY_MEAN:
        return set_number(memory, reals, target, NUMPY_FLOAT, 0, mean)
    squares = allocate(memory, count)
    if squares < 0:
        return False
    for number in range(count):
        _, x = number_at(memory, reals, kind - BOOLS + NUMPY_BOOL, start + number)
        reals[squares + number] = (x - mean) * (x - mean)
    variance = _sum_floats(reals, squares, count) / count
    return set_number(memory, reals, target, NUMPY_FLOAT, 0, math.sqrt(variance) if function == NUMPY_STD else variance)


@compiled
def _median(memory: Words, reals: Words, target: int, register: int) -> bool:
    """The mean of the two middle numbers of an array, or the one in the middle."""
    if not _as_array(memory, target, register):
        return False
    kind, count = memory[target], length_of(memory, target)
    source, ordered = memory[target + 1] >> LENGTH_BITS, allocate(memory, count)
    if kind == BOOLS or count == 0 or count > 128 or ordered < 0:
        return False
    for number in range(count):
        _, x = number_at(memory, reals, kind - BOOLS + NUMPY_BOOL, source + number)
        if x != x:
            return False
        place = ordered + number
        while place > ordered and reals[place - 1] > x:
            reals[place] = reals[place - 1]
            place -= 1
        reals[place] = x
    middle = ordered + count // 2
    median = reals[middle] if count % 2 else (reals[middle - 1] + reals[middle]) / 2.0
    return set_number(memory, reals, target, NUMPY_FLOAT, 0, median + 0.0)
