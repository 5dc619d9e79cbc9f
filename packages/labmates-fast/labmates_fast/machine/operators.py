"""Operators of the machine: of two registers, with a third one for the result. False leaves it to Python."""

# ruff: noqa: F403, F405, SIM109

from __future__ import annotations

import math

from labmates_fast.instructions import *
from labmates_fast.machine.compiling import compiled, within
from labmates_fast.machine.layout import COMPARISON, LARGEST, LARGEST_WORD, Words
from labmates_fast.machine.memory import (
    item_at,
    length_of,
    may_read,
    new_array,
    number_at,
    set_number,
)
from labmates_fast.machine.numbers import MOST_DIGITS, calculate, compare, rounded
from labmates_fast.machine.sequences import combine


@compiled
def _is_quick(op: int, kind_a: int, kind_b: int) -> bool:
    """Whether two numbers are compared, which are exact as floats, or are added, subtracted or multiplied as floats."""
    if kind_a < BOOL or kind_a > NUMPY_FLOAT or kind_b < BOOL or kind_b > NUMPY_FLOAT:
        return False
    return op >= LESS or op == DIVIDE or (op <= MULTIPLY and (kind_a % 3 == 1 or kind_b % 3 == 1))


@within
def calculate_quickly(memory: Words, reals: Words, op: int, target: int, left: int, right: int) -> bool:
    """A binary operator: the most frequent kinds of numbers without further ado."""
    kind_a, kind_b = memory[left], memory[right]
    if kind_a == FLOAT and kind_b == FLOAT and op <= DIVIDE:
        x, y = reals[left + 1], reals[right + 1]
        if op == DIVIDE and y == 0.0:
            return False
        memory[target] = FLOAT
        reals[target + 1] = x + y if op == ADD else x - y if op == SUBTRACT else x * y if op == MULTIPLY else x / y
        return True
    if kind_a == INT and kind_b == INT and op <= MULTIPLY:
        a, b = memory[left + 1], memory[right + 1]
        if op == MULTIPLY:
            if abs(float(a) * float(b)) > LARGEST:
                return False
            result = a * b
        else:
            result = a + b if op == ADD else a - b
        if result > LARGEST or result < -LARGEST:
            return False
        memory[target] = INT
        memory[target + 1] = result
        return True
    if not _is_quick(op, kind_a, kind_b):
        return binary(memory, reals, op, target, left, right)
    numpy = kind_a >= NUMPY_BOOL or kind_b >= NUMPY_BOOL
    x = reals[left + 1] if kind_a % 3 == 1 else float(memory[left + 1])
    y = reals[right + 1] if kind_b % 3 == 1 else float(memory[right + 1])
    if op >= LESS:
        memory[target] = NUMPY_BOOL if numpy else BOOL
        memory[target + 1] = int(compare(op, x, y))
        return True
    if op == DIVIDE and y == 0.0 and not numpy:
        return False
    memory[target] = NUMPY_FLOAT if numpy else FLOAT
    reals[target + 1] = x + y if op == ADD else x - y if op == SUBTRACT else x * y if op == MULTIPLY else x / y
    return True


@compiled
def truth_of(memory: Words, reals: Words, register: int) -> int:
    """Whether a value is true; -1 if Python has to say."""
    kind = memory[register]
    if kind == FLOAT or kind == NUMPY_FLOAT:
        return int(reals[register + 1] != 0.0)
    if kind == NONE:
        return 0
    if kind == UNSET:
        return -1
    if kind <= TEXT:
        return int(memory[register + 1] != 0)
    if kind == LIST or kind == TUPLE or kind == DICT:
        return int(memory[memory[register + 1]] > 0)
    return 1 if kind <= HISTORY else -1


@within
def compared(memory: Words, reals: Words, op: int, left: int, right: int) -> int:
    """Whether it is true that two values compare in this way; -1 if Python has to say."""
    kind_a, kind_b = memory[left], memory[right]
    if BOOL <= kind_a <= NUMPY_FLOAT and BOOL <= kind_b <= NUMPY_FLOAT:
        _, x = number_at(memory, reals, kind_a, left + 1)
        _, y = number_at(memory, reals, kind_b, right + 1)
        return int(compare(op, x, y))
    if not binary(memory, reals, op, COMPARISON, left, right):
        return -1
    return truth_of(memory, reals, COMPARISON)


