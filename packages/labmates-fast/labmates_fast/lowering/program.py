"""Programs for the machine, and their parts: registers and instructions."""

from __future__ import annotations

import ast
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NewType

import numpy as np
from numpy.typing import NDArray

from labmates_fast import instructions as ops

MOST_REGISTERS = 400
MOST_INSTRUCTIONS = 4000
DESCRIPTION = "v_game_description"


class UnloweredError(Exception):
    """A strategy has a construct without an instruction."""


class RecursiveError(Exception):
    """A function that was to be inlined calls itself; `name` is its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True)
class Program:
    """A strategy as instructions.

    Attributes
    ----------
    code
        Instructions, ``(instructions, 4)``; the creation of a player first.
    deciding
        Index of the first instruction of a decision.
    registers
        The initial registers of a player: alternating kinds and values, of attributes, then constants.
    words
        Number of words of all registers.
    keeps_lists
        Whether lists may outlive a decision.
    arguments
        Number of a decision's arguments: 1 for the history, 2 with a stock.
    """

    code: NDArray[np.int16]
    deciding: int
    registers: NDArray[np.int64]
    words: int
    keeps_lists: bool
    arguments: int

    @property
    def has_routines(self) -> bool:
        """Whether a function calls itself."""
        return bool((self.code[:, 0] == ops.ENTER).any())

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers."""
        return bool(np.isin(self.code[:, 0], (ops.RANDOM, ops.RANDOM_BELOW)).any())


_HEAD = struct.Struct("<6q")


def packed(program: Program) -> bytes:
    """A program as bytes."""
    facts = program.deciding, program.words, program.keeps_lists, program.arguments
    head = _HEAD.pack(len(program.code), len(program.registers), *facts)
    return head + program.code.tobytes() + program.registers.tobytes()


def unpacked(data: bytes) -> Program:
    """The program of some bytes, which `verification` checks."""
    length, registers, deciding, words, keeps_lists, arguments = _HEAD.unpack_from(data)
    code = np.frombuffer(data, np.int16, 4 * length, _HEAD.size).reshape(-1, 4)
    initial = np.frombuffer(data, np.int64, registers, _HEAD.size + code.nbytes)
    return Program(code, deciding, initial, words, bool(keeps_lists), arguments)


Register = NewType("Register", int)
"""A register: its number within one of the parts of the registers below; other operands are smaller."""
ATTRIBUTE, CONSTANT, LOCAL = Register(1 << 24), Register(2 << 24), Register(3 << 24)


class Scope:
    """The variables and functions of a function; `result` is where an inlined one puts what it returns."""

    def __init__(self, outer: Scope | None, result: Register | None) -> None:
        self.outer = outer
        self.result = result
        self.ends: list[int] = []
        self.variables: dict[str, Register] = {}
        self.functions: dict[str, ast.FunctionDef] = {}

    def holds(self, register: Register) -> bool:
        """Whether a register is one of the variables in this scope and those around it."""
        if register in self.variables.values():
            return True
        return self.outer is not None and self.outer.holds(register)

    def find(self, name: str) -> Scope | None:
        """The scope of a variable or function; None if it is of none."""
        if name in self.variables or name in self.functions:
            return self
        return self.outer.find(name) if self.outer is not None else None


