"""The machine that executes compiled strategies as numbers (`lowering`), without Python: many times faster.

It does what Python and numpy do, to the bit, or nothing: whatever raises, is too large, or is not done here, leaves the
player to Python, which plays its game again from the start. All that a strategy can name are the registers of its
player, and sequences on the heap that are checked at each access.
"""

# ruff: noqa: F403, F405, SIM109

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from labmates.workflows.populations.engine.kernel.instructions import *

LEFT = 2
"""An answer: the player is left to Python. 0 and 1 are its moves."""
NEXT_FREE, HEAP_END, ROUNDS, MY_ACTIONS, MY_PAYOFFS, COUNTS, STREAM, KEEPS = range(8)
"""Words of the memory that say where the rest is: `STREAM` is the player's random numbers, 0 if it has none, and
`KEEPS` whether its lists outlive a decision."""
HEAP_WORDS = 1 << 15
"""Heap for a decision, which the next one uses again."""
PARAMETERS = 16
"""Where the registers with the game's parameters are."""
MAKING, DECIDING, INITIAL, LOCALS, FRAME_WORDS, FRAME, RANDOM_WORDS, KEPT_NEXT, KEPT_END, SEEN = range(10)
"""Columns of a player's row: its code, where its first registers are, where those of a decision begin, and how many
words all its registers take; where these are, its random numbers and its heap, which ends where it keeps its own;
and from `SEEN` on where its actions, payoffs and counts of cooperators are."""
PLAYER_COLUMNS = SEEN + 3
_LARGEST = 1 << 53
"""Integers beyond this one are left to Python: up to it they are exact as floats."""
_LENGTH_MASK = (1 << LENGTH_BITS) - 1
_COMPENSATED = sys.version_info >= (3, 12)
_WORDS = 624
Words = Any
"""A pointer to integers or floats; an array would be seven arguments of each function."""
_compiled = njit(cache=True, error_model="numpy", nogil=True)


@_compiled
def _calculate(op: int, tag_a: int, a: int, x: float, tag_b: int, b: int, y: float) -> tuple[int, int, float]:
    """The result of a binary operator on two numbers, each as an integer and a float: its kind, integer and float.

    Its kind is `UNSET` if Python has to do it.
    """
    if tag_a < BOOL or tag_a > NUMPY_FLOAT or tag_b < BOOL or tag_b > NUMPY_FLOAT:
        return UNSET, 0, 0.0
    numpy = NUMPY_BOOL - BOOL if tag_a >= NUMPY_BOOL or tag_b >= NUMPY_BOOL else 0
    level = max((tag_a - BOOL) % 3, (tag_b - BOOL) % 3)
    floats = level == 2
    if LESS <= op <= NOT_EQUAL:
        return BOOL + numpy, int(_compare(op, x, y) if floats else _compare(op, a, b)), 0.0
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
    if floats:
        done, result = _calculate_floats(op, x, y)
        return (FLOAT + numpy, 0, result) if done else (UNSET, 0, 0.0)
    kind, whole, result = _calculate_integers(op, a, b, numpy > 0)
    return (UNSET if kind == UNSET else kind + numpy), whole, result


@_compiled
def _compare(op: int, a: Any, b: Any) -> bool:
    if op == LESS:
        return a < b
    if op == LESS_EQUAL:
        return a <= b
    if op == GREATER:
        return a > b
    if op == GREATER_EQUAL:
        return a >= b
    return a == b if op == EQUAL else a != b


@_compiled
def _calculate_floats(op: int, x: float, y: float) -> tuple[bool, float]:
    if op == ADD:
        return True, x + y
    if op == SUBTRACT:
        return True, x - y
    if op == MULTIPLY:
        return True, x * y
    if op == POWER:
        if x > 0.0 or (x == 0.0 and y > 0.0):
            power = x**y
            return math.isfinite(power), power
        if x < 0.0 and y == math.floor(y) and abs(y) < _LARGEST:
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
    whole = math.floor(quotient) * 1.0
    return True, whole + 1.0 if quotient - whole > 0.5 else whole


@_compiled
def _calculate_integers(op: int, a: int, b: int, numpy: bool) -> tuple[int, int, float]:
    if op == ADD:
        result = a + b
    elif op == SUBTRACT:
        result = a - b
    elif op == MULTIPLY:
        if abs(float(a) * float(b)) > _LARGEST:
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
            if abs(float(result) * float(a)) > _LARGEST:
                return UNSET, 0, 0.0
            result *= a
    else:
        if b == 0:
            return UNSET, 0, 0.0
        result = a // b if op == FLOOR_DIVIDE else a % b
    if result > _LARGEST or result < -_LARGEST:
        return UNSET, 0, 0.0
    return INT, result, 0.0


@_compiled
def _set(memory: Words, reals: Words, register: int, kind: int, value: int, real: float) -> bool:
    memory[register] = kind
    if kind == FLOAT or kind == NUMPY_FLOAT:
        reals[register + 1] = real
    else:
        memory[register + 1] = value
    return kind != UNSET


@_compiled
def _get(memory: Words, reals: Words, kind: int, word: int) -> tuple[int, float]:
    """A number in the memory, as an integer and as a float."""
    if kind == FLOAT or kind == NUMPY_FLOAT:
        return 0, reals[word]
    return memory[word], float(memory[word])


@_compiled
def _allocate(memory: Words, words: int) -> int:
    """Where so many free words begin; -1 if there are not so many."""
    start = memory[NEXT_FREE]
    if words < 0 or start + words > memory[HEAP_END]:
        return -1
    memory[NEXT_FREE] = start + words
    return start