@compiled
def binary(memory: Words, reals: Words, op: int, target: int, left: int, right: int) -> bool:
    """A binary operator on any two values."""
    kind_a, kind_b = memory[left], memory[right]
    if BOOL <= kind_a <= NUMPY_FLOAT and BOOL <= kind_b <= NUMPY_FLOAT:
        a, x = number_at(memory, reals, kind_a, left + 1)
        b, y = number_at(memory, reals, kind_b, right + 1)
        kind, value, real = calculate(op, kind_a, a, x, kind_b, b, y)
        return set_number(memory, reals, target, kind, value, real)
    if kind_a == UNSET or kind_b == UNSET:
        return False
    if kind_a == LARGE or kind_b == LARGE:
        return _with_large(memory, reals, op, target, left, right)
    if BOOLS <= kind_a <= FLOATS or BOOLS <= kind_b <= FLOATS:
        return _arrays(memory, reals, op, target, left, right)
    if kind_a == LIST or kind_a == TUPLE:
        return combine(memory, reals, op, target, left, right)
    # numpy compares its numbers with None and texts by rules that Python does not have.
    numpy = NUMPY_BOOL <= kind_a <= NUMPY_FLOAT or NUMPY_BOOL <= kind_b <= NUMPY_FLOAT
    simple = kind_a < DESCRIPTION and kind_b < DESCRIPTION
    if simple and (not numpy or ACTION in (kind_a, kind_b)) and (op == EQUAL or op == NOT_EQUAL):
        # Of other kinds than numbers, only what is the same is equal; None may stand beside anything.
        same = kind_a == kind_b and (kind_a == NONE or memory[left + 1] == memory[right + 1])
        return set_number(memory, reals, target, BOOL, int(same == (op == EQUAL)), 0.0)
    return False


@compiled
def _with_large(memory: Words, reals: Words, op: int, target: int, left: int, right: int) -> bool:
    """A calculation with a float and a large integer, which Python converts to a float first."""
    kind_a, kind_b = memory[left], memory[right]
    if op > DIVIDE or (kind_a not in (FLOAT, NUMPY_FLOAT) and kind_b not in (FLOAT, NUMPY_FLOAT)):
        return False
    a, x = number_at(memory, reals, kind_a, left + 1)
    b, y = number_at(memory, reals, kind_b, right + 1)
    kind_a, kind_b = FLOAT if kind_a == LARGE else kind_a, FLOAT if kind_b == LARGE else kind_b
    return set_number(memory, reals, target, *calculate(op, kind_a, a, x, kind_b, b, y))


@compiled
def _arrays(memory: Words, reals: Words, op: int, target: int, left: int, right: int) -> bool:
    """A binary operator on an array and an array of the same length or a number."""
    long_a, long_b = length_of(memory, left), length_of(memory, right)
    kind_a, kind_b = memory[left], memory[right]
    if kind_a in (LIST, TUPLE) or kind_b in (LIST, TUPLE) or (long_a >= 0 and long_b >= 0 and long_a != long_b):
        return False
    if target == left and long_a >= 0:
        return False  # an assignment in place changes the array under all its names
    count = max(long_a, long_b)
    kind_a = kind_a - BOOLS + NUMPY_BOOL if long_a >= 0 else kind_a
    kind_b = kind_b - BOOLS + NUMPY_BOOL if long_b >= 0 else kind_b
    kind, _, _ = calculate(op, kind_a, 1, 1.0, kind_b, 1, 1.0)
    if kind == UNSET or (op == POWER and (kind_a == NUMPY_BOOL or kind_b != INT or memory[right + 1] != 2)):
        return False
    first, second = memory[left + 1] >> LENGTH_BITS, memory[right + 1] >> LENGTH_BITS
    # The target may be one of the operands: a number is read before the array is put there.
    a, x = number_at(memory, reals, kind_a, left + 1)
    b, y = number_at(memory, reals, kind_b, right + 1)
    start = new_array(memory, target, kind - NUMPY_BOOL + BOOLS, count)
    if start < 0:
        return False
    for number in range(count):
        if long_a >= 0:
            a, x = number_at(memory, reals, kind_a, first + number)
        if long_b >= 0:
            b, y = number_at(memory, reals, kind_b, second + number)
        if op == POWER:
            made, value, real = calculate(MULTIPLY, kind_a, a, x, kind_a, a, x)
        else:
            made, value, real = calculate(op, kind_a, a, x, kind_b, b, y)
        if made != kind:
            return False
        if kind == NUMPY_FLOAT:
            reals[start + number] = real
        else:
            memory[start + number] = value
    return True


@within
def greater_or_lesser(memory: Words, reals: Words, op: int, target: int, left: int, right: int) -> bool:
    """The greater (lesser) of two numbers; the left one if they are equal."""
    kind_a, kind_b = memory[left], memory[right]
    if kind_a == FLOAT and kind_b == FLOAT:
        x, y = reals[left + 1], reals[right + 1]
        memory[target] = FLOAT
        reals[target + 1] = y if (y > x if op == MAXIMUM else y < x) else x
        return True
    a, x = number_at(memory, reals, kind_a, left + 1)
    b, y = number_at(memory, reals, kind_b, right + 1)
    compared, better, _ = calculate(GREATER if op == MAXIMUM else LESS, kind_b, b, y, kind_a, a, x)
    source = right if better else left
    value = memory[source + 1]
    memory[target] = memory[source]
    memory[target + 1] = value
    return compared != UNSET


