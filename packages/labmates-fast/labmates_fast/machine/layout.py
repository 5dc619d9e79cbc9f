"""The memory layout of the machine."""

from __future__ import annotations

import sys
from typing import Any

from labmates_fast.instructions import LENGTH_BITS

LEFT = 255
"""An answer: the player is left to Python. Lower ones are its moves."""
NEXT_FREE, HEAP_END, ROUNDS, MY_ACTIONS, MY_PAYOFFS, COUNTS, STREAM, KEEPS, READ, MOVES, LIMIT, BITS, COMPARISON = (
    range(13)
)
"""Words of the memory that say where the rest is: `STREAM` is the player's random numbers, 0 if it has none,
`KEEPS` whether its lists outlive a decision, `READ` how many items of sequences single instructions have read,
`MOVES` the number of named actions, 0 where players cooperate or defect, `LIMIT` how many instructions may be taken and
how many items read; `BITS` is for a moment a float whose bits are asked for, and `COMPARISON` a register with what two
values compare as."""
HEAP_WORDS = 1 << 24
"""Heap for a decision, which the next one uses again; the system gives only pages that are written. Calls of routines
are stacked at its end."""
PARAMETERS = 16
"""Where the registers with the game's parameters are."""
MAKING, DECIDING, INITIAL, LOCALS, FRAME_WORDS, FRAME, RANDOM_WORDS, KEPT_NEXT, KEPT_END, BUDGET, SEEN = range(11)
"""Columns of a player's row: its code, where its first registers are, where those of a decision begin, and how many
words all its registers take; where these are, its random numbers and its heap, which ends where it keeps its own; which
word says how many instructions the players of its strategy may still take; and from `SEEN` on where its actions,
payoffs and counts of cooperators are."""
PLAYER_COLUMNS = SEEN + 3
LARGEST = 1 << 53
"""Integers beyond this one are left to Python: up to it they are exact as floats."""
LARGEST_WORD = 1 << 62
"""No integer here is larger."""
LENGTH_MASK = (1 << LENGTH_BITS) - 1
COMPENSATED = sys.version_info >= (3, 12)
WORDS = 624
Words = Any
"""A pointer to integers or floats; an array would be seven arguments of each function."""
