"""Dicts of the machine: a head on the heap, entries in the order of their keys, and slots that find these by hash.

Keys are numbers, texts, actions, None, and tuples of these, and equal where Python's are. An entry holds the hash and
the kind of a key in one word, its value, and the item as a register does. A slot is one word, so that the slots of many
keys stay in the processor's cache: the upper bits of a hash, and the number of the entry from 1 on.
"""

# ruff: noqa: F403, F405, SIM109

from __future__ import annotations

from labmates_fast.instructions import *
from labmates_fast.machine.compiling import compiled
from labmates_fast.machine.layout import *
from labmates_fast.machine.memory import allocate, may_read, new_list, number_at

_FIRST = 8
_FACTOR = 0x2545F4914F6CDD1D
_POSITIVE = (1 << 63) - 1
_KIND_BITS = 5
_KINDS = (1 << _KIND_BITS) - 1
_MASK = (LARGEST_WORD >> _KIND_BITS) - 1
"""The bits of a hash that fit into a word beside the kind of the key."""
_ENTRY_BITS = 24
_ENTRIES = (1 << _ENTRY_BITS) - 1


@compiled
def new_dict(memory: Words, target: int) -> bool:
    """Put an empty dict into a register."""
    head = allocate(memory, 4)
    if head < 0:
        return False
    memory[target] = DICT
    memory[target + 1] = head
    memory[head] = 0
    return _allocate_slots(memory, head, _FIRST)


@compiled
def _allocate_slots(memory: Words, head: int, count: int) -> bool:
    """Empty slots, and room for entries in half of them."""
    start = allocate(memory, 3 * count)
    if start < 0 or not may_read(memory, count):
        return False
    memory[head + 1] = count
    memory[head + 2] = start
    memory[head + 3] = start + count
    for slot in range(start, start + count):
        memory[slot] = 0
    return True


@compiled
def _mixed(total: int, word: int) -> int:
    mixed = ((total ^ word) * _FACTOR) & _POSITIVE
    return mixed ^ (mixed >> 32)


@compiled
def _bits_of(memory: Words, reals: Words, kind: int, word: int) -> int:
    """What is hashed of a number, text, action or None: equal for what is equal."""
    if kind == FLOAT or kind == NUMPY_FLOAT:
        return memory[word] if reals[word] != 0.0 else 0  # 0.0 and -0.0 are equal
    if kind < BOOL or kind > NUMPY_FLOAT:
        return kind if kind == NONE else memory[word]
    reals[BITS] = float(memory[word])  # 1 and 1.0 are equal
    return int(memory[BITS])


@compiled
def _has_hash(reals: Words, kind: int, word: int) -> bool:
    """Whether it is a number, text, action or None, and not NaN."""
    if kind == FLOAT or kind == NUMPY_FLOAT:
        return bool(reals[word] == reals[word])
    return bool(NONE <= kind <= TEXT)


@compiled
def _hash_of_key(memory: Words, reals: Words, register: int) -> int:
    """The hash of what a register holds; -1 if Python has to say."""
    kind = memory[register]
    if kind != TUPLE:
        if not _has_hash(reals, kind, register + 1):
            return -1
        return _mixed(TUPLE, _bits_of(memory, reals, kind, register + 1)) & _MASK
    head = memory[register + 1]
    if memory[head + 1] >= 0:
        return int(memory[head + 1])
    length, items = memory[head], memory[head + 2]
    total = length
    if not may_read(memory, length):
        return -1
    for item in range(items, items + 2 * length, 2):
        if not _has_hash(reals, memory[item], item + 1):
            return -1
        total = _mixed(total, _bits_of(memory, reals, memory[item], item + 1))
    memory[head + 1] = total & _MASK
    return int(total & _MASK)


@compiled
def _are_equal(memory: Words, reals: Words, kind_a: int, word_a: int, kind_b: int, word_b: int) -> bool:
    """Whether two values that have hashes are equal; no tuples."""
    if kind_a == kind_b and memory[word_a] == memory[word_b]:
        return True
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
def entry_of(memory: Words, reals: Words, register: int, key: int) -> int:
    """The entry of a key in a dict; 0 if there is none, -1 if Python has to say."""
    hashed = _hash_of_key(memory, reals, key)
    slot = _slot_with(memory, reals, register, key, hashed) if hashed >= 0 else -1
    return _entry_in(memory, memory[register + 1], slot) if slot >= 0 else -1


