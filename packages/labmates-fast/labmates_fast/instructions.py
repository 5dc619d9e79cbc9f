"""The instructions of `machine`, which `lowering` makes of strategies, and the kinds of its values.

An instruction is four numbers: what to do, and three operands, which are registers where nothing else is said. A
register holds the kind of its value and the value: a number, or where a sequence begins on the heap.
"""

from __future__ import annotations

from typing import Final

# Kinds. The order of the six kinds of numbers is used: Python's, then numpy's, and bool, int, float within both.
UNSET: Final = 0
NONE: Final = 1
BOOL: Final = 2
INT: Final = 3
FLOAT: Final = 4
NUMPY_BOOL: Final = 5
NUMPY_INT: Final = 6
NUMPY_FLOAT: Final = 7
ACTION: Final = 8
TEXT: Final = 9
"""A constant text; its value is its number among the strategy's texts, 0 for the empty one."""
DESCRIPTION: Final = 10
HISTORY: Final = 11
BOOLS: Final = 12
INTS: Final = 13
FLOATS: Final = 14
"""Arrays: where they begin on the heap, and their length in the last `LENGTH_BITS`."""
LIST: Final = 15
TUPLE: Final = 16
"""The address of a head on the heap: length, capacity, and the address of the items, each a kind and a value. A tuple
has no capacity: that word holds its hash, or -1 until the tuple is used as a key."""
LARGE: Final = 17
"""An integer of 64 bits that is not exact as a float: only calculations with floats take it."""
ROWS: Final = 18
"""Counts of named actions: where the first row is, and how many there are in the last `LENGTH_BITS`."""
NAMES: Final = 19
"""The names of actions, of which only the number is known here."""
DICT: Final = 20
"""Where the head is on the heap: the number of keys, how many slots there are, and where these and the entries are."""
LENGTH_BITS: Final = 24

# Binary operators: the result, left, right.
ADD: Final = 0
SUBTRACT: Final = 1
MULTIPLY: Final = 2
DIVIDE: Final = 3
FLOOR_DIVIDE: Final = 4
MODULO: Final = 5
POWER: Final = 6
LESS: Final = 7
LESS_EQUAL: Final = 8
GREATER: Final = 9
GREATER_EQUAL: Final = 10
EQUAL: Final = 11
NOT_EQUAL: Final = 12
BIT_AND: Final = 13
BIT_OR: Final = 14
MAXIMUM: Final = 15
MINIMUM: Final = 16
"""One of the two operands, as Python's `max` and `min`."""

MOVE: Final = 20
"""The target, the source."""
JUMP: Final = 21
"""How many instructions to skip."""
JUMP_TRUE: Final = 22
JUMP_FALSE: Final = 23
"""The condition, how many instructions to skip."""
ANSWER: Final = 24
"""The action."""
LEAVE: Final = 25
"""Leave the decision to Python: it raises, or does what is not done here."""
END: Final = 26
"""The player is made."""
ATTRIBUTE: Final = 27
"""The result, the object, the number of the attribute (`ATTRIBUTES`)."""
ATTRIBUTE_OR_UNSET: Final = 28
"""The same; the result is unset where there is no such attribute."""
ITEM: Final = 29
"""The result, the sequence, the index."""
SET_ITEM: Final = 30
"""The list, the index, the item."""
SLICE: Final = 31
"""The result, the sequence, the first of three registers: start, stop, step."""
CALL: Final = 32
"""The result, the argument, the number of the function (`FUNCTIONS`)."""
IS: Final = 33
"""The result, left, right."""
NEW_LIST: Final = 34
NEW_TUPLE: Final = 45
"""The result, the first of the registers with the items, how many there are."""
APPEND: Final = 35
"""The list, the item."""
RANGE: Final = 36
"""The first of three registers with start, stop and step: check them."""
RANGE_NEXT: Final = 37
"""The first of these registers, the item, how many instructions to skip at the end."""
NEXT: Final = 38
"""The first of two registers, a sequence or a dict and a number; the item; how many instructions to skip at the end."""
RANDOM: Final = 39
"""The result."""
RANDOM_BELOW: Final = 40
"""The result, how many integers there are to choose from."""
UNSET_REGISTERS: Final = 41
"""Nothing, the first of the registers, how many there are."""
JUMP_SET: Final = 42
"""The register, how many instructions to skip if it has a value."""
SUM_ADD: Final = 43
"""As `ADD`, in a sum: later versions of Python add floats in another way there."""
STORE: Final = 46
"""The attribute, the source: what does not outlive a decision is left to Python."""
CONTAINS: Final = 44
"""The result, the item, the sequence."""
IS_KIND: Final = 47
"""The result, the value, the sum of `1 << kind` for the kinds that are asked for."""
IS_CLOSE: Final = 48
"""The result, the first of four registers: two numbers, the relative and the absolute tolerance."""
POP: Final = 49
"""The item, the list, and whether it is the first one, not the last."""
COMBINATIONS: Final = 50
"""The result, of how many, how many are chosen."""
CALL_ROUTINE: Final = 51
"""The result, the first of the arguments, how many instructions to skip to the routine's `ENTER`. The registers between
the routine's first one and the arguments are kept until it returns."""
ENTER: Final = 52
"""Nothing, the first of a routine's arguments, how many there are."""
RETURN: Final = 53
"""The result of a routine."""
ROUND_TO: Final = 54
"""The result, the number, how many digits it keeps after the point."""
NEW_DICT: Final = 55
"""The result."""
GET: Final = 56
"""The result, a dict, the first of two registers: the key, what is taken without it."""
UNPACK: Final = 57
"""The sequence, the first of the registers for its items, how many there have to be."""
CLIP: Final = 58
"""The result, the first of three registers: a number, the least and the greatest that it may be."""
JUMP_COMPARED: Final = 60
JUMP_UNLESS_COMPARED: Final = 66
"""The first of six instructions each, in the order of the comparisons: left, right, how many instructions to skip."""
COMPARED: Final = range(JUMP_COMPARED, 2 * JUMP_UNLESS_COMPARED - JUMP_COMPARED)