@_compiled
def _length(memory: Words, register: int) -> int:
    """The length of a sequence; -1 if it is none."""
    kind, value = memory[register], memory[register + 1]
    if BOOLS <= kind <= FLOATS:
        return value & _LENGTH_MASK
    return memory[value] if kind == LIST or kind == TUPLE else -1


@_compiled
def _item(memory: Words, register: int, index: int) -> tuple[int, int]:
    """An item's kind, and the word that holds its value; the index is one of the sequence's."""
    kind, value = memory[register], memory[register + 1]
    if BOOLS <= kind <= FLOATS:
        return kind - BOOLS + NUMPY_BOOL, (value >> LENGTH_BITS) + index
    place = memory[value + 2] + 2 * index
    return memory[place], place + 1


@_compiled
def _load(memory: Words, register: int, index: int, target: int) -> bool:
    """Put an item of a sequence into a register."""
    kind, word = _item(memory, register, index)
    value = memory[word]
    memory[target] = kind
    memory[target + 1] = value
    return True


@_compiled
def _new_array(memory: Words, target: int, kind: int, length: int) -> int:
    """Where the items of a new array are; -1 if there is no room."""
    start = _allocate(memory, length)
    if start >= 0:
        memory[target] = kind
        memory[target + 1] = start << LENGTH_BITS | length
    return start


@_compiled
def _new_list(memory: Words, target: int, kind: int, length: int, capacity: int) -> int:
    """Where the items of a new list are; -1 if there is no room."""
    head = _allocate(memory, 3 + 2 * capacity)
    if head < 0:
        return -1
    memory[head] = length
    memory[head + 1] = capacity
    memory[head + 2] = head + 3
    memory[target] = kind
    memory[target + 1] = head
    return head + 3


@_compiled
def _append(memory: Words, register: int, item: int) -> bool:
    if memory[register] != LIST or memory[item] == UNSET or memory[item] == HISTORY:
        return False
    head = memory[register + 1]
    length, capacity = memory[head], memory[head + 1]
    if length == capacity:
        start = _allocate(memory, 4 * capacity + 8)
        if start < 0:
            return False
        for word in range(2 * length):
            memory[start + word] = memory[memory[head + 2] + word]
        memory[head + 1] = 2 * capacity + 4
        memory[head + 2] = start
    place = memory[head + 2] + 2 * length
    memory[place] = memory[item]
    memory[place + 1] = memory[item + 1]
    memory[head] = length + 1
    return True


@_compiled
def _index(memory: Words, register: int, index: int) -> int:
    """The place in a sequence that an index names; -1 if there is none."""
    length = _length(memory, register)
    if memory[index] not in (INT, NUMPY_INT, BOOL) or length < 0:
        return -1
    place = memory[index + 1]
    if place < 0:
        place += length
    return place if 0 <= place < length else -1


@_compiled
def _slice(memory: Words, target: int, register: int, bounds: int) -> bool:
    """A slice with the step 1 or -1 of a sequence."""
    length = _length(memory, register)
    step = 1
    if memory[bounds + 4] != NONE:
        if memory[bounds + 4] != INT:
            return False
        step = memory[bounds + 5]
    if length < 0 or abs(step) != 1:
        return False
    start, stop = (0, length) if step == 1 else (length - 1, -1)
    for which in range(2):
        place = bounds + 2 * which
        if memory[place] == NONE:
            continue
        if memory[place] != INT and memory[place] != NUMPY_INT:
            return False
        bound = memory[place + 1]
        if bound < 0:
            bound = max(bound + length, 0 if step == 1 else -1)
        bound = min(bound, length if step == 1 else length - 1)
        if which == 0:
            start = bound
        else:
            stop = bound
    count = max(0, (stop - start) * step)
    kind, value = memory[register], memory[register + 1]
    if step == 1 and kind != LIST and kind != TUPLE:
        memory[target] = kind
        memory[target + 1] = (value >> LENGTH_BITS) + start << LENGTH_BITS | count
        return True
    return _copied(memory, target, register, start, step, count)


@_compiled
def _copied(memory: Words, target: int, register: int, start: int, step: int, count: int) -> bool:
    """A new sequence with some items of another one."""
    kind, value = memory[register], memory[register + 1]
    if kind == LIST or kind == TUPLE:
        place = _new_list(memory, target, kind, count, count)
        if place < 0:
            return False
        for number in range(count):
            source = memory[value + 2] + 2 * (start + number * step)
            memory[place + 2 * number] = memory[source]
            memory[place + 2 * number + 1] = memory[source + 1]
        return True
    place = _new_array(memory, target, kind, count)
    for number in range(count if place >= 0 else 0):
        memory[place + number] = memory[(value >> LENGTH_BITS) + start + number * step]
    return place >= 0


@_compiled
def _binary(memory: Words, reals: Words, op: int, target: int, left: int, right: int) -> bool:
    """A binary operator on any two values."""
    kind_a, kind_b = memory[left], memory[right]
    if BOOL <= kind_a <= NUMPY_FLOAT and BOOL <= kind_b <= NUMPY_FLOAT:
        a, x = _get(memory, reals, kind_a, left + 1)
        b, y = _get(memory, reals, kind_b, right + 1)
        kind, value, real = _calculate(op, kind_a, a, x, kind_b, b, y)
        return _set(memory, reals, target, kind, value, real)
    if kind_a == UNSET or kind_b == UNSET:
        return False
    if BOOLS <= kind_a <= FLOATS or BOOLS <= kind_b <= FLOATS:
        return _arrays(memory, reals, op, target, left, right)
    # numpy compares its numbers with None and texts in a way of its own.
    numpy = NUMPY_BOOL <= kind_a <= NUMPY_FLOAT or NUMPY_BOOL <= kind_b <= NUMPY_FLOAT
    simple = kind_a < DESCRIPTION and kind_b < DESCRIPTION
    if simple and (not numpy or ACTION in (kind_a, kind_b)) and (op == EQUAL or op == NOT_EQUAL):
        # Of other kinds than numbers, only what is the same is equal; None may stand beside anything.
        same = kind_a == kind_b and (kind_a == NONE or memory[left + 1] == memory[right + 1])
        return _set(memory, reals, target, BOOL, int(same == (op == EQUAL)), 0.0)
    return False


