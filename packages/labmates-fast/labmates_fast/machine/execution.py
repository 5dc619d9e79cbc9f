"""The loop that executes compiled strategies as numbers (`lowering`), without Python: many times faster.

It does what Python and numpy do, to the bit, or nothing: whatever raises, is too large, or is not done here, leaves the
player to Python, which plays its game again from the start. All that a strategy can name are the registers of its
player, and sequences on the heap that are checked at each access.
"""

# ruff: noqa: F403, F405, SIM109

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from labmates_fast.instructions import *
from labmates_fast.machine.compiling import compiled
from labmates_fast.machine.dicts import entry_of, load_from, new_dict, next_key, store_in
from labmates_fast.machine.functions import call_function
from labmates_fast.machine.layout import *
from labmates_fast.machine.memory import (
    append,
    index_in,
    items_in,
    length_of,
    load_item,
    may_read,
    new_list,
    pop,
    set_number,
    slice_of,
    unpacked,
)
from labmates_fast.machine.operators import (
    are_close,
    binary,
    calculate_quickly,
    clip,
    combinations,
    compared,
    greater_or_lesser,
    is_in,
    is_same,
    round_to,
    truth_of,
)
from labmates_fast.machine.sequences import chosen
from labmates_fast.machine.twister import random_below, random_number


@compiled
def _execute(code: Any, at: int, memory: Words, reals: Words, frame: int) -> int:
    """Execute instructions until there is an answer: a move, or `LEFT`."""
    calls, step, limit = 0, 0, memory[LIMIT]
    for step in range(limit):
        here = 4 * at
        op = code[here]
        first, second, third = frame + code[here + 1], frame + code[here + 2], frame + code[here + 3]
        at += 1
        if op <= NOT_EQUAL:
            if not calculate_quickly(memory, reals, op, first, second, third):
                break
        elif op >= JUMP_COMPARED:
            jumps = op < JUMP_UNLESS_COMPARED
            op += LESS - (JUMP_COMPARED if jumps else JUMP_UNLESS_COMPARED)
            truth = compared(memory, reals, op, first, second)
            if truth < 0:
                break
            if (truth > 0) == jumps:
                at += code[here + 3]
        elif op == JUMP_FALSE or op == JUMP_TRUE:
            kind = memory[first]
            truth = memory[first + 1] != 0 if kind in (BOOL, NUMPY_BOOL) else truth_of(memory, reals, first)
            if truth < 0:
                break
            if (truth > 0) == (op == JUMP_TRUE):
                at += code[here + 2]
        elif op == MOVE:
            if memory[second] == UNSET:
                break
            value = memory[second + 1]
            memory[first] = memory[second]
            memory[first + 1] = value
        elif op == STORE:
            kind, value = memory[second], memory[second + 1]
            if kind == UNSET or (kind >= HISTORY and kind != NAMES and not (kind >= LIST and memory[KEEPS])):
                break
            memory[first] = kind
            memory[first + 1] = value
        elif op == JUMP:
            at += code[here + 1]
        elif op == ITEM and memory[second] == DICT:
            if not load_from(memory, reals, first, second, third, -1):
                break
        elif op == SET_ITEM and memory[first] == DICT:
            if not store_in(memory, reals, first, second, third):
                break
        elif op == CONTAINS and memory[third] == DICT:
            entry = entry_of(memory, reals, third, second)
            if entry < 0:
                break
            memory[first] = BOOL
            memory[first + 1] = int(entry > 0)
        elif op == ITEM:
            index = index_in(memory, second, third)
            if index >= 0:
                load_item(memory, second, index, first)
            elif not chosen(memory, first, second, third):
                break
        elif op == ANSWER:
            memory[LIMIT] = limit - step - memory[READ]
            return _answer(memory, first)
        elif op == ATTRIBUTE:
            if not _attribute(memory, first, second, code[here + 3]) or memory[first] == UNSET:
                break
        elif op == CALL:
            function, kind = code[here + 3], memory[second]
            if (function == FLOAT_OF and kind == FLOAT) or (function == INT_OF and kind == INT):
                value = memory[second + 1]
                memory[first] = kind
                memory[first + 1] = value
            elif not call_function(memory, reals, function, first, second):
                break
        elif op == MAXIMUM or op == MINIMUM:
            if not greater_or_lesser(memory, reals, op, first, second, third):
                break
        elif op == ROUND_TO:
            if not round_to(memory, reals, first, second, third):
                break
        elif op == CALL_ROUTINE:
            target = at + code[here + 3]
            routine = 4 * target
            arguments, count = frame + code[routine + 2], code[routine + 3]
            if calls == MOST_CALLS or not _call(memory, at, first, second, arguments, count):
                break
            calls += 1
            at = target + 1
        elif op == UNSET_REGISTERS:
            for number in range(code[here + 3]):
                memory[second + 2 * number] = UNSET
        elif op == RETURN:
            if calls == 0 or memory[first] == UNSET:
                break
            calls -= 1
            at = _return(memory, first)
        elif op == RANGE_NEXT or op == NEXT:
            more = _next_of_range(memory, first, second) if op == RANGE_NEXT else _next_item(memory, first, second)
            if more < 0:
                break
            if more == 0:
                at += code[here + 3]
        elif not _execute_rare(op, code[here + 3], memory, reals, first, second, third):
            if op == END:
                memory[LIMIT] = limit - step - memory[READ]
                return 0
            if op != JUMP_SET:
                break
            at += code[here + 2]
    memory[LIMIT] = limit - step - 1 - memory[READ]
    return LEFT


