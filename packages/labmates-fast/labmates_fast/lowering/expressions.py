"""Instructions for expressions, conditions and iterables of loops."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from labmates_fast import instructions as ops
from labmates_fast.lowering.program import LOCAL, Assembly, Register, UnloweredError

OPERATORS: dict[type[ast.AST], int] = {
    ast.Add: ops.ADD, ast.Sub: ops.SUBTRACT, ast.Mult: ops.MULTIPLY, ast.Div: ops.DIVIDE,
    ast.FloorDiv: ops.FLOOR_DIVIDE, ast.Mod: ops.MODULO, ast.Pow: ops.POWER, ast.BitAnd: ops.BIT_AND,
    ast.BitOr: ops.BIT_OR, ast.Lt: ops.LESS, ast.LtE: ops.LESS_EQUAL, ast.Gt: ops.GREATER,
    ast.GtE: ops.GREATER_EQUAL, ast.Eq: ops.EQUAL, ast.NotEq: ops.NOT_EQUAL, ast.Not: ops.NOT,
    ast.USub: ops.NEGATIVE, ast.UAdd: ops.POSITIVE, ast.Invert: ops.INVERT,
}  # fmt: skip
_VALUES: dict[str, tuple[int, int | float]] = {
    "C": (ops.ACTION, 1), "D": (ops.ACTION, 0), "math_inf": (ops.FLOAT, float("inf")),
    "numpy_inf": (ops.FLOAT, float("inf")), "math_pi": (ops.FLOAT, float(np.pi)), "math_e": (ops.FLOAT, float(np.e)),
}  # fmt: skip


class Expressions(Assembly):
    """A program to which expressions are added.

    Each method of a kind of expressions takes a register that the result may be put into.
    """

    def _handler(self, node: ast.AST) -> Callable[..., Any]:
        """The method for a node of its kind."""
        kind = type(node).__name__
        handler: Callable[..., Any] | None = getattr(self, f"_add_{kind.lower()}", None)
        if handler is None:
            raise UnloweredError(kind)
        return handler

    def _expression(self, node: ast.expr, into: Register | None = None) -> Register:
        """The register with a value.

        Parameters
        ----------
        into
            Where it may be put, as the last thing that is done.
        """
        register: Register = self._handler(node)(node, into)
        return register

    def _operands(self, *nodes: ast.expr) -> list[Register]:
        """The values of several expressions; values that a later expression may change are copied."""
        last = len(nodes) - 1
        while last > 0 and not has_effects(nodes[last]):
            last -= 1
        registers = []
        for place, node in enumerate(nodes):
            before = LOCAL + self._locals
            register = self._expression(node)
            registers.append(self._kept(register) if place < last and register < before else register)
        return registers

    def _put(self, target: Register, node: ast.expr) -> Register:
        """Put a value into a register."""
        value = self._expression(node, target)
        if value is not target:
            self._emit(ops.MOVE, target, value)
        return target

    def _copy(self, target: Register, node: ast.expr) -> None:
        """Copy a value into a register, which the expression itself may read; other registers are released."""
        before = self._locals
        self._emit(ops.MOVE, target, self._expression(node))
        self._locals = before

    def _in_a_row(self, *nodes: ast.expr) -> Register:
        """The values of several expressions in consecutive registers; the first register."""
        row = [self._new() for _ in nodes] or [self._new()]
        for register, node in zip(row, nodes, strict=False):
            self._put(register, node)
        return row[0]

    def _add_constant(self, node: ast.Constant, into: Register | None = None) -> Register:
        return self._constant(node.value)

    def _variable(self, name: str) -> Register:
        scope = self._scope.find(name)
        if scope is None or name not in scope.variables:
            raise UnloweredError(f"the name {name}")
        return scope.variables[name]

    def _add_name(self, node: ast.Name, into: Register | None = None) -> Register:
        if node.id in _VALUES:
            return self._constant_of(*_VALUES[node.id])
        return self._variable(node.id)

    def _is_self(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self._self

    def _add_attribute(self, node: ast.Attribute, into: Register | None = None) -> Register:
        if self._is_self(node.value):
            return self._of_class(node.attr) if node.attr in self._class_values else self._attribute(node.attr)
        if node.attr not in ops.ATTRIBUTES:
            raise UnloweredError(f"the attribute {node.attr}")
        return self._made(into, ops.ATTRIBUTE, self._expression(node.value), ops.ATTRIBUTES.index(node.attr))

    def _of_class(self, name: str) -> Register:
        """A constant of the class; a container is made once in a decision."""
        register = self._containers.get(name)
        if register is None:
            return self._expression(self._class_values[name])
        before, is_made = self._locals, self._emit(ops.JUMP_SET, register, 0)
        self._copy(register, self._class_values[name])
        self._locals = before
        self._patch([is_made])
        return register

    def _add_binop(self, node: ast.BinOp, into: Register | None = None) -> Register:
        return self._binary(type(node.op), node.left, node.right, into)

    def _binary(self, operator: type[ast.AST], left: ast.expr, right: ast.expr, into: Register | None) -> Register:
        if operator not in OPERATORS:
            raise UnloweredError(operator.__name__)
        operands = self._operands(left, right)
        # The machine takes an operator whose target is its left operand for an assignment in place.
        return self._made(None if operands[0] is into else into, OPERATORS[operator], *operands)

    def _add_unaryop(self, node: ast.UnaryOp, into: Register | None = None) -> Register:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return self._constant(-value)
        return self._made(into, ops.CALL, self._expression(node.operand), OPERATORS[type(node.op)])

    def _add_compare(self, node: ast.Compare, into: Register | None = None) -> Register:
        if len(node.ops) == 1:
            left, right = self._operands(node.left, node.comparators[0])
            return self._compared(node.ops[0], left, right, into)
        target = self._new()
        values = self._operands(node.left, *node.comparators)
        if any(map(has_effects, node.comparators[1:])):
            raise UnloweredError("a chain of comparisons that calls")
        ends = []
        for place, operator in enumerate(node.ops):
            self._compared(operator, values[place], values[place + 1], target)
            if place < len(node.ops) - 1:
                ends.append(self._emit(ops.JUMP_FALSE, target, 0))
        self._patch(ends)
        return target

    def _compared(self, operator: ast.cmpop, left: Register, right: Register, into: Register | None) -> Register:
        match operator:
            case ast.Is() | ast.In():
                return self._made(into, ops.IS if isinstance(operator, ast.Is) else ops.CONTAINS, left, right)
            case ast.IsNot() | ast.NotIn():
                op = ops.IS if isinstance(operator, ast.IsNot) else ops.CONTAINS
                return self._made(into, ops.CALL, self._made(None, op, left, right), ops.NOT)
        return self._made(into, OPERATORS[type(operator)], left, right)

    def _add_boolop(self, node: ast.BoolOp, into: Register | None = None) -> Register:
        target = self._new()
        jump = ops.JUMP_TRUE if isinstance(node.op, ast.Or) else ops.JUMP_FALSE
        ends = []
        for value in node.values:
            self._copy(target, value)
            ends.append(self._emit(jump, target, 0))
        self._patch(ends)
        return target

    def _add_ifexp(self, node: ast.IfExp, into: Register | None = None) -> Register:
        target = self._new()
        otherwise = self._unless(node.test)
        self._copy(target, node.body)
        end = self._emit(ops.JUMP, 0)
        self._patch(otherwise)
        self._copy(target, node.orelse)
        self._patch([end])
        return target

    def _add_namedexpr(self, node: ast.NamedExpr, into: Register | None = None) -> Register:
        value = self._expression(node.value)
        self._store(node.target, value)
        return value

    def _add_subscript(self, node: ast.Subscript, into: Register | None = None) -> Register:
        if not isinstance(node.slice, ast.Slice):
            return self._made(into, ops.ITEM, *self._operands(node.value, node.slice))
        nothing = ast.Constant(None)
        parts = [node.slice.lower or nothing, node.slice.upper or nothing, node.slice.step or nothing]
        sequence = self._expression(node.value)
        if any(map(has_effects, parts)):
            sequence = self._kept(sequence)
        return self._made(into, ops.SLICE, sequence, self._in_a_row(*parts))

    def _add_list(self, node: ast.List | ast.Tuple, into: Register | None = None) -> Register:
        first = self._in_a_row(*node.elts)
        return self._made(into, ops.NEW_LIST if isinstance(node, ast.List) else ops.NEW_TUPLE, first, len(node.elts))

    def _add_dict(self, node: ast.Dict, into: Register | None = None) -> Register:
        made = self._made(None, ops.NEW_DICT)
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise UnloweredError("a dict of a dict")
            before = self._locals
            self._emit(ops.SET_ITEM, made, *self._operands(key, value))
            self._locals = before
        return made

    def _add_tuple(self, node: ast.Tuple, into: Register | None = None) -> Register:
        return self._add_list(node, into)

    def _unless(self, node: ast.expr) -> list[int]:
        """Jumps that are taken if a condition is false; its registers are released."""
        before = self._locals
        jumps = self._condition(node, jump_if=False)
        self._locals = before
        return jumps

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
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in OPERATORS:
                jump = ops.JUMP_COMPARED if jump_if else ops.JUMP_UNLESS_COMPARED
                first, second = self._operands(left, right)
                return [self._emit(jump + OPERATORS[type(operator)] - ops.LESS, first, second)]
        register = self._expression(node)
        return [self._emit(ops.JUMP_TRUE if jump_if else ops.JUMP_FALSE, register, 0)]

    def _store(self, target: ast.expr, value: Register) -> None:
        match target:
            case ast.Name(id=name):
                self._emit(ops.MOVE, self._variable(name), value)
            case ast.Attribute(value=thing, attr=name) if self._is_self(thing):
                self._emit(ops.STORE, self._attribute(name), value)
            case ast.Tuple(elts=targets) if any(isinstance(one, ast.Starred) for one in targets):
                self._store_some(targets, value)
            case ast.Tuple(elts=targets):
                items = self._items_of(value, len(targets))
                for one, item in zip(targets, items, strict=False):
                    self._store(one, item)
            case ast.Subscript(value=sequence, slice=index) if not isinstance(index, ast.Slice):
                if has_effects(sequence) or has_effects(index):
                    value = self._kept(value)
                place, number = self._operands(sequence, index)
                self._emit(ops.SET_ITEM, place, number, value)
            case _:
                raise UnloweredError("assigns to something else")

    def _store_some(self, targets: Sequence[ast.expr], value: Register) -> None:
        """Unpack a sequence of any length, of which one target takes what the others leave."""
        [star] = [place for place, one in enumerate(targets) if isinstance(one, ast.Starred)]
        after = len(targets) - star - 1
        count = self._made(None, ops.CALL, value, ops.LEN)
        enough = self._emit(ops.JUMP_COMPARED + ops.GREATER_EQUAL - ops.LESS, count, self._constant(len(targets) - 1))
        self._emit(ops.LEAVE)
        self._patch([enough])
        bounds = [self._new() for _ in range(3)]
        for bound, end in zip(bounds, (star, -after or None, None), strict=True):
            self._emit(ops.MOVE, bound, self._constant(end))
        rest = self._made(None, ops.CALL, self._made(None, ops.SLICE, value, bounds[0]), ops.LIST_OF)
        places = [*range(star), None, *range(-after, 0)]
        items = [rest if place is None else self._made(None, ops.ITEM, value, self._constant(place))
                 for place in places]  # fmt: skip
        for one, item in zip(targets, items, strict=True):
            self._store(one.value if isinstance(one, ast.Starred) else one, item)

    def _items_of(self, value: Register, count: int) -> list[Register]:
        """The items of a sequence, without a tuple that was made only for this."""
        last = self._code[-1]
        is_made = last[:2] == [ops.NEW_TUPLE, value] and last[3] == count and self._landing != len(self._code)
        if is_made and not self._scope.holds(value):
            del self._code[-1]
            self._locals = max(self._locals, last[2] + count - LOCAL)  # an inlined call has released its registers
            return [Register(last[2] + number) for number in range(count)]
        items = [self._new() for _ in range(count)] or [self._new()]
        self._emit(ops.UNPACK, value, items[0], count)
        return items


def has_effects(node: ast.expr) -> bool:
    """Whether an expression may have side effects: calls of the strategy's functions, random numbers, assignments."""
    # Most expressions are leaves, and a walk takes much longer than this check.
    return type(node) not in (ast.Constant, ast.Name) and any(map(_is_effect, ast.walk(node)))


def _is_effect(node: ast.AST) -> bool:
    match node:
        case ast.NamedExpr() | ast.Attribute(attr="chance"):
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name.startswith("v_") or name in ("pop", "insert")
    return False