@compiled
def _entry_in(memory: Words, head: int, slot: int) -> int:
    number = memory[slot] & _ENTRIES
    return int(memory[head + 3] + 4 * (number - 1)) if number else 0


@compiled
def _slot_with(memory: Words, reals: Words, register: int, key: int, hashed: int) -> int:
    """The slot of a key: its own, or the free one where it belongs; -1 if Python has to say."""
    head = memory[register + 1]
    mask, start = memory[head + 1] - 1, memory[head + 2]
    place = hashed >> _ENTRY_BITS & mask
    while may_read(memory, 1):
        slot = start + place
        if memory[slot] == 0:
            return int(slot)
        if memory[slot] >> _ENTRY_BITS == hashed >> _ENTRY_BITS:
            entry = _entry_in(memory, head, slot)
            if _is_key(memory, reals, memory[entry] & _KINDS, entry + 1, key):
                return int(slot)
        place = (place + 1) & mask
    return -1


@compiled
def load_from(memory: Words, reals: Words, target: int, register: int, key: int, default: int) -> bool:
    """Put the item of a key into a register, or what `default` holds (-1: Python has to say)."""
    entry = entry_of(memory, reals, register, key)
    if entry < 0 or (entry == 0 and default < 0):
        return False
    source = entry + 2 if entry else default
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
    head = memory[register + 1]
    if memory[slot] == 0:
        memory[head] += 1
        memory[slot] = hashed >> _ENTRY_BITS << _ENTRY_BITS | memory[head]
        entry = _entry_in(memory, head, slot)
        memory[entry] = hashed << _KIND_BITS | memory[key]
        memory[entry + 1] = memory[key + 1]
    else:
        entry = _entry_in(memory, head, slot)
    memory[entry + 2] = memory[item]
    memory[entry + 3] = memory[item + 1]
    return 2 * memory[head] < memory[head + 1] or _grow(memory, head)


@compiled
def _grow(memory: Words, head: int) -> bool:
    """Double the slots of a dict; False if there is no room. Slots keep their order, so memory is written in order."""
    count, slots, entries = memory[head + 1], memory[head + 2], memory[head + 3]
    if not _allocate_slots(memory, head, 2 * count):
        return False
    mask, start, new = 2 * count - 1, memory[head + 2], memory[head + 3]
    for word in range(4 * memory[head]):
        memory[new + word] = memory[entries + word]
    for slot in range(slots, slots + count):
        if memory[slot] != 0:
            place = memory[slot] >> _ENTRY_BITS & mask
            while memory[start + place] != 0:
                place = (place + 1) & mask
            memory[start + place] = memory[slot]
    return True


@compiled
def keys_of(memory: Words, target: int, register: int) -> bool:
    """A list of the keys of a dict."""
    head = memory[register + 1]
    count, entries = memory[head], memory[head + 3]
    start = new_list(memory, target, LIST, count, count) if may_read(memory, count) else -1
    for number in range(count if start >= 0 else 0):
        memory[start + 2 * number] = memory[entries + 4 * number] & _KINDS
        memory[start + 2 * number + 1] = memory[entries + 4 * number + 1]
    return start >= 0


@compiled
def next_key(memory: Words, first: int, item: int) -> int:
    """Put the next key of a dict into a register: 1, 0 at the end, -1 if it has grown meanwhile, which is an error."""
    head = memory[first + 1]
    count, state = memory[head], memory[first + 3]
    if memory[first + 2] != INT:
        return -1
    if state == 0:  # how many keys there are at the start, and how many have been taken
        state = count + 1 << LENGTH_BITS
    index = state & LENGTH_MASK
    if state >> LENGTH_BITS != count + 1:
        return -1
    memory[first + 3] = state + 1 if index < count else state
    if index >= count:
        return 0
    entry = memory[head + 3] + 4 * index
    memory[item] = memory[entry] & _KINDS
    memory[item + 1] = memory[entry + 1]
    return 1