@compiled
def _call(memory: Words, at: int, result: int, passed: int, first: int, count: int) -> bool:
    """Stack what a routine changes, from its `first` register to the `passed` arguments, and hand these over."""
    kept = max(0, passed - first)
    top = memory[HEAP_END] - kept - 4
    if top < memory[NEXT_FREE] or not may_read(memory, kept):
        return False
    memory[HEAP_END] = top
    memory[top] = at
    memory[top + 1] = result
    memory[top + 2] = first
    memory[top + 3] = kept
    for word in range(0, kept, 2):
        memory[top + 4 + word] = memory[first + word]
        memory[top + 5 + word] = memory[first + word + 1]
    for number in range(2 * count):
        # The two may overlap.
        word = number if passed >= first else 2 * count - 1 - number
        memory[first + word] = memory[passed + word]
    return True


@compiled
def _return(memory: Words, register: int) -> int:
    """End a routine with what a register holds; the instruction after its call."""
    kind, value = memory[register], memory[register + 1]
    top = memory[HEAP_END]
    result, first, kept = memory[top + 1], memory[top + 2], memory[top + 3]
    for word in range(0, kept, 2):
        memory[first + word] = memory[top + 4 + word]
        memory[first + word + 1] = memory[top + 5 + word]
    memory[result] = kind
    memory[result + 1] = value
    memory[HEAP_END] = top + 4 + kept
    return int(memory[top])


@compiled
def _execute_rare(op: int, number: int, memory: Words, reals: Words, first: int, second: int, third: int) -> bool:
    """An instruction that is rare; False if Python has to do it, or a jump is to be taken."""
    if op == BIT_AND or op == BIT_OR or op == SUM_ADD:
        if op == SUM_ADD and COMPENSATED and memory[third] == FLOAT:
            return False
        return binary(memory, reals, ADD if op == SUM_ADD else op, first, second, third)
    if op == IS:
        return is_same(memory, first, second, third)
    if op == UNPACK:
        return unpacked(memory, first, second, number)
    if op == NEW_DICT:
        return new_dict(memory, first)
    if op == GET:
        return memory[second] == DICT and load_from(memory, reals, first, second, third, third + 2)
    if op == SLICE:
        return slice_of(memory, first, second, third)
    if op == APPEND:
        return append(memory, first, second)
    if op == NEW_LIST or op == NEW_TUPLE:
        start = new_list(memory, first, LIST if op == NEW_LIST else TUPLE, number, number)
        for word in range(0, 2 * number if start >= 0 else 0, 2):
            if memory[second + word] == HISTORY:
                return False
            memory[start + word] = memory[second + word]
            memory[start + word + 1] = memory[second + word + 1]
        return start >= 0
    if op == IS_KIND:
        return memory[second] not in (UNSET, LARGE, ROWS, NAMES) and set_number(
            memory, reals, first, BOOL, number >> memory[second] & 1, 0.0
        )
    if op == IS_CLOSE:
        return are_close(memory, reals, first, second)
    if op == CLIP:
        return clip(memory, reals, first, second)
    if op == POP:
        return pop(memory, first, second, number)
    if op == COMBINATIONS:
        return combinations(memory, first, second, third)
    if op == RANGE:
        return _begin_range(memory, first)
    if op == RANDOM:
        return random_number(memory, reals, first)
    if op == RANDOM_BELOW:
        return random_below(memory, first, second)
    if op == JUMP_SET:
        return memory[first] == UNSET
    if op == ATTRIBUTE_OR_UNSET:
        return _attribute(memory, first, second, number)
    if op == SET_ITEM:
        index = index_in(memory, first, second)
        if memory[first] != LIST or index < 0 or memory[third] == UNSET or memory[third] == HISTORY:
            return False
        place = memory[memory[first + 1] + 2] + 2 * index
        memory[place] = memory[third]
        memory[place + 1] = memory[third + 1]
        return True
    return op == CONTAINS and is_in(memory, reals, first, second, third)


@compiled
def _answer(memory: Words, register: int) -> int:
    """The move in a register; `LEFT` if Python has to say."""
    kind, value = memory[register], memory[register + 1]
    if memory[MOVES] == 0:
        return value if kind == ACTION else LEFT
    return value if (kind == INT or kind == NUMPY_INT) and 0 <= value < memory[MOVES] else LEFT


