"""Sequences of the machine that are made of others: joined, repeated, sorted, chosen by truths; and their order."""

# ruff: noqa: F403, F405, SIM109

from __future__ import annotations

from labmates_fast.instructions import *
from labmates_fast.machine.compiling import compiled
from labmates_fast.machine.layout import *
from labmates_fast.machine.memory import length_of, listed, may_read, new_array, new_list, number_at, set_number
from labmates_fast.machine.numbers import compare


@compiled
def combine(memory: Words, reals: Words, op: int, target: int, left: int, right: int) -> bool:
    """A binary operator on lists or tuples: joined, repeated or compared."""
    if op == ADD:
        return memory[left] == memory[right] and _joined(memory, target, left, memory[left + 1], right, 1)
    if op == MULTIPLY:
        return memory[right] == INT and _joined(memory, target, left, -1, left, memory[right + 1])
    if LESS <= op <= NOT_EQUAL and memory[left] == memory[right]:
        return _compared(memory, reals, op, target, left, right)
    return False


@compiled
def _joined(memory: Words, target: int, left: int, first: int, right: int, times: int) -> bool:
    """The sequence with the head `first` (-1: none), and the right one as often as is said."""
    kind, second = memory[left], memory[right + 1]
    if target == left and kind == LIST:
        return False  # an assignment in place changes the list under all its names
    times = max(0, times)
    one = memory[first] if first >= 0 else 0
    other = memory[second]
    if times > LENGTH_MASK or not may_read(memory, one + other * times):
        return False
    start = new_list(memory, target, kind, one + other * times, one + other * times)
    if start < 0:
        return False
    for word in range(2 * one):
        memory[start + word] = memory[memory[first + 2] + word]
    for number in range(times):
        place = start + 2 * (one + number * other)
        for word in range(2 * other):
            memory[place + word] = memory[memory[second + 2] + word]
    return True


@compiled
def _compared(memory: Words, reals: Words, op: int, target: int, left: int, right: int) -> bool:
    """Python's comparison: of the first items that differ, or of the lengths."""
    long_a, long_b = memory[memory[left + 1]], memory[memory[right + 1]]
    if not may_read(memory, min(long_a, long_b)):
        return False
    if long_a != long_b and (op == EQUAL or op == NOT_EQUAL):
        return set_number(memory, reals, target, BOOL, int(op == NOT_EQUAL), 0.0)
    start_a, start_b = memory[memory[left + 1] + 2], memory[memory[right + 1] + 2]
    for place in range(0, 2 * min(long_a, long_b), 2):
        kind_a, kind_b = memory[start_a + place], memory[start_b + place]
        a, x = number_at(memory, reals, kind_a, start_a + place + 1)
        b, y = number_at(memory, reals, kind_b, start_b + place + 1)
        if BOOL <= kind_a <= NUMPY_FLOAT and BOOL <= kind_b <= NUMPY_FLOAT:
            if x != x or y != y:  # the same object is equal to itself, which is known only to Python
                return False
            if x == y:
                continue
            numpy = op <= GREATER_EQUAL and (kind_a >= NUMPY_BOOL or kind_b >= NUMPY_BOOL)
            return set_number(memory, reals, target, NUMPY_BOOL if numpy else BOOL, int(compare(op, x, y)), 0.0)
        if kind_a > TEXT or kind_b > TEXT or NUMPY_BOOL <= kind_a <= NUMPY_FLOAT or NUMPY_BOOL <= kind_b <= NUMPY_FLOAT:
            return False
        if kind_a == kind_b and (kind_a == NONE or a == b):
            continue
        return (op == EQUAL or op == NOT_EQUAL) and set_number(memory, reals, target, BOOL, int(op == NOT_EQUAL), 0.0)
    return set_number(memory, reals, target, BOOL, int(compare(op, long_a, long_b)), 0.0)


@compiled
def sort_of(memory: Words, reals: Words, target: int, register: int) -> bool:
    """A sorted list of at most 128 numbers; equal ones keep their order."""
    count = length_of(memory, register)
    if count > 128 or not listed(memory, target, register, False):
        return False
    start = memory[memory[target + 1] + 2]
    for number in range(count):
        kind, value = memory[start + 2 * number], memory[start + 2 * number + 1]
        _, x = number_at(memory, reals, kind, start + 2 * number + 1)
        if kind < BOOL or kind > NUMPY_FLOAT or x != x:
            return False
        place = start + 2 * number
        while place > start:
            _, y = number_at(memory, reals, memory[place - 2], place - 1)
            if not x < y:
                break
            memory[place] = memory[place - 2]
            memory[place + 1] = memory[place - 1]
            place -= 2
        memory[place] = kind
        memory[place + 1] = value
    return True


@compiled
def chosen(memory: Words, target: int, register: int, truths: int) -> bool:
    """The items of an array where another one is true."""
    kind, count = memory[register], length_of(memory, register)
    source, where = memory[register + 1] >> LENGTH_BITS, memory[truths + 1] >> LENGTH_BITS
    if kind < BOOLS or kind > FLOATS or memory[truths] != BOOLS or length_of(memory, truths) != count:
        return False
    if not may_read(memory, count):
        return False
    total = 0
    for number in range(count):
        total += memory[where + number]
    start = new_array(memory, target, kind, total)
    if start < 0:
        return False
    for number in range(count):
        if memory[where + number] != 0:
            memory[start] = memory[source + number]
            start += 1
    return True


@compiled
def counted(memory: Words, target: int, count: int) -> bool:
    """An array of the integers from 0 on."""
    count = max(0, count)
    start = new_array(memory, target, INTS, count) if may_read(memory, count) else -1
    for number in range(count if start >= 0 else 0):
        memory[start + number] = number
    return start >= 0