class Assembly:
    """A program under construction: its registers, constants and instructions.

    Parameters
    ----------
    node
        The strategy's rewritten class.
    variables
        The variables assigned in each of its functions.
    recursive
        The names of functions that call themselves: each becomes a routine, others are inlined.
    """

    def __init__(
        self, node: ast.ClassDef, variables: Mapping[ast.FunctionDef, Sequence[str]], recursive: Collection[str] = ()
    ) -> None:
        self._code: list[list[int]] = []
        self._landing = -1
        """The instruction that jumps last were made to go to, which may be the next one."""
        self._attributes: dict[str, Register] = {}
        self._constants: dict[tuple[int, int], Register] = {}
        self._texts = {"": 0}
        self._assigned = variables
        self._locals = 0
        self._most_locals = 2
        self._methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
        values = {target.id: one.value for one in node.body if isinstance(one, ast.Assign)
                  for target in one.targets if isinstance(target, ast.Name)}  # fmt: skip
        stored = {one.attr for method in self._methods.values() for one in ast.walk(method)
                  if isinstance(one, ast.Attribute) and not isinstance(one.ctx, ast.Load)}  # fmt: skip
        self._initial = values
        """What the class assigns to its attributes."""
        self._class_values = {name: value for name, value in values.items() if name not in stored}
        """The constants of the class among these."""
        self._containers: dict[str, Register] = {}
        self._stores_lists = False
        self._scope = Scope(None, None)
        self._self = ""
        self._loops: list[tuple[list[int], list[int]]] = []
        self._inlined: list[str] = []
        self._comprehensions = 0
        self._recursive = recursive
        self._routines: dict[tuple[ast.FunctionDef, Scope | None], int] = {}
        """Where the routines begin; a function within another one is one for each inlined copy of that."""

    def _new(self) -> Register:
        register = Register(LOCAL + self._locals)
        self._locals += 1
        self._most_locals = max(self._most_locals, self._locals)
        return register

    def _attribute(self, name: str) -> Register:
        return self._attributes.setdefault(name, Register(ATTRIBUTE + len(self._attributes)))

    def _constant(self, value: object) -> Register:
        return self._constant_of(*self._value(value))

    def _constant_of(self, kind: int, value: int | float) -> Register:
        # 0.0 and -0.0 are equal, and so are 1 and 1.0: the word tells them apart.
        key = kind, _word(value)
        if key not in self._constants:
            self._constants[key] = Register(CONSTANT + len(self._constants))
        return self._constants[key]

    def _value(self, value: object) -> tuple[int, int | float]:
        match value:
            case None:
                return ops.NONE, 0
            case bool():
                return ops.BOOL, int(value)
            case int() if abs(value) <= 1 << 53:
                return ops.INT, value
            case float():
                return ops.FLOAT, value
            case str():
                return ops.TEXT, self._texts.setdefault(value, len(self._texts))
        raise UnloweredError(f"a constant {value!r:.40}")

    def _emit(self, op: int, first: int = 0, second: int = 0, third: int = 0) -> int:
        place = len(self._code)
        if place == MOST_INSTRUCTIONS:
            raise UnloweredError("too large")
        self._code.append([op, first, second, third])
        return place

    def _patch(self, places: Sequence[int], target: int | None = None) -> None:
        """Let jumps go to an instruction; by default the next one."""
        if places and target is None:
            self._landing = len(self._code)
        for place in places:
            row = self._code[place]
            row[1 + ops.FORMS[row[0]].index("j")] = (len(self._code) if target is None else target) - place - 1

    def _jump(self, target: int) -> None:
        self._patch([self._emit(ops.JUMP, 0)], target)

    def _made(self, into: Register | None, op: int, first: int = 0, second: int = 0) -> Register:
        target = self._new() if into is None else into
        self._emit(op, target, first, second)
        return target

    def _kept(self, value: Register) -> Register:
        """A copy in a new register."""
        return self._made(None, ops.MOVE, value)

    def _laid_out(self, deciding: int, arguments: int) -> Program:
        initial = self._initial
        words: list[int] = []
        for name in self._attributes:
            try:
                kind, value = self._value(ast.literal_eval(initial[name])) if name in initial else (ops.UNSET, 0)
            except ValueError as error:
                raise UnloweredError("a constant of the class") from error
            words += kind, _word(value)
        constants = len(words) // 2
        words.extend(chain.from_iterable(self._constants))
        locals_ = len(words) // 2
        count = locals_ + self._most_locals
        if count > MOST_REGISTERS or len(self._code) > MOST_INSTRUCTIONS:
            raise UnloweredError("too large")
        before = 0, -ATTRIBUTE, constants - CONSTANT, locals_ - LOCAL
        operands = [2 * (one + before[one >> 24]) if one >= ATTRIBUTE else one for row in self._code for one in row]
        code = np.array(operands, np.int16).reshape(-1, 4)
        return Program(code, deciding, np.array(words, np.int64), 2 * count, self._keeps_lists(), arguments)

    def _keeps_lists(self) -> bool:
        """Whether lists may outlive a decision."""
        made = {row[0] for row in self._code}
        if ops.ENTER in made:  # routines need the large heap, which a decision gives back
            return False
        makes_lists = bool(made & {ops.NEW_LIST, ops.NEW_TUPLE, ops.NEW_DICT}) or any(
            row[0] == ops.CALL and row[3] in (ops.LIST_OF, ops.TO_LIST, ops.REVERSED, ops.TUPLE_OF, ops.SORTED)
            for row in self._code
        )
        return makes_lists and self._stores_lists


def _word(value: int | float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0]) if isinstance(value, float) else int(value)