@compiled
def _attribute(memory: Words, target: int, register: int, name: int) -> bool:
    """An attribute; the target is unset if there is none, and False if Python has to say."""
    kind, length = memory[register], length_of(memory, register)
    memory[target] = UNSET
    if kind == DESCRIPTION:
        if name < N_PARAMETERS:
            memory[target] = memory[PARAMETERS + 2 * name]
            memory[target + 1] = memory[PARAMETERS + 2 * name + 1]
        elif name == ACTION_NAMES and memory[MOVES] > 0:
            memory[target] = NAMES
            memory[target + 1] = memory[MOVES]
        return True
    if kind == HISTORY:
        rounds = memory[ROUNDS]
        if name == ROUND_NUMBER:
            memory[target] = INT
            memory[target + 1] = rounds
        elif name == OPPONENT_COUNTS and memory[MOVES] > 0:
            memory[target] = ROWS
            memory[target + 1] = memory[COUNTS] << LENGTH_BITS | rounds
        elif ARRAY_NAMES <= name < ARRAY_NAMES + (2 if memory[MOVES] > 0 else 3):
            which = name - ARRAY_NAMES
            memory[target] = FLOATS if which == 1 else BOOLS if which == 0 and memory[MOVES] == 0 else INTS
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


@compiled
def _begin_range(memory: Words, first: int) -> bool:
    """Check the start, stop and step of a range; the start counts from now on."""
    for place in range(first, first + 6, 2):
        if memory[place] not in (INT, NUMPY_INT, BOOL):
            return False
    memory[first] = INT
    return memory[first + 5] != 0


@compiled
def _next_of_range(memory: Words, first: int, item: int) -> int:
    """Put the next number of a range into a register: 1, 0 at its end, -1 if it is no range."""
    step = memory[first + 5]
    if memory[first] != INT:
        return -1
    if (memory[first + 1] >= memory[first + 3]) if step > 0 else (memory[first + 1] <= memory[first + 3]):
        return 0
    memory[item] = INT
    memory[item + 1] = memory[first + 1]
    memory[first + 1] += step
    return 1


@compiled
def _next_item(memory: Words, first: int, item: int) -> int:
    """Put the next item of a sequence into a register: 1, 0 at its end, -1 if there is no sequence."""
    if memory[first] == DICT:
        return next_key(memory, first, item)
    length, index = items_in(memory, first), memory[first + 3]
    if length < 0 or memory[first + 2] != INT or index < 0:
        return -1
    if index >= length:
        return 0
    memory[first + 3] = index + 1
    load_item(memory, first, index, item)
    return 1


@intrinsic
def _pointer(_context: Any, array: Any) -> Any:
    """A pointer to the first item of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    pointer: Any = types.CPointer
    return pointer(array.dtype)(array), generate


_POINTER: Any = _pointer


@compiled
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
        One for each who decides, to be filled: a move, or `LEFT`.
    """
    instructions = _POINTER(code)
    memory, reals = _POINTER(memory_array), _POINTER(memory_array.view(np.float64))
    memory[ROUNDS] = rounds
    for place in range(len(asked)):
        player = asked[place]
        row = players[player]
        frame = row[FRAME]
        memory[READ] = 0
        memory[LIMIT] = budget = memory[row[BUDGET]]
        memory[STREAM] = row[RANDOM_WORDS]
        memory[KEEPS] = int(row[KEPT_END] > 0)
        memory[NEXT_FREE] = row[KEPT_NEXT]
        memory[HEAP_END] = row[KEPT_END] if memory[KEEPS] else row[KEPT_NEXT] + HEAP_WORDS
        for which in range(3):
            memory[MY_ACTIONS + which] = row[SEEN + which]
        first = frame + row[LOCALS]
        answer = 0
        if rounds == 0:
            for word in range(row[LOCALS]):
                memory[frame + word] = initial[row[INITIAL] + word]
            memory[first] = DESCRIPTION
            answer = _execute(instructions, row[MAKING], memory, reals, frame)
            memory[READ] = 0
        # Leftovers of an earlier decision name freed sequences.
        for register in range(first, frame + row[FRAME_WORDS], 2):
            memory[register] = UNSET
        memory[first] = HISTORY
        if len(stocks):
            memory[first + 2] = NUMPY_FLOAT if rounds else INT
            if rounds:
                reals[first + 3] = stocks[player]
            else:
                memory[first + 3] = int(stocks[player])
        answers[place] = _execute(instructions, row[DECIDING], memory, reals, frame) if answer != LEFT else LEFT
        # A strategy that needs much and is left to Python all the same is not tried again.
        wasted = answers[place] == LEFT and budget - memory[LIMIT] > INSTRUCTION_LIMIT
        memory[row[BUDGET]] = 0 if wasted else memory[LIMIT]
        if memory[KEEPS]:
            row[KEPT_NEXT] = memory[NEXT_FREE]