@_compiled
def _arrays(memory: Words, reals: Words, op: int, target: int, left: int, right: int) -> bool:
    """A binary operator on an array and an array of the same length or a number."""
    long_a, long_b = _length(memory, left), _length(memory, right)
    kind_a, kind_b = memory[left], memory[right]
    if kind_a in (LIST, TUPLE) or kind_b in (LIST, TUPLE) or (long_a >= 0 and long_b >= 0 and long_a != long_b):
        return False
    if target == left and long_a >= 0:
        return False  # an assignment in place changes the array under all its names
    count = max(long_a, long_b)
    kind_a = kind_a - BOOLS + NUMPY_BOOL if long_a >= 0 else kind_a
    kind_b = kind_b - BOOLS + NUMPY_BOOL if long_b >= 0 else kind_b
    kind, _, _ = _calculate(op, kind_a, 1, 1.0, kind_b, 1, 1.0)
    if kind == UNSET or (op == POWER and (long_b >= 0 or kind_b != INT or memory[right + 1] != 2)):
        return False
    first, second = memory[left + 1] >> LENGTH_BITS, memory[right + 1] >> LENGTH_BITS
    # The target may be one of the operands: a number is read before the array is put there.
    a, x = _get(memory, reals, kind_a, left + 1)
    b, y = _get(memory, reals, kind_b, right + 1)
    start = _new_array(memory, target, kind - NUMPY_BOOL + BOOLS, count)
    if start < 0:
        return False
    for number in range(count):
        if long_a >= 0:
            a, x = _get(memory, reals, kind_a, first + number)
        if long_b >= 0:
            b, y = _get(memory, reals, kind_b, second + number)
        if op == POWER:
            made, value, real = _calculate(MULTIPLY, kind_a, a, x, kind_a, a, x)
        else:
            made, value, real = _calculate(op, kind_a, a, x, kind_b, b, y)
        if made != kind:
            return False
        if kind == NUMPY_FLOAT:
            reals[start + number] = real
        else:
            memory[start + number] = value
    return True


@_compiled
def _truth(memory: Words, reals: Words, register: int) -> int:
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
    if kind == LIST or kind == TUPLE:
        return int(_length(memory, register) > 0)
    return 1 if kind <= HISTORY else -1


@_compiled
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


@_compiled
def _as_array(memory: Words, target: int, register: int) -> bool:
    """What numpy makes of a sequence of numbers of one level."""
    kind = memory[register]
    if BOOLS <= kind <= FLOATS:
        memory[target] = kind
        memory[target + 1] = memory[register + 1]
        return True
    count = _length(memory, register)
    level = 2 if count == 0 else -1
    for number in range(count):
        kind, _ = _item(memory, register, number)
        if kind < BOOL or kind > NUMPY_FLOAT or level not in (-1, (kind - BOOL) % 3):
            return False
        level = (kind - BOOL) % 3
    source = memory[register + 1]
    start = _new_array(memory, target, BOOLS + level, count) if count >= 0 else -1
    for number in range(count if start >= 0 else 0):
        memory[start + number] = memory[memory[source + 2] + 2 * number + 1]
    return start >= 0


@_compiled
def _as_kind(memory: Words, reals: Words, target: int, register: int, wanted: int) -> bool:
    """An array of another kind (`BOOLS` and so on), or a number of numpy's."""
    kind = memory[register]
    if NUMPY_BOOL <= kind <= NUMPY_FLOAT:
        a, x = _get(memory, reals, kind, register + 1)
        return _set(memory, reals, target, *_converted(wanted - BOOLS + NUMPY_BOOL, kind, a, x))
    if kind < BOOLS or kind > FLOATS:
        return False
    count, source = _length(memory, register), memory[register + 1] >> LENGTH_BITS
    start = _new_array(memory, target, wanted, count)
    if start < 0:
        return False
    for number in range(count):
        a, x = _get(memory, reals, kind - BOOLS + NUMPY_BOOL, source + number)
        made, value, real = _converted(wanted - BOOLS + NUMPY_BOOL, kind - BOOLS + NUMPY_BOOL, a, x)
        if made == UNSET:
            return False
        if made == NUMPY_FLOAT:
            reals[start + number] = real
        else:
            memory[start + number] = value
    return True


@_compiled
def _converted(wanted: int, kind: int, value: int, real: float) -> tuple[int, int, float]:
    """A number as another kind; `UNSET` if Python has to do it."""
    level = (wanted - BOOL) % 3
    from_float = kind == FLOAT or kind == NUMPY_FLOAT
    if level == 2:
        return wanted, 0, real
    if level == 0:
        return wanted, int(real != 0.0 if from_float else value != 0), 0.0
    if not from_float:
        return wanted, value, 0.0
    if not abs(real) <= _LARGEST:
        return UNSET, 0, 0.0
    return wanted, int(real), 0.0


