"""Dicts of the machine: a head on the heap, and slots in which keys are found by their hash.

Keys are numbers, texts, actions, None, and tuples of these, and equal where Python's are. A slot holds the hash and the
kind of a key in one word, its value, and the item as a register does.
"""

# ruff: noqa: F403, F405

from __future__ import annotations

from labmates.workflows.populations.engine.kernel.instructions import *
from labmates.workflows.populations.engine.kernel.machine.compiling import compiled
from labmates.workflows.populations.engine.kernel.machine.layout import *
from labmates.workflows.populations.engine.kernel.machine.memory import allocate, item_at, may_read, number_at

_FIRST = 8
_FACTOR = 0x2545F4914F6CDD1D
_KIND_BITS = 5
_KINDS = (1 << _KIND_BITS) - 1
_MASK = (LARGEST_WORD >> _KIND_BITS) - 1
"""The bits of a hash that fit into a word beside the kind of the key."""


@compiled
def new_dict(memory: Words, target: int) -> bool:
    """Put an empty dict into a register."""
    head = allocate(memory, 3)
    if head < 0:
        return False
    memory[target] = DICT
    memory[target + 1] = head
    memory[head] = 0
    return _allocate_slots(memory, head, _FIRST)


@compiled
def _allocate_slots(memory: Words, head: int, count: int) -> bool:
    start = allocate(memory, 4 * count)
    if start < 0 or not may_read(memory, count):
        return False
    memory[head + 1] = count
    memory[head + 2] = start
    for slot in range(start, start + 4 * count, 4):
        memory[slot] = UNSET
    return True


@compiled
def _mixed(total: int, word: int) -> int:
    mixed = ((total ^ word) * _FACTOR) & _MASK
    return mixed ^ (mixed >> 31)


@compiled
def _hash_of(memory: Words, reals: Words, kind: int, word: int) -> int:
    """The hash of a number, text, action or None; -1 for NaN and for any other value."""
    if kind < NONE or kind > TEXT:
        return -1
    if kind < BOOL or kind > NUMPY_FLOAT:
        return _mixed(kind, 0 if kind == NONE else memory[word])
    _, real = number_at(memory, reals, kind, word)
    if real != real:
        return -1
    reals[BITS] = real + 0.0  # 0.0 and -0.0 are equal, and so are 1 and 1.0
    return _mixed(BOOL, memory[BITS])


@compiled
def _hash_of_key(memory: Words, reals: Words, register: int) -> int:
    """The hash of what a register holds; -1 if Python has to say."""
    if memory[register] != TUPLE:
        return _hash_of(memory, reals, memory[register], register + 1)
    length = memory[memory[register + 1]]
    total = _mixed(TUPLE, length)
    if not may_read(memory, length):
        return -1
    for index in range(length):
        kind, word = item_at(memory, register, index)
        item = _hash_of(memory, reals, kind, word)
        if item < 0:
            return -1
        total = _mixed(total, item)
    return total


@compiled
def _are_equal(memory: Words, reals: Words, kind_a: int, word_a: int, kind_b: int, word_b: int) -> bool:
    """Whether two values that have hashes are equal; no tuples."""
    a, x = number_at(memory, reals, kind_a, word_a)
    b, y = number_at(memory, reals, kind_b, word_b)
    if BOOL <= kind_a <= NUMPY_FLOAT and BOOL <= kind_b <= NUMPY_FLOAT:
        return x == y
    return kind_a == kind_b and (kind_a == NONE or a == b)


@compiled
def _is_key(memory: Words, reals: Words, kind: int, word: int, key: int) -> bool:
    """Whether a key in a dict, of some kind and with its value in a word, equals what a register holds."""
    if kind != TUPLE or memory[key] != TUPLE:
        return _are_equal(memory, reals, kind, word, memory[key], key + 1)
    head, other = memory[word], memory[key + 1]
    length = memory[head]
    if length != memory[other]:
        return False
    left, right = memory[head + 2], memory[other + 2]
    for place in range(0, 2 * length, 2):
        kind_a, kind_b = memory[left + place], memory[right + place]
        if not _are_equal(memory, reals, kind_a, left + place + 1, kind_b, right + place + 1):
            return False
    return True


@compiled
def slot_of(memory: Words, reals: Words, register: int, key: int) -> int:
    """The slot of a key in a dict: its own, or the free one where it belongs; -1 if Python has to say."""
    hashed = _hash_of_key(memory, reals, key)
    return _slot_with(memory, reals, register, key, hashed) if hashed >= 0 else -1


@compiled
def _slot_with(memory: Words, reals: Words, register: int, key: int, hashed: int) -> int:
    head = memory[register + 1]
    mask, start = memory[head + 1] - 1, memory[head + 2]
    place = hashed & mask
    while may_read(memory, 1):
        slot = start + 4 * place
        word = memory[slot]
        if word == UNSET or (word >> _KIND_BITS == hashed and _is_key(memory, reals, word & _KINDS, slot + 1, key)):
            return int(slot)
        place = (place + 1) & mask
    return -1


@compiled
def load_from(memory: Words, reals: Words, target: int, register: int, key: int, default: int) -> bool:
    """Put the item of a key into a register, or what `default` holds (-1: Python has to say)."""
    slot = slot_of(memory, reals, register, key)
    if slot < 0 or (memory[slot] == UNSET and default < 0):
        return False
    source = default if memory[slot] == UNSET else slot + 2
    kind, value = memory[source], memory[source + 1]
    memory[target] = kind
    memory[target + 1] = value
    return kind != UNSET


@compiled
def store_in(memory: Words, reals: Words, register: int, key: int, item: int) -> bool:
    """Put what a register holds under a key of a dict."""
    hashed = _hash_of_key(memory, reals, key)
    slot = _slot_with(memory, reals, register, key, hashed) if hashed >= 0 else -1
    if slot < 0 or memory[item] == UNSET or memory[item] == HISTORY:
        return False
    memory[slot + 2] = memory[item]
    memory[slot + 3] = memory[item + 1]
    if memory[slot] != UNSET:
        return True
    memory[slot] = hashed << _KIND_BITS | memory[key]
    memory[slot + 1] = memory[key + 1]
    head = memory[register + 1]
    memory[head] += 1
    return 2 * memory[head] < memory[head + 1] or _grow(memory, head)


@compiled
def _grow(memory: Words, head: int) -> bool:
    """Double the slots of a dict; False if there is no room."""
    count, start = memory[head + 1], memory[head + 2]
    if not _allocate_slots(memory, head, 2 * count):
        return False
    mask, new = 2 * count - 1, memory[head + 2]
    for slot in range(start, start + 4 * count, 4):
        if memory[slot] != UNSET:
            place = memory[slot] >> _KIND_BITS & mask
            while memory[new + 4 * place] != UNSET:
                place = (place + 1) & mask
            for word in range(4):
                memory[new + 4 * place + word] = memory[slot + word]
    return True
