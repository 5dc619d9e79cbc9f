"""Instructions for `machine` from a compiled strategy: those that it can execute, of which scalars are the most part.

The input is a class as `compiler` rewrites it. Methods are inlined where they are called. What has no instruction
makes the class unfit; what raises leaves the player to Python when it comes to that.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates.workflows.populations.engine.kernel import instructions as ops

MOST_REGISTERS = 400
MOST_INSTRUCTIONS = 4000
_OPERATORS: dict[type[ast.AST], int] = {
    ast.Add: ops.ADD, ast.Sub: ops.SUBTRACT, ast.Mult: ops.MULTIPLY, ast.Div: ops.DIVIDE,
    ast.FloorDiv: ops.FLOOR_DIVIDE, ast.Mod: ops.MODULO, ast.Pow: ops.POWER, ast.BitAnd: ops.BIT_AND,
    ast.BitOr: ops.BIT_OR, ast.Lt: ops.LESS, ast.LtE: ops.LESS_EQUAL, ast.Gt: ops.GREATER,
    ast.GtE: ops.GREATER_EQUAL, ast.Eq: ops.EQUAL, ast.NotEq: ops.NOT_EQUAL, ast.Not: ops.NOT,
    ast.USub: ops.NEGATIVE, ast.UAdd: ops.POSITIVE, ast.Invert: ops.INVERT,
}  # fmt: skip
_FUNCTIONS = {name: number for number, name in enumerate(ops.FUNCTIONS)} | {
    "numpy_asarray": ops.NUMPY_ARRAY
}  # fmt: skip
_METHODS = {
    "sum": ops.NUMPY_SUM, "mean": ops.NUMPY_MEAN, "max": ops.NUMPY_MAX, "min": ops.NUMPY_MIN, "all": ops.NUMPY_ALL,
    "any": ops.NUMPY_ANY, "std": ops.NUMPY_STD, "var": ops.NUMPY_VAR, "tolist": ops.TO_LIST,
}  # fmt: skip
_KINDS = {"bool": ops.AS_BOOLS, "numpy_bool_": ops.AS_BOOLS, "int": ops.AS_INTS, "numpy_int64": ops.AS_INTS,
          "numpy_int_": ops.AS_INTS, "float": ops.AS_FLOATS, "numpy_float64": ops.AS_FLOATS}  # fmt: skip
_VALUES: dict[str, tuple[int, int | float]] = {
    "C": (ops.ACTION, 1), "D": (ops.ACTION, 0), "math_inf": (ops.FLOAT, float("inf")),
    "numpy_inf": (ops.FLOAT, float("inf")), "math_pi": (ops.FLOAT, float(np.pi)), "math_e": (ops.FLOAT, float(np.e)),
}  # fmt: skip
_INSTANCES = {
    "bool": (ops.BOOL,), "int": (ops.BOOL, ops.INT), "float": (ops.FLOAT, ops.NUMPY_FLOAT),
    "numpy_bool_": (ops.NUMPY_BOOL,), "numpy_int64": (ops.NUMPY_INT,), "numpy_integer": (ops.NUMPY_INT,),
    "numpy_float64": (ops.NUMPY_FLOAT,), "numpy_floating": (ops.NUMPY_FLOAT,),
    "numpy_ndarray": (ops.BOOLS, ops.INTS, ops.FLOATS),
}  # fmt: skip
_DESCRIPTION = "v_game_description"


class UnloweredError(Exception):
    """A strategy has something that there is no instruction for."""


@dataclass(frozen=True)
class Program:
    """A strategy as instructions.

    Attributes
    ----------
    code
        Instructions, ``(instructions, 4)``; first those that make a player.
    deciding
        Where those of a decision begin.
    registers
        The first registers of a player when it begins: kinds and values in turns, attributes first, then constants.
    words
        How many words all registers take.
    keeps_lists
        Whether lists may outlive a decision.
    """

    code: NDArray[np.int16]
    deciding: int
    registers: NDArray[np.int64]
    words: int
    keeps_lists: bool


class _Register(int):
    """A register by its number within its part; operands that are plain integers are none."""

    part: str

    def __new__(cls, part: str, number: int) -> _Register:
        made = super().__new__(cls, number)
        made.part = part
        return made


def lower(node: ast.ClassDef) -> Program:
    """The instructions of a strategy.

    Parameters
    ----------
    node
        Its class, rewritten.

    Raises
    ------
    UnloweredError
        If there are none for something in it.
    """
    lowering = _Lowering(node)
    try:
        return lowering.program()
    except RecursionError as error:
        raise UnloweredError("nested too deep") from error


class _Scope:
    """The variables and functions of one function that is being inlined."""

    def __init__(self, outer: _Scope | None, result: _Register | None) -> None:
        self.outer = outer
        self.result = result
        self.ends: list[int] = []
        self.variables: dict[str, _Register] = {}
        self.functions: dict[str, ast.FunctionDef] = {}

    def find(self, name: str) -> _Scope | None:
        """The scope that a variable or function is of."""
        if name in self.variables or name in self.functions:
            return self
        return self.outer.find(name) if self.outer is not None else None


class _Lowering(ast.NodeVisitor):
    """A class whose instructions are being made.

    Statements are visited with nothing else, expressions with a register that the result may be put into.
    """

    def __init__(self, node: ast.ClassDef) -> None:
        self._code: list[list[int]] = []
        self._attributes: dict[str, _Register] = {}
        self._constants: dict[tuple[int, Any], _Register] = {}
        self._texts = {"": 0}
        self._locals = 0
        self._most_locals = 2
        self._methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
        self._initial = [one for one in node.body if isinstance(one, ast.Assign)]
        self._scope = _Scope(None, None)
        self._self = ""
        self._loops: list[tuple[list[int], list[int]]] = []
        self._inlined: list[str] = []

    def program(self) -> Program:
        made = self._methods.get("__init__")
        if made is not None:
            self._begin(made, 1)
            self._block(made.body)
        else:
            self._emit(ops.STORE, self._attribute(_DESCRIPTION), _Register("local", 0))
        self._patch(self._scope.ends)
        self._emit(ops.END)
        deciding = len(self._code)
        call = self._methods["__call__"]
        self._begin(call, 2)
        self._block(call.body)
        self._patch(self._scope.ends)
        self._emit(ops.LEAVE)
        return self._laid_out(deciding)

    def _begin(self, function: ast.FunctionDef, most: int) -> None:
        arguments = _plain_arguments(function)
        if not 2 <= len(arguments) <= most + 1 or function.args.defaults:
            raise UnloweredError("arguments of its own")
        self._self = arguments[0]
        self._scope = _Scope(None, None)
        self._scope.variables = {name: _Register("local", place) for place, name in enumerate(arguments[1:])}
        self._locals = 2
        self._declare(function)

    def _declare(self, function: ast.FunctionDef) -> None:
        """Give each variable that a function assigns a register of its own."""
        for name in _assigned(function):
            if name not in self._scope.variables:
                self._scope.variables[name] = self._new()
                if self._loops or self._inlined:
                    self._emit(ops.UNSET_REGISTER, self._scope.variables[name])

    def _laid_out(self, deciding: int) -> Program:
        initial = {target.id: one.value for one in self._initial for target in one.targets
                   if isinstance(target, ast.Name)}  # fmt: skip
        values: list[tuple[int, int | float]] = []
        for name in self._attributes:
            try:
                values.append(self._value(ast.literal_eval(initial[name])) if name in initial else (ops.UNSET, 0))
            except ValueError as error:
                raise UnloweredError("a constant of the class") from error
        starts = {"attribute": 0, "constant": len(values)}
        values += self._constants
        starts["local"] = len(values)
        count = len(values) + self._most_locals
        if count > MOST_REGISTERS or len(self._code) > MOST_INSTRUCTIONS:
            raise UnloweredError("too large")
        code = np.zeros((len(self._code), 4), np.int16)
        for place, row in enumerate(self._code):
            code[place, : len(row)] = [
                2 * (starts[one.part] + one) if isinstance(one, _Register) else one for one in row
            ]
        words = [word for kind, value in values for word in (kind, _word(value))]
        made = {row[0] for row in self._code}
        makes_lists = bool(made & {ops.NEW_LIST, ops.NEW_TUPLE}) or any(
            row[0] == ops.CALL and row[3] in (ops.LIST_OF, ops.TO_LIST, ops.REVERSED) for row in self._code
        )
        stored = {row[1] for row in self._code if row[0] == ops.STORE} - {self._attributes.get(_DESCRIPTION)}
        keeps_lists = makes_lists and bool(stored)
        return Program(code, deciding, np.array(words, np.int64), 2 * count, keeps_lists)

    # Registers

    def _new(self) -> _Register:
        register = _Register("local", self._locals)
        self._locals += 1
        self._most_locals = max(self._most_locals, self._locals)
        return register

    @contextmanager
    def _temporary(self) -> Iterator[None]:
        """Registers that are taken within are free again afterwards."""
        before = self._locals
        yield
        self._locals = before

    def _attribute(self, name: str) -> _Register:
        return self._attributes.setdefault(name, _Register("attribute", len(self._attributes)))

    def _constant(self, value: object) -> _Register:
        return self._constant_of(*self._value(value))

    def _constant_of(self, kind: int, value: int | float) -> _Register:
        # 0.0 and -0.0 are equal, and so are 1 and 1.0: the word tells them apart.
        key = kind, _Word(value)
        return self._constants.setdefault(key, _Register("constant", len(self._constants)))

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

    # Instructions

    def _emit(self, op: int, *operands: int) -> int:
        self._code.append([op, *operands])
        if len(self._code) > MOST_INSTRUCTIONS:
            raise UnloweredError("too large")
        return len(self._code) - 1

    def _patch(self, places: Sequence[int], target: int | None = None) -> None:
        """Let jumps go to an instruction; by default the next one."""
        for place in places:
            row = self._code[place]
            row[1 + ops.FORMS[row[0]].index("j")] = (len(self._code) if target is None else target) - place - 1

    def _jump(self, target: int) -> None:
        self._patch([self._emit(ops.JUMP, 0)], target)

    # Statements

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            handler: Callable[[Any], None] | None = getattr(self, f"visit_{type(statement).__name__}", None)
            if handler is None:
                raise UnloweredError(type(statement).__name__)
            with self._temporary():
                handler(statement)

    def visit_Pass(self, _node: ast.Pass) -> None:
        pass

    def visit_Expr(self, node: ast.Expr) -> None:
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Name("BaseStrategy"), attr="__init__"), args=[_, description]):
                self._emit(ops.STORE, self._attribute(_DESCRIPTION), self._expression(description))
            case ast.Call(func=ast.Attribute(value=target, attr="append"), args=[item], keywords=[]):
                if self._is_self(target):
                    raise UnloweredError("a method append")
                sequence, register = self._operands(target, item)
                self._emit(ops.APPEND, sequence, register)
            case value:
                self._expression(value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            value = self._kept(self._expression(node.value))
            for target in node.targets:
                self._store(target, value)
            return
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            if len(target.elts) != len(node.value.elts):
                raise UnloweredError("unpacks another number")
            values = [self._kept(self._expression(one)) for one in node.value.elts]
            for one, register in zip(target.elts, values, strict=True):
                self._store(one, register)
            return
        into = self._variable(target.id) if isinstance(target, ast.Name) else None
        value = self._expression(node.value, into)
        if value is not into:
            self._store(target, value)

    def _store(self, target: ast.expr, value: _Register) -> None:
        match target:
            case ast.Name(id=name):
                self._emit(ops.MOVE, self._variable(name), value)
            case ast.Attribute(value=thing, attr=name) if self._is_self(thing):
                self._emit(ops.STORE, self._attribute(name), value)
            case ast.Tuple(elts=targets):
                length = self._made(None, ops.CALL, value, ops.LEN)
                same = self._made(None, ops.EQUAL, length, self._constant(len(targets)))
                jump = self._emit(ops.JUMP_TRUE, same, 0)
                self._emit(ops.LEAVE)
                self._patch([jump])
                for place, one in enumerate(targets):
                    self._store(one, self._made(None, ops.ITEM, value, self._constant(place)))
            case ast.Subscript(value=sequence, slice=index) if not isinstance(index, ast.Slice):
                value = self._kept(value)
                place, number = self._operands(sequence, index)
                self._emit(ops.SET_ITEM, place, number, value)
            case _:
                raise UnloweredError("assigns to something else")

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        match node.target:
            case ast.Name(id=name):
                left = self._variable(name)
            case ast.Attribute(value=thing, attr=name) if self._is_self(thing):
                left = self._attribute(name)
            case _:
                raise UnloweredError("assigns in place to something else")
        operator = _OPERATORS.get(type(node.op))
        if operator is None:
            raise UnloweredError("an operator in place")
        before = self._kept(left) if _has_effects(node.value) else left
        value = self._expression(node.value)
        if before.part != "local":
            self._store(node.target, self._made(None, operator, before, value))
            return
        self._emit(operator, before, before, value)
        if before is not left:
            self._store(node.target, before)

    def visit_Return(self, node: ast.Return) -> None:
        value = self._constant(None) if node.value is None else self._expression(node.value)
        if self._scope.result is not None:
            self._emit(ops.MOVE, self._scope.result, value)
            self._scope.ends.append(self._emit(ops.JUMP, 0))
        elif node.value is None:
            self._scope.ends.append(self._emit(ops.JUMP, 0))
        else:
            self._emit(ops.ANSWER, value)

    def visit_If(self, node: ast.If) -> None:
        with self._temporary():
            otherwise = self._condition(node.test, jump_if=False)
        self._block(node.body)
        if node.orelse:
            end = self._emit(ops.JUMP, 0)
            self._patch(otherwise)
            self._block(node.orelse)
            self._patch([end])
        else:
            self._patch(otherwise)

    def visit_While(self, node: ast.While) -> None:
        start = len(self._code)
        with self._temporary():
            ends = self._condition(node.test, jump_if=False)
        self._loop(start, ends, node.body, node.orelse)

    def visit_For(self, node: ast.For) -> None:
        start, ends = self._iterate(node.target, node.iter)
        self._loop(start, ends, node.body, node.orelse)

    def _loop(self, start: int, ends: list[int], body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        breaks: list[int] = []
        continues: list[int] = []
        self._loops.append((breaks, continues))
        self._block(body)
        self._loops.pop()
        self._patch(continues, start)
        self._jump(start)
        self._patch(ends)
        self._block(orelse)
        self._patch(breaks)

    def visit_Break(self, _node: ast.Break) -> None:
        self._loops[-1][0].append(self._emit(ops.JUMP, 0))

    def visit_Continue(self, _node: ast.Continue) -> None:
        self._loops[-1][1].append(self._emit(ops.JUMP, 0))

    def visit_Try(self, node: ast.Try) -> None:
        # What raises is left to Python, and with it what is done then.
        self._block([*node.body, *node.orelse])

    def visit_Raise(self, _node: ast.Raise) -> None:
        self._emit(ops.LEAVE)

    def visit_Assert(self, node: ast.Assert) -> None:
        true = self._condition(node.test, jump_if=True)
        self._emit(ops.LEAVE)
        self._patch(true)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if any(isinstance(one, ast.Nonlocal) for one in ast.walk(node)):
            raise UnloweredError("Nonlocal")
        self._scope.functions[node.name] = node

    # Loops

    def _iterate(self, target: ast.expr, sequence: ast.expr) -> tuple[int, list[int]]:
        """Begin a loop: where its next turn begins, and the jumps to its end."""
        match sequence:
            case ast.Call(func=ast.Name("range"), args=arguments, keywords=[]) if 1 <= len(arguments) <= 3:
                return self._iterate_range(target, arguments)
            case ast.Call(func=ast.Name("reversed"), args=[ast.Call(func=ast.Name("range"), args=arguments)]):
                return self._iterate_range(target, _backwards(arguments))
            case ast.Call(func=ast.Name("zip"), args=sequences, keywords=[]) if isinstance(target, ast.Tuple):
                return self._iterate_many(target.elts, sequences)
            case ast.Call(func=ast.Name("enumerate"), args=[inner], keywords=[]):
                if not (isinstance(target, ast.Tuple) and len(target.elts) == 2):
                    raise UnloweredError("enumerate")
                number = self._kept(self._constant(0))
                start, ends = self._iterate(target.elts[1], inner)
                self._store(target.elts[0], number)
                self._emit(ops.ADD, number, number, self._constant(1))
                return start, ends
        return self._iterate_many([target], [sequence])

    def _iterate_range(self, target: ast.expr, arguments: Sequence[ast.expr]) -> tuple[int, list[int]]:
        values: list[ast.expr] = [ast.Constant(0), *arguments] if len(arguments) == 1 else [*arguments]
        first, stop, step = (self._new() for _ in range(3))
        for register, value in zip((first, stop, step), [*values, ast.Constant(1)], strict=False):
            self._emit(ops.MOVE, register, self._expression(value))
        self._emit(ops.RANGE, first)
        item = self._new()
        start = len(self._code)
        ends = [self._emit(ops.RANGE_NEXT, first, item, 0)]
        self._store(target, item)
        return start, ends

    def _iterate_many(self, targets: Sequence[ast.expr], sequences: Sequence[ast.expr]) -> tuple[int, list[int]]:
        if len(targets) != len(sequences):
            raise UnloweredError("unpacks another number")
        states = []
        for sequence in sequences:
            state, number = self._new(), self._new()
            self._emit(ops.MOVE, state, self._expression(sequence))
            self._emit(ops.MOVE, number, self._constant(0))
            states.append(state)
        items = [self._new() for _ in targets]
        start = len(self._code)
        ends = [self._emit(ops.NEXT, state, item, 0) for state, item in zip(states, items, strict=True)]
        for target, item in zip(targets, items, strict=True):
            self._store(target, item)
        return start, ends

    # Conditions

    def _condition(self, node: ast.expr, *, jump_if: bool) -> list[int]:
        """Jumps that are taken if a condition is true (or if it is false)."""
        match node:
            case ast.BoolOp(op=operator, values=values):
                deciding = isinstance(operator, ast.Or)
                jumps = [jump for one in values[:-1] for jump in self._condition(one, jump_if=deciding)]
                last = self._condition(values[-1], jump_if=jump_if)
                if jump_if == deciding:
                    return [*jumps, *last]
                self._patch(jumps)
                return last
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._condition(operand, jump_if=not jump_if)
        register = self._expression(node)
        return [self._emit(ops.JUMP_TRUE if jump_if else ops.JUMP_FALSE, register, 0)]

    # Expressions

    def _expression(self, node: ast.expr, into: _Register | None = None) -> _Register:
        """The register with a value.

        Parameters
        ----------
        into
            Where it may be put, as the last thing that is done.
        """
        handler: Callable[[Any, _Register | None], _Register] | None
        handler = getattr(self, f"visit_{type(node).__name__}", None)
        if handler is None:
            raise UnloweredError(type(node).__name__)
        register: _Register = handler(node, into)
        return register

    def _made(self, into: _Register | None, op: int, *operands: int) -> _Register:
        target = self._new() if into is None else into
        self._emit(op, target, *operands)
        return target

    def _kept(self, value: _Register) -> _Register:
        """A copy that nothing changes."""
        return self._made(None, ops.MOVE, value)

    def _operands(self, *nodes: ast.expr) -> list[_Register]:
        """The values of several expressions; what one of them changes is copied before."""
        registers = []
        for place, node in enumerate(nodes):
            register = self._expression(node)
            changed = any(map(_has_effects, nodes[place + 1 :]))
            registers.append(self._kept(register) if changed else register)
        return registers

    def visit_Constant(self, node: ast.Constant, into: _Register | None = None) -> _Register:
        return self._constant(node.value)

    def _variable(self, name: str) -> _Register:
        scope = self._scope.find(name)
        if scope is None or name not in scope.variables:
            raise UnloweredError(f"the name {name}")
        return scope.variables[name]

    def visit_Name(self, node: ast.Name, into: _Register | None = None) -> _Register:
        if node.id in _VALUES:
            return self._constant_of(*_VALUES[node.id])
        return self._variable(node.id)

    def _is_self(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self._self

    def visit_Attribute(self, node: ast.Attribute, into: _Register | None = None) -> _Register:
        if self._is_self(node.value):
            return self._attribute(node.attr)
        if node.attr not in ops.ATTRIBUTES:
            raise UnloweredError(f"the attribute {node.attr}")
        return self._made(into, ops.ATTRIBUTE, self._expression(node.value), ops.ATTRIBUTES.index(node.attr))

    def visit_BinOp(self, node: ast.BinOp, into: _Register | None = None) -> _Register:
        return self._binary(type(node.op), node.left, node.right, into)

    def _binary(self, operator: type[ast.AST], left: ast.expr, right: ast.expr, into: _Register | None) -> _Register:
        if operator not in _OPERATORS:
            raise UnloweredError(operator.__name__)
        operands = self._operands(left, right)
        # The machine takes an operator whose target is its left operand for an assignment in place.
        return self._made(None if operands[0] is into else into, _OPERATORS[operator], *operands)

    def visit_UnaryOp(self, node: ast.UnaryOp, into: _Register | None = None) -> _Register:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return self._constant(-value)
        return self._made(into, ops.CALL, self._expression(node.operand), _OPERATORS[type(node.op)])

    def visit_Compare(self, node: ast.Compare, into: _Register | None = None) -> _Register:
        if len(node.ops) == 1:
            left, right = self._operands(node.left, node.comparators[0])
            return self._compared(node.ops[0], left, right, into)
        target = self._new()
        values = self._operands(node.left, *node.comparators)
        if any(map(_has_effects, node.comparators[1:])):
            raise UnloweredError("a chain of comparisons that calls")
        ends = []
        for place, operator in enumerate(node.ops):
            self._compared(operator, values[place], values[place + 1], target)
            if place < len(node.ops) - 1:
                ends.append(self._emit(ops.JUMP_FALSE, target, 0))
        self._patch(ends)
        return target

    def _compared(self, operator: ast.cmpop, left: _Register, right: _Register, into: _Register | None) -> _Register:
        match operator:
            case ast.Is() | ast.In():
                return self._made(into, ops.IS if isinstance(operator, ast.Is) else ops.CONTAINS, left, right)
            case ast.IsNot() | ast.NotIn():
                op = ops.IS if isinstance(operator, ast.IsNot) else ops.CONTAINS
                return self._made(into, ops.CALL, self._made(None, op, left, right), ops.NOT)
        return self._made(into, _OPERATORS[type(operator)], left, right)

    def visit_BoolOp(self, node: ast.BoolOp, into: _Register | None = None) -> _Register:
        target = self._new()
        jump = ops.JUMP_TRUE if isinstance(node.op, ast.Or) else ops.JUMP_FALSE
        ends = []
        for value in node.values:
            with self._temporary():
                self._emit(ops.MOVE, target, self._expression(value))
            ends.append(self._emit(jump, target, 0))
        self._patch(ends)
        return target

    def visit_IfExp(self, node: ast.IfExp, into: _Register | None = None) -> _Register:
        target = self._new()
        with self._temporary():
            otherwise = self._condition(node.test, jump_if=False)
            self._emit(ops.MOVE, target, self._expression(node.body))
        end = self._emit(ops.JUMP, 0)
        self._patch(otherwise)
        with self._temporary():
            self._emit(ops.MOVE, target, self._expression(node.orelse))
        self._patch([end])
        return target

    def visit_NamedExpr(self, node: ast.NamedExpr, into: _Register | None = None) -> _Register:
        value = self._expression(node.value)
        self._store(node.target, value)
        return value

    def visit_Subscript(self, node: ast.Subscript, into: _Register | None = None) -> _Register:
        if not isinstance(node.slice, ast.Slice):
            return self._made(into, ops.ITEM, *self._operands(node.value, node.slice))
        nothing = ast.Constant(None)
        parts = [node.slice.lower or nothing, node.slice.upper or nothing, node.slice.step or nothing]
        sequence, *values = self._operands(node.value, *parts)
        return self._made(into, ops.SLICE, sequence, self._in_a_row(values))

    def _in_a_row(self, values: Sequence[_Register]) -> _Register:
        """The first of registers that follow each other, with copies of values."""
        row = [self._new() for _ in values] or [self._new()]
        for register, value in zip(row, values, strict=False):
            self._emit(ops.MOVE, register, value)
        return row[0]

    def visit_List(self, node: ast.List | ast.Tuple, into: _Register | None = None) -> _Register:
        first = self._in_a_row(self._operands(*node.elts))
        return self._made(into, ops.NEW_LIST if isinstance(node, ast.List) else ops.NEW_TUPLE, first, len(node.elts))

    def visit_Tuple(self, node: ast.Tuple, into: _Register | None = None) -> _Register:
        return self.visit_List(node, into)

    def visit_ListComp(self, node: ast.ListComp, into: _Register | None = None) -> _Register:
        target = self._made(None, ops.NEW_LIST, self._new(), 0)
        self._generate(node, lambda item: [self._emit(ops.APPEND, target, item)][1:])
        return target

    def _generate(self, node: ast.ListComp | ast.GeneratorExp, each: Callable[[_Register], list[int]]) -> None:
        """Do something with each item; `each` gives jumps to the end of all."""
        if len(node.generators) != 1:
            raise UnloweredError("several loops in one")
        generator = node.generators[0]
        outer = self._scope
        self._scope = _Scope(outer, outer.result)
        for name in _stored(generator.target):
            self._scope.variables[name] = self._new()
        start, ends = self._iterate(generator.target, generator.iter)
        for condition in generator.ifs:
            self._patch(self._condition(condition, jump_if=False), start)
        with self._temporary():
            ends += each(self._expression(node.elt))
        self._jump(start)
        self._patch(ends)
        outer.functions |= self._scope.functions
        self._scope = outer

    # Calls

    def visit_Call(self, node: ast.Call, into: _Register | None = None) -> _Register:
        match node:
            case ast.Call(func=ast.Attribute(value=thing, attr=name)) if self._is_self(thing):
                return self._inline(self._methods[name], [thing, *node.args], node.keywords)
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=thing, attr="chance"), attr=name)) if (
                self._is_self(thing)
            ):
                return self._drawn(name, node)
            case ast.Call(func=ast.Attribute(value=value, attr="astype"), args=[ast.Name(id=kind)], keywords=[]):
                return self._converted(kind, value, into)
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=[], keywords=[]) if name in _METHODS:
                array = self._expression(value)
                self._made(None, ops.ATTRIBUTE, array, ops.SIZE)  # lists have no such methods, nor a size
                return self._made(into, ops.CALL, array, _METHODS[name])
            case ast.Call(func=ast.Attribute(value=items, attr="pop"), args=[] | [ast.Constant(0)], keywords=[]):
                return self._made(None, ops.POP, self._expression(items), len(node.args))
            case ast.Call(func=ast.Name(id=name)):
                scope = self._scope.find(name)
                if scope is not None:
                    return self._inline(scope.functions[name], node.args, node.keywords)
                return self._library_call(name, node, into)
        raise UnloweredError(f"calls {ast.unparse(node.func):.40}")

    def _converted(self, kind: str, value: ast.expr, into: _Register | None) -> _Register:
        if kind not in _KINDS:
            raise UnloweredError(f"the type {kind}")
        return self._made(into, ops.CALL, self._expression(value), _KINDS[kind])

    def _library_call(self, name: str, node: ast.Call, into: _Register | None) -> _Register:
        match name, node.args, node.keywords:
            case ("numpy_array" | "numpy_asarray", [value], [ast.keyword(arg="dtype", value=ast.Name(id=kind))]):
                array = self._made(None, ops.CALL, self._expression(value), ops.NUMPY_ARRAY)
                return self._made(into, ops.CALL, array, _KINDS[kind]) if kind in _KINDS else self._unfit(name)
            case "getattr", [thing, ast.Constant(value=str(attribute)), *default], []:
                return self._looked_up(thing, attribute, default)
            case "hasattr", [thing, ast.Constant(value=str(attribute))], []:
                return self._is_there(thing, attribute)
            case "isinstance", [value, ast.Tuple(elts=types)], []:
                return self._made(into, ops.IS_KIND, self._expression(value), _kinds_of(types))
            case "float", [ast.Constant(value="inf" | "-inf" as text)], []:
                return self._constant(float(text))
            case "math_comb", [whole, chosen], []:
                return self._made(into, ops.COMBINATIONS, *self._operands(whole, chosen))
            case "math_isclose", [left, right], _:
                return self._is_close(left, right, node.keywords, into)
            case (("max" | "min"), [_, _, *_], []):
                registers = self._operands(*node.args)
                op = ops.MAXIMUM if name == "max" else ops.MINIMUM
                best = registers[0]
                for one in registers[1:-1]:
                    best = self._made(None, op, best, one)
                return self._made(into, op, best, registers[-1])
            case (("sum" | "all" | "any" | "list" | "max" | "min"), [ast.GeneratorExp() as items], []):
                return self._consumed(name, items)
            case "power", [left, right], []:
                return self._binary(ast.Pow, left, right, into)
            case "modulo", [left, right], []:
                return self._binary(ast.Mod, left, right, into)
            case "list", [], []:
                return self._made(into, ops.NEW_LIST, self._new(), 0)
            case _, [value], [] if name in _FUNCTIONS:
                return self._made(into, ops.CALL, self._expression(value), _FUNCTIONS[name])
        return self._unfit(name)

    def _is_close(
        self, left: ast.expr, right: ast.expr, keywords: Sequence[ast.keyword], into: _Register | None
    ) -> _Register:
        tolerances: dict[str | None, ast.expr] = {"rel_tol": ast.Constant(1e-09), "abs_tol": ast.Constant(0.0)}
        tolerances |= {one.arg: one.value for one in keywords}
        if len(tolerances) > 2:
            raise UnloweredError("other arguments of isclose")
        first = self._in_a_row(self._operands(left, right, *tolerances.values()))
        return self._made(into, ops.IS_CLOSE, first, 4)

    def _unfit(self, name: str) -> _Register:
        raise UnloweredError(f"calls {name}")

    def _consumed(self, name: str, items: ast.GeneratorExp) -> _Register:
        """A generator that is summed, listed or asked for truths."""
        if name in ("list", "max", "min"):
            made = self.visit_ListComp(ast.ListComp(items.elt, items.generators), None)
            return made if name == "list" else self._made(None, ops.CALL, made, _FUNCTIONS[name])
        total = self._kept(self._constant(0 if name == "sum" else name == "all"))
        if name == "sum":
            self._generate(items, lambda item: [self._emit(ops.SUM_ADD, total, total, item)][1:])
            return total
        jump = ops.JUMP_FALSE if name == "all" else ops.JUMP_TRUE
        early: list[int] = []

        def each(item: _Register) -> list[int]:
            early.append(self._emit(jump, item, 0))
            return []

        self._generate(items, each)
        end = self._emit(ops.JUMP, 0)
        self._patch(early)
        self._emit(ops.MOVE, total, self._constant(name != "all"))
        self._patch([end])
        return total

    def _looked_up(self, thing: ast.expr, attribute: str, default: Sequence[ast.expr]) -> _Register:
        target = self._lookup(thing, attribute)
        if not default:
            return self._kept(target)
        result = self._new()
        value = self._expression(default[0])
        self._emit(ops.MOVE, result, value)
        absent = self._emit(ops.JUMP_SET, target, 0)
        end = self._emit(ops.JUMP, 0)
        self._patch([absent])
        self._emit(ops.MOVE, result, target)
        self._patch([end])
        return result

    def _lookup(self, thing: ast.expr, attribute: str) -> _Register:
        """A register with an attribute that may be unset."""
        if self._is_self(thing):
            return self._attribute(attribute)
        if attribute not in ops.ATTRIBUTES:
            raise UnloweredError(f"the attribute {attribute}")
        number = ops.ATTRIBUTES.index(attribute)
        return self._made(None, ops.ATTRIBUTE_OR_UNSET, self._expression(thing), number)

    def _is_there(self, thing: ast.expr, attribute: str) -> _Register:
        target = self._lookup(thing, attribute)
        result = self._kept(self._constant(True))
        present = self._emit(ops.JUMP_SET, target, 0)
        self._emit(ops.MOVE, result, self._constant(False))
        self._patch([present])
        return result

    def _drawn(self, name: str, node: ast.Call) -> _Register:
        match name, node.args, node.keywords:
            case "random", [], []:
                return self._made(None, ops.RANDOM)
            case "randint", [ast.Constant(value=int(low)), high], []:
                end = self._made(None, ops.SUBTRACT, self._expression(high), self._constant(low - 1))
                drawn = self._made(None, ops.RANDOM_BELOW, end)
                return self._made(None, ops.ADD, drawn, self._constant(low))
            case "choice", [ast.List() | ast.Tuple() as items], []:
                sequence = self._expression(items)
                return self._made(
                    None, ops.ITEM, sequence, self._made(None, ops.RANDOM_BELOW, self._constant(len(items.elts)))
                )
        raise UnloweredError(f"draws by {name}")

    def _inline(
        self, function: ast.FunctionDef, arguments: Sequence[ast.expr], keywords: Sequence[ast.keyword]
    ) -> _Register:
        names = _plain_arguments(function)
        if function.name in self._inlined or len(self._inlined) > 8:
            raise UnloweredError("a function that calls itself")
        given: dict[str, ast.expr] = dict(zip(names[::-1], function.args.defaults[::-1], strict=False))
        given |= dict(zip(names, arguments, strict=False)) | {str(one.arg): one.value for one in keywords}
        if len(arguments) > len(names) or given.keys() != set(names):
            raise UnloweredError("other arguments than a function has")
        method = bool(arguments) and self._is_self(arguments[0])
        passed = names[method:]
        values = [self._kept(self._expression(given[name])) for name in passed]
        result = self._new()
        outer, own, loops = self._scope, self._self, self._loops
        # A method sees nothing of who calls it; a function within one does.
        self._scope = _Scope(None if method else outer.find(function.name), result)
        self._scope.variables |= dict(zip(passed, values, strict=True))
        self._self = names[0] if method else own
        self._inlined.append(function.name)
        self._declare(function)
        self._loops = []
        self._block(function.body)
        self._emit(ops.MOVE, result, self._constant(None))
        self._patch(self._scope.ends)
        self._inlined.pop()
        self._scope, self._self, self._loops = outer, own, loops
        return result


class _Word(int):
    """The word that holds a value."""

    def __new__(cls, value: int | float) -> _Word:
        return super().__new__(cls, _word(value))


def _word(value: int | float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0]) if isinstance(value, float) else int(value)


def _plain_arguments(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    if arguments.vararg or arguments.kwonlyargs or arguments.posonlyargs:
        raise UnloweredError("arguments of their own kind")
    return [one.arg for one in arguments.args]


def _backwards(arguments: Sequence[ast.expr]) -> list[ast.expr]:
    """The arguments of the range that goes back through another one with the step 1."""
    start: ast.expr = ast.Constant(0)
    match arguments:
        case [stop]:
            pass
        case [start, stop]:
            pass
        case _:
            raise UnloweredError("reversed")
    one = ast.Constant(1)
    return [ast.BinOp(stop, ast.Sub(), one), ast.BinOp(start, ast.Sub(), one), ast.Constant(-1)]


def _assigned(function: ast.FunctionDef) -> list[str]:
    """The variables that a function assigns: not those of comprehensions and functions within it."""
    waiting: list[ast.AST] = [*function.body]
    names: dict[str, None] = {}
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                names[name] = None
            case ast.Name() | ast.Constant() | ast.FunctionDef() | ast.ListComp() | ast.GeneratorExp() | ast.Lambda():
                continue
        waiting += ast.iter_child_nodes(node)
    return [*names]


def _stored(target: ast.expr) -> list[str]:
    return [one.id for one in ast.walk(target) if isinstance(one, ast.Name)]


def _kinds_of(types: Sequence[ast.expr]) -> int:
    """The kinds of values that are of one of these types, as `instructions.IS_KIND` has them."""
    names = [one.id for one in types if isinstance(one, ast.Name)]
    if len(names) != len(types) or not set(names) <= _INSTANCES.keys():
        raise UnloweredError("isinstance of another type")
    return sum(1 << kind for kind in {kind for name in names for kind in _INSTANCES[name]})


def _has_effects(node: ast.expr) -> bool:
    """Whether a value may change something: it calls a function of the strategy, draws, or assigns."""
    return any(map(_is_effect, ast.walk(node)))


def _is_effect(node: ast.AST) -> bool:
    match node:
        case ast.NamedExpr() | ast.Attribute(attr="chance"):
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name.startswith("v_") or name in ("pop", "insert")
    return False