@compiled
def is_same(memory: Words, target: int, left: int, right: int) -> bool:
    """Whether two values are the same thing, of which the right one is None, a truth or an action."""
    kind, other = memory[left], memory[right]
    same = kind == other and (kind == NONE or memory[left + 1] == memory[right + 1])
    memory[target] = BOOL
    memory[target + 1] = int(same)
    return kind != UNSET and other in (NONE, BOOL, ACTION)


@compiled
def are_close(memory: Words, reals: Words, target: int, first: int) -> bool:
    """Python's `math.isclose` of two numbers within a relative and an absolute tolerance."""
    for register in range(first, first + 8, 2):
        if memory[register] < BOOL or memory[register] > NUMPY_FLOAT:
            return False
    _, x = number_at(memory, reals, memory[first], first + 1)
    _, y = number_at(memory, reals, memory[first + 2], first + 3)
    _, relative = number_at(memory, reals, memory[first + 4], first + 5)
    _, absolute = number_at(memory, reals, memory[first + 6], first + 7)
    if relative < 0.0 or absolute < 0.0 or not math.isfinite(x) or not math.isfinite(y):
        return False
    apart = abs(x - y)
    close = x == y or apart <= abs(relative * y) or apart <= abs(relative * x) or apart <= absolute
    return set_number(memory, reals, target, BOOL, int(close), 0.0)


@within
def round_to(memory: Words, reals: Words, target: int, register: int, digits: int) -> bool:
    """Python's `round` of a number to some digits after the point."""
    kind, places = memory[register], memory[digits + 1]
    if memory[digits] != INT or places < 0 or places > MOST_DIGITS or kind < BOOL or kind > NUMPY_FLOAT:
        return False
    if kind == FLOAT or kind == NUMPY_FLOAT:
        done, real = rounded(reals[register + 1], places, kind == FLOAT)
        return done and set_number(memory, reals, target, kind, 0, real)
    return kind <= INT and set_number(memory, reals, target, INT, memory[register + 1], 0.0)


@compiled
def clip(memory: Words, reals: Words, target: int, first: int) -> bool:
    """`numpy.clip` of a number; zeros of both signs are left to Python."""
    level = 1
    for register in range(first, first + 6, 2):
        kind = memory[register]
        _, x = number_at(memory, reals, kind, register + 1)
        if (
            kind < BOOL
            or kind > NUMPY_FLOAT
            or kind % 3 == BOOL % 3
            or x != x
            or (x == 0.0 and memory[register + 1] != 0)
        ):
            return False
        level = max(level, (kind - BOOL) % 3)
    a, x = number_at(memory, reals, memory[first], first + 1)
    least, low = number_at(memory, reals, memory[first + 2], first + 3)
    most, high = number_at(memory, reals, memory[first + 4], first + 5)
    if low > high:
        return False
    value, real = min(max(a, least), most), min(max(x, low), high)
    return set_number(memory, reals, target, NUMPY_BOOL + level, value, real)


@compiled
def combinations(memory: Words, target: int, left: int, right: int) -> bool:
    """Python's `math.comb` of two integers."""
    whole, chosen = memory[left + 1], memory[right + 1]
    if memory[left] != INT or memory[right] != INT or whole < 0 or chosen < 0:
        return False
    result = 1 if chosen <= whole else 0
    for number in range(min(chosen, whole - chosen)):
        factor, divisor = whole - number, number + 1
        if float(result) * float(factor) / float(divisor) > LARGEST_WORD:
            return False
        # Divided before it is multiplied, so that no intermediate result is larger than the last one.
        result = result // divisor * factor + result % divisor * factor // divisor
    memory[target] = INT if result <= LARGEST else LARGE
    memory[target + 1] = result
    return True


@compiled
def is_in(memory: Words, reals: Words, target: int, item: int, sequence: int) -> bool:
    """Whether a sequence contains a number, text, action, None or a tuple of these."""
    count, kind = length_of(memory, sequence), memory[item]
    if count < 0 or kind == UNSET or (kind > TEXT and kind != TUPLE) or not may_read(memory, count):
        return False
    if kind == TUPLE and memory[sequence] != LIST and memory[sequence] != TUPLE:
        return False
    a, x = number_at(memory, reals, kind, item + 1)
    number = BOOL <= kind <= NUMPY_FLOAT
    result = 0
    for index in range(count):
        other, word = item_at(memory, sequence, index)
        b, y = number_at(memory, reals, other, word)
        if number and BOOL <= other <= NUMPY_FLOAT:
            if x != x and y != y:  # equal if they are the same object, which is known only to Python
                return False
            result |= int(x == y)
        elif kind == TUPLE and other == TUPLE:
            if not combine(memory, reals, EQUAL, COMPARISON, item, word - 1):
                return False
            result |= memory[COMPARISON + 1]
        elif kind == TUPLE or other > TEXT:
            return False
        else:
            result |= int(other == kind and (kind == NONE or a == b))
    return set_number(memory, reals, target, BOOL, result, 0.0)