@_compiled
def _extreme(memory: Words, reals: Words, target: int, register: int, op: int) -> bool:
    """The first item that no other is greater (less) than, as Python's `max` and `min`."""
    count = _length(memory, register)
    if count <= 0:
        return False
    best, word = _item(memory, register, 0)
    for number in range(1, count):
        kind, place = _item(memory, register, number)
        a, x = _get(memory, reals, kind, place)
        b, y = _get(memory, reals, best, word)
        compared, better, _ = _calculate(op, kind, a, x, best, b, y)
        if compared == UNSET:
            return False
        if better:
            best, word = kind, place
    value = memory[word]
    memory[target] = best
    memory[target + 1] = value
    return True


@_compiled
def _sum(memory: Words, reals: Words, target: int, register: int) -> bool:
    """Python's `sum`."""
    count = _length(memory, register)
    total, whole, real = INT, 0, 0.0
    for number in range(count):
        kind, word = _item(memory, register, number)
        a, x = _get(memory, reals, kind, word)
        if _COMPENSATED and kind == FLOAT:
            return False
        total, whole, real = _calculate(ADD, total, whole, float(whole) if total % 3 != 1 else real, kind, a, x)
        if total == UNSET:
            return False
    return count >= 0 and _set(memory, reals, target, total, whole, real)


@_compiled
def _every(memory: Words, reals: Words, register: int, wanted: int) -> int:
    """Whether each item of a sequence is as true as `wanted`; -1 if Python has to say."""
    count = _length(memory, register)
    for number in range(count):
        kind, word = _item(memory, register, number)
        if kind > TEXT or kind == UNSET:
            return -1
        a, x = _get(memory, reals, kind, word)
        true = kind != NONE and (x != 0.0 if kind == FLOAT or kind == NUMPY_FLOAT else a != 0)
        if int(true) != wanted:
            return 0
    return 1 if count >= 0 else -1


@_compiled
def _reduced(memory: Words, reals: Words, function: int, target: int, register: int) -> bool:
    """What numpy makes of all numbers of a sequence."""
    if not _as_array(memory, target, register):
        return False
    kind, value = memory[target], memory[target + 1]
    start, count = value >> LENGTH_BITS, value & _LENGTH_MASK
    if count > 128:
        return False
    if function in (NUMPY_ALL, NUMPY_ANY):
        every = _every(memory, reals, target, int(function == NUMPY_ALL))
        return _set(memory, reals, target, NUMPY_BOOL, every if function == NUMPY_ALL else 1 - every, 0.0)
    if function in (NUMPY_MAX, NUMPY_MIN):
        for place in range(start, start + count):
            if kind == FLOATS and reals[place] != reals[place]:
                return False
        return _extreme(memory, reals, target, target, GREATER if function == NUMPY_MAX else LESS)
    whole, real = 0, 0.0
    if kind == FLOATS:
        real = _sum_floats(reals, start, count) + 0.0
    else:
        for place in range(start, start + count):
            whole += memory[place]
        real = float(whole)
    if function == NUMPY_SUM:
        return _set(memory, reals, target, NUMPY_FLOAT if kind == FLOATS else NUMPY_INT, whole, real)
    if abs(real) > _LARGEST or count == 0:
        return False
    mean = real / count
    if function == NUMPY_MEAN:
        return _set(memory, reals, target, NUMPY_FLOAT, 0, mean)
    squares = _allocate(memory, count)
    if squares < 0:
        return False
    for number in range(count):
        _, x = _get(memory, reals, kind - BOOLS + NUMPY_BOOL, start + number)
        reals[squares + number] = (x - mean) * (x - mean)
    variance = _sum_floats(reals, squares, count) / count
    return _set(memory, reals, target, NUMPY_FLOAT, 0, math.sqrt(variance) if function == NUMPY_STD else variance)


@_compiled
def _median(memory: Words, reals: Words, target: int, register: int) -> bool:
    """The mean of the two middle numbers of an array, or the one in the middle."""
    if not _as_array(memory, target, register):
        return False
    kind, count = memory[target], _length(memory, target)
    source, ordered = memory[target + 1] >> LENGTH_BITS, _allocate(memory, count)
    if kind == BOOLS or count == 0 or count > 128 or ordered < 0:
        return False
    for number in range(count):
        _, x = _get(memory, reals, kind - BOOLS + NUMPY_BOOL, source + number)
        if x != x:
            return False
        place = ordered + number
        while place > ordered and reals[place - 1] > x:
            reals[place] = reals[place - 1]
            place -= 1
        reals[place] = x
    middle = ordered + count // 2
    median = reals[middle] if count % 2 else (reals[middle - 1] + reals[middle]) / 2.0
    return _set(memory, reals, target, NUMPY_FLOAT, 0, median)


@_compiled
def _call(memory: Words, reals: Words, function: int, target: int, register: int) -> bool:
    """A function of one argument."""
    kind = memory[register]
    if function == LEN:
        length = _length(memory, register)
        return length >= 0 and _set(memory, reals, target, INT, length, 0.0)
    if function in (NOT, BOOL_OF):
        truth = _truth(memory, reals, register)
        return truth >= 0 and _set(memory, reals, target, BOOL, truth if function == BOOL_OF else 1 - truth, 0.0)
    if BOOL <= kind <= NUMPY_FLOAT:
        return _call_number(memory, reals, function, target, register)
    if kind == ACTION and function == INT_OF:
        return _set(memory, reals, target, INT, memory[register + 1], 0.0)
    if _length(memory, register) < 0:
        return False
    if function == SUM:
        return _sum(memory, reals, target, register)
    if function in (MAX, MIN):
        return _extreme(memory, reals, target, register, GREATER if function == MAX else LESS)
    if function in (ALL, ANY):
        every = _every(memory, reals, register, int(function == ALL))
        return every >= 0 and _set(memory, reals, target, BOOL, every if function == ALL else 1 - every, 0.0)
    if NUMPY_SUM <= function <= NUMPY_VAR:
        return _reduced(memory, reals, function, target, register)
    if function == NUMPY_MEDIAN:
        return _median(memory, reals, target, register)
    if function == NUMPY_ARRAY:
        return _as_array(memory, target, register)  # no array ever changes, so that it needs no copy
    if AS_BOOLS <= function <= AS_FLOATS:
        return _as_kind(memory, reals, target, register, BOOLS + function - AS_BOOLS)
    if function == REVERSED:
        count = _length(memory, register)
        return _copied(memory, target, register, count - 1, -1, count)
    if function in (LIST_OF, TO_LIST):
        return _listed(memory, target, register, function == TO_LIST)
    if BOOLS <= kind <= FLOATS and function in (NEGATIVE, INVERT):
        return _call_array(memory, reals, function, target, register)
    return False