FORMS: Final = {
    **dict.fromkeys((*range(MINIMUM + 1), ITEM, IS, SUM_ADD, CONTAINS, COMBINATIONS, ROUND_TO), "wrr"),
    **dict.fromkeys((MOVE, RANDOM_BELOW, IS_KIND, POP), "wr"),
    **dict.fromkeys((RANDOM, NEW_DICT), "w"),
    **dict.fromkeys(COMPARED, "rrj"),
    **dict.fromkeys((JUMP_TRUE, JUMP_FALSE, JUMP_SET), "rj"),
    **dict.fromkeys((ATTRIBUTE, ATTRIBUTE_OR_UNSET), "wra"),
    **dict.fromkeys((NEW_LIST, NEW_TUPLE), "wrn"),
    JUMP: "j", ANSWER: "r", LEAVE: "", END: "", SET_ITEM: "rrr", SLICE: "wr3", CLIP: "w3", CALL: "wrf", APPEND: "rr",
    RANGE: "3", RANGE_NEXT: "3wj", NEXT: "2wj", STORE: "rr", IS_CLOSE: "w4", CALL_ROUTINE: "wwj", ENTER: " wn",
    RETURN: "r", GET: "wr2", UNSET_REGISTERS: " wn", UNPACK: "rwn",
}  # fmt: skip
"""The operands of each instruction: a space none; `r` any register; `w` a register of a decision; `2`, `3` and `4` the
first of so many; `j` a jump; `a` an attribute, `f` a function; `n` how many registers follow from that before."""

ATTRIBUTES: Final = (
    "n_players", "n_rounds", "k", "m", "capacity", "round_number", "my_actions", "my_payoffs", "opponent_cooperators",
    "size", "value", "opponent_counts", "actions",
)  # fmt: skip
"""What can be read of things; the first are those of a game's description."""
N_PARAMETERS: Final = 5
ROUND_NUMBER: Final = 5
ARRAY_NAMES: Final = 6
SIZE: Final = 9
VALUE: Final = 10
OPPONENT_COUNTS: Final = 11
ACTION_NAMES: Final = 12

FUNCTIONS: Final = (
    "int", "float", "bool", "abs", "len", "round", "math_ceil", "math_floor", "math_trunc", "math_sqrt",
    "math_isfinite", "math_isnan", "math_isinf", "sum", "max", "min", "all", "any", "numpy_sum", "numpy_mean",
    "numpy_max", "numpy_min", "numpy_all", "numpy_any", "numpy_std", "numpy_var", "not", "negative", "positive",
    "invert", "list", "reversed", "numpy_array", "as_bools", "as_ints", "as_floats", "tolist", "numpy_median",
    "numpy_argmax", "numpy_argmin", "tuple", "sorted", "as_dict", "numpy_count_nonzero", "numpy_arange", "math_exp",
    "math_log", "numpy_abs",
)  # fmt: skip
"""Functions of one argument, in the order of their numbers."""
(
    INT_OF, FLOAT_OF, BOOL_OF, ABS, LEN, ROUND, MATH_CEIL, MATH_FLOOR, MATH_TRUNC, MATH_SQRT,
    MATH_ISFINITE, MATH_ISNAN, MATH_ISINF, SUM, MAX, MIN, ALL, ANY, NUMPY_SUM, NUMPY_MEAN,
    NUMPY_MAX, NUMPY_MIN, NUMPY_ALL, NUMPY_ANY, NUMPY_STD, NUMPY_VAR, NOT, NEGATIVE, POSITIVE,
    INVERT, LIST_OF, REVERSED, NUMPY_ARRAY, AS_BOOLS, AS_INTS, AS_FLOATS, TO_LIST, NUMPY_MEDIAN,
    NUMPY_ARGMAX, NUMPY_ARGMIN, TUPLE_OF, SORTED, AS_DICT, NUMPY_COUNT_NONZERO, NUMPY_ARANGE, MATH_EXP,
    MATH_LOG, NUMPY_ABS,
) = range(len(FUNCTIONS))  # fmt: skip
INSTRUCTION_LIMIT: Final = 20_000
"""Instructions that decisions of a strategy's players in a batch may take on average before they are left to Python."""
ROUTINES_LIMIT: Final = 1 << 30
"""The same for all decisions of a strategy with routines: some seconds, as Python gives it by default."""
MOST_CALLS: Final = 64
"""Calls of routines within each other; even with all that is inlined, Python allows as many."""
