"""The random numbers of players: the Mersenne twister as Python seeds it and draws from it."""

from __future__ import annotations

from labmates_fast.instructions import FLOAT, INT
from labmates_fast.machine.compiling import compiled
from labmates_fast.machine.layout import STREAM, WORDS, Words
from labmates_fast.machine.memory import set_number


@compiled
def random_number(memory: Words, reals: Words, target: int) -> bool:
    """A number from 0 to 1, as Python draws it."""
    if memory[STREAM] == 0:
        return False
    high, low = _bits(memory) >> 5, _bits(memory) >> 6
    return set_number(memory, reals, target, FLOAT, 0, (high * 67108864.0 + low) * (1.0 / 9007199254740992.0))


@compiled
def random_below(memory: Words, target: int, register: int) -> bool:
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


@compiled
def _bits(memory: Words) -> int:
    """The player's next 32 random bits."""
    stream = memory[STREAM]
    if memory[stream + WORDS] < 0:
        _seed(memory, stream)
    if memory[stream + WORDS] >= WORDS:
        _twist(memory, stream)
    word = memory[stream + memory[stream + WORDS]]
    memory[stream + WORDS] += 1
    word ^= word >> 11
    word ^= (word << 7) & 0x9D2C5680
    word ^= (word << 15) & 0xEFC60000
    return word ^ (word >> 18)


@compiled
def _seed(memory: Words, stream: int) -> None:
    """Seed the twister as Python does, by the number in its first word."""
    key = memory[stream]
    word = 19650218
    memory[stream] = word
    for place in range(1, WORDS):
        word = (1812433253 * (word ^ (word >> 30)) + place) & 0xFFFFFFFF
        memory[stream + place] = word
    place = 1
    for _ in range(WORDS):
        before = memory[stream + place - 1]
        mixed = ((before ^ (before >> 30)) * 1664525) & 0xFFFFFFFF
        memory[stream + place] = ((memory[stream + place] ^ mixed) + key) & 0xFFFFFFFF
        place += 1
        if place >= WORDS:
            memory[stream] = memory[stream + WORDS - 1]
            place = 1
    for _ in range(WORDS - 1):
        before = memory[stream + place - 1]
        mixed = ((before ^ (before >> 30)) * 1566083941) & 0xFFFFFFFF
        memory[stream + place] = ((memory[stream + place] ^ mixed) - place) & 0xFFFFFFFF
        place += 1
        if place >= WORDS:
            memory[stream] = memory[stream + WORDS - 1]
            place = 1
    memory[stream] = 0x80000000
    memory[stream + WORDS] = WORDS


@compiled
def _twist(memory: Words, stream: int) -> None:
    """The next words of the Mersenne twister."""
    for place in range(WORDS):
        mixed = (memory[stream + place] & 0x80000000) | (memory[stream + (place + 1) % WORDS] & 0x7FFFFFFF)
        word = memory[stream + (place + 397) % WORDS] ^ (mixed >> 1)
        memory[stream + place] = word ^ 0x9908B0DF if mixed & 1 else word
    memory[stream + WORDS] = 0