@_compiled
def _listed(memory: Words, target: int, register: int, python: bool) -> bool:
    """A list of the items of a sequence; with `python`, of Python's numbers."""
    if memory[register] >= LIST and python:
        return False
    count = _length(memory, register)
    kind, source = memory[register], memory[register + 1]
    arrays = kind < LIST
    start = _new_list(memory, target, LIST, count, count)
    if start < 0:
        return False
    for number in range(count):
        if arrays:
            memory[start + 2 * number] = kind - BOOLS + (BOOL if python else NUMPY_BOOL)
            memory[start + 2 * number + 1] = memory[(source >> LENGTH_BITS) + number]
        else:
            memory[start + 2 * number] = memory[memory[source + 2] + 2 * number]
            memory[start + 2 * number + 1] = memory[memory[source + 2] + 2 * number + 1]
    return True


@_compiled
def _call_array(memory: Words, reals: Words, function: int, target: int, register: int) -> bool:
    """The negative or the opposite of each item of an array."""
    kind, count = memory[register], _length(memory, register)
    source = memory[register + 1] >> LENGTH_BITS
    if (function == INVERT) != (kind == BOOLS):
        return False
    start = _new_array(memory, target, kind, count)
    for number in range(count if start >= 0 else 0):
        if kind == FLOATS:
            reals[start + number] = -reals[source + number]
        else:
            memory[start + number] = 1 - memory[source + number] if kind == BOOLS else -memory[source + number]
    return start >= 0


@_compiled
def _call_number(memory: Words, reals: Words, function: int, target: int, register: int) -> bool:
    """A function of a number."""
    kind = memory[register]
    value, real = _get(memory, reals, kind, register + 1)
    floats = kind == FLOAT or kind == NUMPY_FLOAT
    if function == INT_OF:
        return _set(memory, reals, target, *_converted(INT, kind, value, real))
    if function == FLOAT_OF:
        return _set(memory, reals, target, FLOAT, 0, real)
    if AS_BOOLS <= function <= AS_FLOATS:
        return kind >= NUMPY_BOOL and _as_kind(memory, reals, target, register, BOOLS + function - AS_BOOLS)
    if function == NUMPY_ALL or function == NUMPY_ANY:
        return _set(memory, reals, target, NUMPY_BOOL, int(real != 0.0), 0.0)
    if function in (NEGATIVE, POSITIVE, ABS):
        if kind == NUMPY_BOOL:
            return False
        sign = -1 if function == NEGATIVE or (function == ABS and real < 0.0) else 1
        if floats:
            changed = -real if function == NEGATIVE else abs(real) if function == ABS else real
            return _set(memory, reals, target, kind, 0, changed)
        return _set(memory, reals, target, INT if kind == BOOL else kind, sign * value, 0.0)
    if function == INVERT:
        return kind == NUMPY_BOOL and _set(memory, reals, target, NUMPY_BOOL, 1 - value, 0.0)
    if MATH_CEIL <= function <= MATH_TRUNC or function == ROUND:
        if not floats:
            return (function != ROUND or kind <= INT) and _set(memory, reals, target, INT, value, 0.0)
        if not abs(real) <= _LARGEST:
            return False
        if function == MATH_CEIL:
            real = math.ceil(real) * 1.0
        elif function == MATH_FLOOR:
            real = math.floor(real) * 1.0
        elif function == ROUND:
            real = np.rint(real)
        return _set(memory, reals, target, INT, int(real), 0.0)
    if function == MATH_SQRT:
        return real >= 0.0 and _set(memory, reals, target, FLOAT, 0, math.sqrt(real))
    if function == MATH_ISFINITE:
        return _set(memory, reals, target, BOOL, int(math.isfinite(real)), 0.0)
    if function == MATH_ISNAN:
        return _set(memory, reals, target, BOOL, int(math.isnan(real)), 0.0)
    if function == MATH_ISINF:
        return _set(memory, reals, target, BOOL, int(math.isinf(real)), 0.0)
    return False


@_compiled
def _attribute(memory: Words, target: int, register: int, name: int) -> bool:
    """An attribute; the target is unset if there is none, and False if Python has to say."""
    kind, length = memory[register], _length(memory, register)
    memory[target] = UNSET
    if kind == DESCRIPTION:
        if name < N_PARAMETERS:
            memory[target] = memory[PARAMETERS + 2 * name]
            memory[target + 1] = memory[PARAMETERS + 2 * name + 1]
        return True
    if kind == HISTORY:
        rounds = memory[ROUNDS]
        if name == ROUND_NUMBER:
            memory[target] = INT
            memory[target + 1] = rounds
        elif ARRAY_NAMES <= name < ARRAY_NAMES + 3:
            which = name - ARRAY_NAMES
            memory[target] = BOOLS if which == 0 else FLOATS if which == 1 else INTS
            memory[target + 1] = memory[MY_ACTIONS + which] << LENGTH_BITS | rounds
        return True
    if name == SIZE and BOOLS <= kind <= FLOATS:
        memory[target] = INT
        memory[target + 1] = length
        return True
    if name == VALUE and kind == ACTION:
        memory[target + 1] = memory[register + 1]
        memory[target] = INT
        return True
    return False


