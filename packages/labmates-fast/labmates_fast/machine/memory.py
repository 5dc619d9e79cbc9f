"""The memory of the machine: registers, and on the heap arrays, which never change, lists and tuples."""

# ruff: noqa: F403, F405, SIM109

from __future__ import annotations

from labmates_fast.instructions import (
    BOOL,
    BOOLS,
    FLOAT,
    FLOATS,
    HISTORY,
    INT,
    INTS,
    LENGTH_BITS,
    LIST,
    NONE,
    NUMPY_BOOL,
    NUMPY_FLOAT,
    NUMPY_INT,
    ROWS,
    TUPLE,
    UNSET,
)
from labmates_fast.machine.compiling import compiled, within
from labmates_fast.machine.layout import *


@compiled
def set_number(memory: Words, reals: Words, register: int, kind: int, value: int, real: float) -> bool:
    """Put a number into a register; False if it is none."""
    memory[register] = kind
    if kind == FLOAT or kind == NUMPY_FLOAT:
        reals[register + 1] = real
    else:
        memory[register + 1] = value
    return kind != UNSET


@within
def number_at(memory: Words, reals: Words, kind: int, word: int) -> tuple[int, float]:
    """A number in the memory, as an integer and as a float."""
    if kind == FLOAT or kind == NUMPY_FLOAT:
        return 0, reals[word]
    return memory[word], float(memory[word])


@compiled
def allocate(memory: Words, words: int) -> int:
    """The address of a block of free words; -1 if there is none of that size."""
    start = memory[NEXT_FREE]
    if words < 0 or start + words > memory[HEAP_END]:
        return -1
    memory[NEXT_FREE] = start + words
    return start


@compiled
def length_of(memory: Words, register: int) -> int:
    """The length of a sequence; -1 if it is none."""
    kind, value = memory[register], memory[register + 1]
    if BOOLS <= kind <= FLOATS:
        return value & LENGTH_MASK
    return memory[value] if kind == LIST or kind == TUPLE else -1


@compiled
def may_read(memory: Words, count: int) -> bool:
    """Count items that an instruction reads; False once a decision has read so many that Python has to time it."""
    memory[READ] += count
    return bool(memory[READ] <= memory[LIMIT])


@within
def item_at(memory: Words, register: int, index: int) -> tuple[int, int]:
    """An item's kind, and the word that holds its value; the index is one of the sequence's."""
    kind, value = memory[register], memory[register + 1]
    if BOOLS <= kind <= FLOATS:
        return kind - BOOLS + NUMPY_BOOL, (value >> LENGTH_BITS) + index
    place = memory[value + 2] + 2 * index
    return memory[place], place + 1


@compiled
def items_in(memory: Words, register: int) -> int:
    """The length of a sequence, or of rows, which can only be taken one by one; -1 if it is neither."""
    return memory[register + 1] & LENGTH_MASK if memory[register] == ROWS else length_of(memory, register)


@within
def load_item(memory: Words, register: int, index: int, target: int) -> bool:
    """Put an item of a sequence, or a row, into a register."""
    if memory[register] == ROWS:
        start = (memory[register + 1] >> LENGTH_BITS) + index * memory[MOVES]
        memory[target] = INTS
        memory[target + 1] = start << LENGTH_BITS | memory[MOVES]
        return True
    kind, word = item_at(memory, register, index)
    value = memory[word]
    memory[target] = kind
    memory[target + 1] = value
    return True


@compiled
def unpacked(memory: Words, register: int, first: int, count: int) -> bool:
    """Put the items of a sequence of some length into registers; False if it is none."""
    if items_in(memory, register) != count:
        return False
    for index in range(count):
        load_item(memory, register, index, first + 2 * index)
    return True


@compiled
def new_array(memory: Words, target: int, kind: int, length: int) -> int:
    """The address of a new array's items; -1 if there is no room."""
    start = allocate(memory, length)
    if start >= 0:
        memory[target] = kind
        memory[target + 1] = start << LENGTH_BITS | length
    return start


@compiled
def new_list(memory: Words, target: int, kind: int, length: int, capacity: int) -> int:
    """The address of a new list's items; -1 if there is no room."""
    head = allocate(memory, 3 + 2 * capacity)
    if head < 0:
        return -1
    memory[head] = length
    memory[head + 1] = capacity if kind == LIST else -1
    memory[head + 2] = head + 3
    memory[target] = kind
    memory[target + 1] = head
    return head + 3


@compiled
def append(memory: Words, register: int, item: int) -> bool:
    """Append what a register holds to a list; False if Python has to do it."""
    if memory[register] != LIST or memory[item] == UNSET or memory[item] == HISTORY:
        return False
    head = memory[register + 1]
    length, capacity = memory[head], memory[head + 1]
    if length == capacity:
        start = allocate(memory, 4 * capacity + 8)
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


@compiled
def pop(memory: Words, target: int, register: int, from_front: int) -> bool:
    """Take the first or the last item from a list."""
    head = memory[register + 1]
    if memory[register] != LIST or memory[head] == 0:
        return False
    if from_front:
        load_item(memory, register, 0, target)
        memory[head + 1] -= 1
        memory[head + 2] += 2
    else:
        load_item(memory, register, memory[head] - 1, target)
    memory[head] -= 1
    return True


@compiled
def index_in(memory: Words, register: int, index: int) -> int:
    """The place in a sequence that an index names; -1 if there is none."""
    length = items_in(memory, register)
    if memory[index] not in (INT, NUMPY_INT, BOOL) or length < 0:
        return -1
    if memory[index] == BOOL and memory[register] not in (LIST, TUPLE):  # a truth asks an array for one more axis
        return -1
    place = memory[index + 1]
    if place < 0:
        place += length
    return place if 0 <= place < length else -1


@compiled
def slice_of(memory: Words, target: int, register: int, bounds: int) -> bool:
    """A slice with the step 1 or -1 of a sequence."""
    length = length_of(memory, register)
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
    return copied(memory, target, register, start, step, count)


@compiled
def copied(memory: Words, target: int, register: int, start: int, step: int, count: int) -> bool:
    """A new sequence with some items of another one."""
    kind, value = memory[register], memory[register + 1]
    if kind == LIST or kind == TUPLE:
        place = new_list(memory, target, kind, count, count)
        if place < 0:
            return False
        for number in range(count):
            source = memory[value + 2] + 2 * (start + number * step)
            memory[place + 2 * number] = memory[source]
            memory[place + 2 * number + 1] = memory[source + 1]
        return True
    place = new_array(memory, target, kind, count)
    for number in range(count if place >= 0 else 0):
        memory[place + number] = memory[(value >> LENGTH_BITS) + start + number * step]
    return place >= 0


@compiled
def listed(memory: Words, target: int, register: int, python: bool) -> bool:
    """A list of the items of a sequence; with `python`, of Python's numbers."""
    if memory[register] >= LIST and python:
        return False
    count = length_of(memory, register)
    kind, source = memory[register], memory[register + 1]
    arrays = kind < LIST
    start = new_list(memory, target, LIST, count, count)
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