@_compiled
def _twist(memory: Words, stream: int) -> None:
    """The next words of the Mersenne twister."""
    for place in range(_WORDS):
        mixed = (memory[stream + place] & 0x80000000) | (memory[stream + (place + 1) % _WORDS] & 0x7FFFFFFF)
        word = memory[stream + (place + 397) % _WORDS] ^ (mixed >> 1)
        memory[stream + place] = word ^ 0x9908B0DF if mixed & 1 else word
    memory[stream + _WORDS] = 0


@_compiled
def _seed(memory: Words, stream: int) -> None:
    """Seed the twister as Python does, by the number in its first word."""
    key = memory[stream]
    word = 19650218
    memory[stream] = word
    for place in range(1, _WORDS):
        word = (1812433253 * (word ^ (word >> 30)) + place) & 0xFFFFFFFF
        memory[stream + place] = word
    place = 1
    for _ in range(_WORDS):
        before = memory[stream + place - 1]
        mixed = ((before ^ (before >> 30)) * 1664525) & 0xFFFFFFFF
        memory[stream + place] = ((memory[stream + place] ^ mixed) + key) & 0xFFFFFFFF
        place += 1
        if place >= _WORDS:
            memory[stream] = memory[stream + _WORDS - 1]
            place = 1
    for _ in range(_WORDS - 1):
        before = memory[stream + place - 1]
        mixed = ((before ^ (before >> 30)) * 1566083941) & 0xFFFFFFFF
        memory[stream + place] = ((memory[stream + place] ^ mixed) - place) & 0xFFFFFFFF
        place += 1
        if place >= _WORDS:
            memory[stream] = memory[stream + _WORDS - 1]
            place = 1
    memory[stream] = 0x80000000
    memory[stream + _WORDS] = _WORDS


@_compiled
def _bits(memory: Words) -> int:
    """The player's next 32 random bits."""
    stream = memory[STREAM]
    if memory[stream + _WORDS] < 0:
        _seed(memory, stream)
    if memory[stream + _WORDS] >= _WORDS:
        _twist(memory, stream)
    word = memory[stream + memory[stream + _WORDS]]
    memory[stream + _WORDS] += 1
    word ^= word >> 11
    word ^= (word << 7) & 0x9D2C5680
    word ^= (word << 15) & 0xEFC60000
    return word ^ (word >> 18)


@_compiled
def _random_below(memory: Words, target: int, register: int) -> bool:
    """An integer below another, as Python draws it."""
    end = memory[register + 1]
    if memory[register] != INT or end <= 0 or end > 0x7FFFFFFF or memory[STREAM] == 0:
        return False
    width = 0
    while end >> width:
        width += 1
    drawn = _bits(memory) >> (32 - width)
    while drawn >= end:
        drawn = _bits(memory) >> (32 - width)
    memory[target] = INT
    memory[target + 1] = drawn
    return True


@_compiled
def _begin_range(memory: Words, first: int) -> bool:
    """Check the start, stop and step of a range; the start counts from now on."""
    for place in range(first, first + 6, 2):
        if memory[place] not in (INT, NUMPY_INT, BOOL):
            return False
    memory[first] = INT
    return memory[first + 5] != 0


@_compiled
def _contains(memory: Words, reals: Words, target: int, item: int, sequence: int) -> bool:
    """Whether a sequence contains a number, text, action or None."""
    count, kind = _length(memory, sequence), memory[item]
    if count < 0 or kind == UNSET or kind > TEXT:
        return False
    a, x = _get(memory, reals, kind, item + 1)
    number = BOOL <= kind <= NUMPY_FLOAT
    result = 0
    for index in range(count):
        other, word = _item(memory, sequence, index)
        b, y = _get(memory, reals, other, word)
        if number and BOOL <= other <= NUMPY_FLOAT:
            result |= int(x == y)
        elif other > TEXT:
            return False
        else:
            result |= int(other == kind and (kind == NONE or a == b))
    return _set(memory, reals, target, BOOL, result, 0.0)


@_compiled
def _is(memory: Words, target: int, left: int, right: int) -> bool:
    """Whether two values are the same thing, of which the right one is None, a truth or an action."""
    kind, other = memory[left], memory[right]
    same = kind == other and (kind == NONE or memory[left + 1] == memory[right + 1])
    memory[target] = BOOL
    memory[target + 1] = int(same)
    return kind != UNSET and other in (NONE, BOOL, ACTION)


@_compiled
def _is_close(memory: Words, reals: Words, target: int, first: int) -> bool:
    """Python's `math.isclose` of two numbers within a relative and an absolute tolerance."""
    for register in range(first, first + 8, 2):
        if memory[register] < BOOL or memory[register] > NUMPY_FLOAT:
            return False
    _, x = _get(memory, reals, memory[first], first + 1)
    _, y = _get(memory, reals, memory[first + 2], first + 3)
    _, relative = _get(memory, reals, memory[first + 4], first + 5)
    _, absolute = _get(memory, reals, memory[first + 6], first + 7)
    if relative < 0.0 or absolute < 0.0 or not math.isfinite(x) or not math.isfinite(y):
        return False
    apart = abs(x - y)
    close = x == y or apart <= abs(relative * y) or apart <= abs(relative * x) or apart <= absolute
    return _set(memory, reals, target, BOOL, int(close), 0.0)


@_compiled
def _combinations(memory: Words, target: int, left: int, right: int) -> bool:
    """Python's `math.comb` of two integers."""
    whole, chosen = memory[left + 1], memory[right + 1]
    if memory[left] != INT or memory[right] != INT or whole < 0 or chosen < 0:
        return False
    result = 1 if chosen <= whole else 0
    for number in range(min(chosen, whole - chosen)):
        if float(result) * float(whole - number) > _LARGEST:
            return False
        result = result * (whole - number) // (number + 1)
    memory[target] = INT
    memory[target + 1] = result
    return True


@_compiled
def _pop(memory: Words, target: int, register: int, from_front: int) -> bool:
    """Take the first or the last item from a list."""
    head = memory[register + 1]
    if memory[register] != LIST or memory[head] == 0:
        return False
    if from_front:
        _load(memory, register, 0, target)
        memory[head + 1] -= 1
        memory[head + 2] += 2
    else:
        _load(memory, register, memory[head] - 1, target)
    memory[head] -= 1
    return True


@_compiled
def _is_quick(op: int, kind_a: int, kind_b: int) -> bool:
    """Whether two numbers are compared, which are exact as floats, or are added or subtracted as floats."""
    if kind_a < BOOL or kind_a > NUMPY_FLOAT or kind_b < BOOL or kind_b > NUMPY_FLOAT:
        return False
    return op >= LESS or (op <= SUBTRACT and (kind_a % 3 == 1 or kind_b % 3 == 1))


@_compiled
def _execute(code: Any, at: int, memory: Words, reals: Words, frame: int) -> int:
    """Execute instructions until there is an answer: 0 and 1 are moves; `LEFT`."""
    for _ in range(INSTRUCTION_LIMIT):
        here = 4 * at
        op = code[here]
        first, second, third = frame + code[here + 1], frame + code[here + 2], frame + code[here + 3]
        at += 1
        if op <= NOT_EQUAL:
            kind_a, kind_b = memory[second], memory[third]
            if kind_a == INT and kind_b == INT and op <= MULTIPLY:
                a, b = memory[second + 1], memory[third + 1]
                if op == MULTIPLY:
                    if abs(float(a) * float(b)) > _LARGEST:
                        return LEFT
                    result = a * b
                else:
                    result = a + b if op == ADD else a - b
                if result > _LARGEST or result < -_LARGEST:
                    return LEFT
                memory[first] = INT
                memory[first + 1] = result
            elif _is_quick(op, kind_a, kind_b):
                numpy = kind_a >= NUMPY_BOOL or kind_b >= NUMPY_BOOL
                x = reals[second + 1] if kind_a % 3 == 1 else float(memory[second + 1])
                y = reals[third + 1] if kind_b % 3 == 1 else float(memory[third + 1])
                if op >= LESS:
                    memory[first] = NUMPY_BOOL if numpy else BOOL
                    memory[first + 1] = int(_compare(op, x, y))
                else:
                    memory[first] = NUMPY_FLOAT if numpy else FLOAT
                    reals[first + 1] = x + y if op == ADD else x - y
            elif not _binary(memory, reals, op, first, second, third):
                return LEFT
        elif op == JUMP_FALSE or op == JUMP_TRUE:
            kind = memory[first]
            truth = memory[first + 1] != 0 if kind in (BOOL, NUMPY_BOOL) else _truth(memory, reals, first)
            if truth < 0:
                return LEFT
            if (truth > 0) == (op == JUMP_TRUE):
                at += code[here + 2]
        elif op == MOVE:
            if memory[second] == UNSET:
                return LEFT
            value = memory[second + 1]
            memory[first] = memory[second]
            memory[first + 1] = value
        elif op == STORE:
            kind, value = memory[second], memory[second + 1]
            if kind == UNSET or (kind >= HISTORY and not (kind >= LIST and memory[KEEPS])):
                return LEFT
            memory[first] = kind
            memory[first + 1] = value
        elif op == JUMP:
            at += code[here + 1]
        elif op == ITEM:
            index = _index(memory, second, third)
            if index < 0:
                return LEFT
            _load(memory, second, index, first)
        elif op == ANSWER:
            return memory[first + 1] if memory[first] == ACTION else LEFT
        elif op == ATTRIBUTE:
            if not _attribute(memory, first, second, code[here + 3]) or memory[first] == UNSET:
                return LEFT
        elif op == CALL:
            if not _call(memory, reals, code[here + 3], first, second):
                return LEFT
        elif op == MAXIMUM or op == MINIMUM:
            if not _choose(memory, reals, op, first, second, third):
                return LEFT
        elif op == RANGE_NEXT:
            step = memory[first + 5]
            if memory[first] != INT:
                return LEFT
            if (memory[first + 1] < memory[first + 3]) if step > 0 else (memory[first + 1] > memory[first + 3]):
                memory[second] = INT
                memory[second + 1] = memory[first + 1]
                memory[first + 1] += step
            else:
                at += code[here + 3]
        elif op == NEXT:
            length, index = _length(memory, first), memory[first + 3]
            if length < 0 or memory[first + 2] != INT or index < 0:
                return LEFT
            if index < length:
                memory[first + 3] = index + 1
                _load(memory, first, index, second)
            else:
                at += code[here + 3]
        elif not _execute_rare(op, code[here + 3], memory, reals, first, second, third):
            if op == END:
                return 0
            if op != JUMP_SET:
                return LEFT
            at += code[here + 2]
    return LEFT


@_compiled
def _choose(memory: Words, reals: Words, op: int, target: int, left: int, right: int) -> bool:
    """The greater (lesser) of two numbers; the left one if they are equal."""
    kind_a, kind_b = memory[left], memory[right]
    a, x = _get(memory, reals, kind_a, left + 1)
    b, y = _get(memory, reals, kind_b, right + 1)
    compared, better, _ = _calculate(GREATER if op == MAXIMUM else LESS, kind_b, b, y, kind_a, a, x)
    source = right if better else left
    value = memory[source + 1]
    memory[target] = memory[source]
    memory[target + 1] = value
    return compared != UNSET


@_compiled
def _execute_rare(op: int, number: int, memory: Words, reals: Words, first: int, second: int, third: int) -> bool:
    """An instruction that is rare; False if Python has to do it, or a jump is to be taken."""
    if op == BIT_AND or op == BIT_OR or op == SUM_ADD:
        if op == SUM_ADD and _COMPENSATED and memory[third] == FLOAT:
            return False
        return _binary(memory, reals, ADD if op == SUM_ADD else op, first, second, third)
    if op == IS:
        return _is(memory, first, second, third)
    if op == SLICE:
        return _slice(memory, first, second, third)
    if op == APPEND:
        return _append(memory, first, second)
    if op == NEW_LIST or op == NEW_TUPLE:
        start = _new_list(memory, first, LIST if op == NEW_LIST else TUPLE, number, number)
        for word in range(0, 2 * number if start >= 0 else 0, 2):
            if memory[second + word] == HISTORY:
                return False
            memory[start + word] = memory[second + word]
            memory[start + word + 1] = memory[second + word + 1]
        return start >= 0
    if op == IS_KIND:
        return memory[second] != UNSET and _set(memory, reals, first, BOOL, number >> memory[second] & 1, 0.0)
    if op == IS_CLOSE:
        return _is_close(memory, reals, first, second)
    if op == POP:
        return _pop(memory, first, second, number)
    if op == COMBINATIONS:
        return _combinations(memory, first, second, third)
    if op == RANGE:
        return _begin_range(memory, first)
    if op == RANDOM:
        if memory[STREAM] == 0:
            return False
        high, low = _bits(memory) >> 5, _bits(memory) >> 6
        return _set(memory, reals, first, FLOAT, 0, (high * 67108864.0 + low) * (1.0 / 9007199254740992.0))
    if op == RANDOM_BELOW:
        return _random_below(memory, first, second)
    if op == UNSET_REGISTER:
        memory[first] = UNSET
        return True
    if op == JUMP_SET:
        return memory[first] == UNSET
    if op == ATTRIBUTE_OR_UNSET:
        return _attribute(memory, first, second, number)
    if op == SET_ITEM:
        index = _index(memory, first, second)
        if memory[first] != LIST or index < 0 or memory[third] == UNSET or memory[third] == HISTORY:
            return False
        place = memory[memory[first + 1] + 2] + 2 * index
        memory[place] = memory[third]
        memory[place + 1] = memory[third + 1]
        return True
    return op == CONTAINS and _contains(memory, reals, first, second, third)


@intrinsic
def _pointer(_context: Any, array: Any) -> Any:
    """A pointer to the first item of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    pointer: Any = types.CPointer
    return pointer(array.dtype)(array), generate


_POINTER: Any = _pointer


@_compiled
def decide(
    code: Any, initial: Any, memory_array: Any, players: Any, asked: Any, rounds: int, stocks: Any, answers: Any
) -> None:
    """Let players decide.

    Parameters
    ----------
    code
        Instructions of all strategies, ``(instructions, 4)``.
    initial
        The first registers of all strategies.
    memory_array
        All words that players use.
    players
        A row for each; see `FRAME` and the other columns.
    asked
        The rows of those who decide.
    rounds
        How many have been played.
    stocks
        What each player is told is in the pool; empty in a game without one.
    answers
        One for each who decides, to be filled: 0, 1 or `LEFT`.
    """
    instructions = _POINTER(code)
    memory, reals = _POINTER(memory_array), _POINTER(memory_array.view(np.float64))
    memory[ROUNDS] = rounds
    for place in range(len(asked)):
        player = asked[place]
        row = players[player]
        frame = row[FRAME]
        memory[STREAM] = row[RANDOM_WORDS]
        memory[KEEPS] = int(row[KEPT_END] > 0)
        memory[NEXT_FREE] = row[KEPT_NEXT]
        memory[HEAP_END] = row[KEPT_END] if memory[KEEPS] else row[KEPT_NEXT] + HEAP_WORDS
        for which in range(3):
            memory[MY_ACTIONS + which] = row[SEEN + which]
        first = frame + row[LOCALS]
        if rounds == 0:
            for word in range(row[LOCALS]):
                memory[frame + word] = initial[row[INITIAL] + word]
            memory[first] = DESCRIPTION
            if _execute(instructions, row[MAKING], memory, reals, frame) == LEFT:
                answers[place] = LEFT
                continue
        # What an earlier decision has left here names sequences that are no more.
        for register in range(first, frame + row[FRAME_WORDS], 2):
            memory[register] = UNSET
        memory[first] = HISTORY
        if len(stocks):
            memory[first + 2] = NUMPY_FLOAT if rounds else INT
            if rounds:
                reals[first + 3] = stocks[player]
            else:
                memory[first + 3] = int(stocks[player])
        answers[place] = _execute(instructions, row[DECIDING], memory, reals, frame)
        if memory[KEEPS]:
            row[KEPT_NEXT] = memory[NEXT_FREE]
