"""Instructions for `machine` from a compiled strategy, mainly with scalar values.

The input is a class rewritten by `compiler`. Method calls are inlined. A construct without an instruction makes the
class unfit; an exception leaves the player to Python.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from labmates_fast import instructions as ops
from labmates_fast.lowering.calls import Calls, plain_arguments
from labmates_fast.lowering.expressions import OPERATORS, has_effects
from labmates_fast.lowering.loops import generator_of
from labmates_fast.lowering.program import (
    DESCRIPTION,
    LOCAL,
    Program,
    RecursiveError,
    Register,
    Scope,
    UnloweredError,
)


def lower(node: ast.ClassDef, variables: Mapping[ast.FunctionDef, Sequence[str]]) -> Program:
    """The instructions of a strategy.

    Parameters
    ----------
    node
        Its rewritten class.
    variables
        The variables assigned in each function, excluding comprehensions and nested functions.

    Raises
    ------
    UnloweredError
        If a construct has no instruction.
    """
    recursive: set[str] = set()
    while len(recursive) <= _MOST_RECURSIVE:
        try:
            return _Lowering(node, variables, recursive).program()
        except RecursiveError as found:
            recursive.add(found.name)
        except RecursionError as error:
            raise UnloweredError("nested too deep") from error
    raise UnloweredError("too many functions that call themselves")


_MOST_RECURSIVE = 4
_CONTAINERS = (ast.List, ast.Tuple, ast.Dict)


class _Lowering(Calls):
    """The program of a whole class."""

    def program(self) -> Program:
        made = self._methods.get("__init__")
        if made is not None:
            self._begin(made, 1)
            self._block(made.body)
        else:
            self._emit(ops.STORE, self._attribute(DESCRIPTION), Register(LOCAL))
        self._patch(self._scope.ends)
        self._emit(ops.END)
        deciding = len(self._code)
        call = self._methods["__call__"]
        self._begin(call, 2)
        self._block(call.body)
        self._patch(self._scope.ends)
        self._emit(ops.LEAVE)
        return self._laid_out(deciding, len(plain_arguments(call)) - 1)

    def _begin(self, function: ast.FunctionDef, most: int) -> None:
        arguments, defaults = plain_arguments(function), function.args.defaults
        options = dict(zip(arguments[::-1], defaults[::-1], strict=False)) if most == 1 else {}
        arguments = arguments[: len(arguments) - len(options)]
        if not 2 <= len(arguments) <= most + 1 or len(options) < len(defaults):
            raise UnloweredError("other arguments than a strategy has")
        self._self = arguments[0]
        self._scope = Scope(None, None)
        self._scope.variables = {name: Register(LOCAL + at) for at, name in enumerate(arguments[1:])}
        self._locals = 2
        containers = [name for name, value in self._class_values.items() if isinstance(value, _CONTAINERS)]
        self._containers = {name: self._new() for name in containers}
        self._scope.variables |= {name: self._new() for name in options}
        for name, value in options.items():
            self._put(self._variable(name), value)
        self._declare(function)

    def _block(self, body: Sequence[ast.stmt]) -> None:
        functions, routines = {**self._scope.functions}, {**self._routines}
        for statement in body:
            before = self._locals
            self._handler(statement)(statement)
            self._locals = before
        if self._scope.functions != functions:  # after the block, they may be undefined
            self._scope.functions, self._routines = functions, routines

    def _add_pass(self, _node: ast.Pass) -> None:
        pass

    def _add_expr(self, node: ast.Expr) -> None:
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Name("BaseStrategy"), attr="__init__"), args=[_, description]):
                self._emit(ops.STORE, self._attribute(DESCRIPTION), self._expression(description))
            case ast.Call(func=ast.Attribute(value=target, attr="append"), args=[item], keywords=[]):
                if self._is_self(target):
                    raise UnloweredError("a method append")
                sequence, register = self._operands(target, item)
                self._emit(ops.APPEND, sequence, register)
            case value:
                self._expression(value)

    def _add_assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._stores_lists |= self._may_keep(target, node.value)
        if len(node.targets) != 1:
            value = self._kept(self._expression(node.value))
            for target in node.targets:
                self._store(target, value)
            return
        target = node.targets[0]
        items = generator_of(node.value) if isinstance(target, ast.Tuple) else None
        if items is not None:
            node.value = ast.ListComp(items.elt, items.generators)
        starred = isinstance(target, ast.Tuple) and any(isinstance(one, ast.Starred) for one in target.elts)
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and not starred:
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

    def _may_keep(self, target: ast.expr, value: ast.expr) -> bool:
        """Whether an assignment may keep a list, as far as its text tells; if it does all the same, Python plays."""
        match target, value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                return any(map(self._may_keep, targets, values))
            case ast.Tuple(elts=targets), _:
                return any(self._may_keep(one, value) for one in targets)
            case ast.Attribute(value=thing, attr=name), _ if self._is_self(thing) and name != DESCRIPTION:
                return _may_be_list(value)
        return False

    def _add_augassign(self, node: ast.AugAssign) -> None:
        match node.target:
            case ast.Subscript(value=sequence, slice=index) if not isinstance(index, ast.Slice):
                self._add_to_item(node, sequence, index)
                return
            case ast.Name(id=name):
                left = self._variable(name)
            case ast.Attribute(value=thing, attr=name) if self._is_self(thing):
                left = self._attribute(name)
            case _:
                raise UnloweredError("assigns in place to something else")
        operator = self._operator(node)
        self._stores_lists |= self._may_keep(node.target, node.value)
        before = self._kept(left) if has_effects(node.value) else left
        value = self._expression(node.value)
        if before < LOCAL:
            self._store(node.target, self._made(None, operator, before, value))
            return
        self._emit(operator, before, before, value)
        if before is not left:
            self._store(node.target, before)

    def _operator(self, node: ast.AugAssign) -> int:
        operator = OPERATORS.get(type(node.op))
        if operator is None:
            raise UnloweredError("an operator in place")
        return operator

    def _add_to_item(self, node: ast.AugAssign, sequence: ast.expr, index: ast.expr) -> None:
        """An operator in place on an item of a list or a dict."""
        place, number = self._operands(sequence, index)
        if has_effects(node.value):
            place, number = self._kept(place), self._kept(number)
        item = self._made(None, ops.ITEM, place, number)
        self._emit(self._operator(node), item, item, self._expression(node.value))
        self._emit(ops.SET_ITEM, place, number, item)

    def _add_return(self, node: ast.Return) -> None:
        if self._scope.result is not None:
            self._put(self._scope.result, node.value or ast.Constant(None))
            self._scope.ends.append(self._emit(ops.JUMP, 0))
        elif self._inlined:  # a routine
            self._emit(ops.RETURN, self._expression(node.value or ast.Constant(None)))
        elif node.value is None:
            self._scope.ends.append(self._emit(ops.JUMP, 0))
        else:
            self._emit(ops.ANSWER, self._expression(node.value))

    def _add_if(self, node: ast.If) -> None:
        otherwise = self._unless(node.test)
        self._block(node.body)
        if node.orelse:
            end = self._emit(ops.JUMP, 0)
            self._patch(otherwise)
            self._block(node.orelse)
            self._patch([end])
        else:
            self._patch(otherwise)

    def _add_while(self, node: ast.While) -> None:
        start = len(self._code)
        ends = self._unless(node.test)
        self._loop(start, ends, node.body, node.orelse)

    def _add_for(self, node: ast.For) -> None:
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

    def _add_break(self, _node: ast.Break) -> None:
        self._loops[-1][0].append(self._emit(ops.JUMP, 0))

    def _add_continue(self, _node: ast.Continue) -> None:
        self._loops[-1][1].append(self._emit(ops.JUMP, 0))

    def _add_try(self, node: ast.Try) -> None:
        # Code that raises is left to Python, with its handlers.
        self._block([*node.body, *node.orelse])

    def _add_raise(self, _node: ast.Raise) -> None:
        self._emit(ops.LEAVE)

    def _add_assert(self, node: ast.Assert) -> None:
        true = self._condition(node.test, jump_if=True)
        self._emit(ops.LEAVE)
        self._patch(true)

    def _add_functiondef(self, node: ast.FunctionDef) -> None:
        if any(isinstance(one, ast.Nonlocal) for one in ast.walk(node)):
            raise UnloweredError("Nonlocal")
        if self._scope.find(node.name) is not None:
            raise UnloweredError("another function of the same name")
        self._scope.functions[node.name] = node


_SCALARS = frozenset({"abs", "all", "any", "bool", "float", "int", "len", "max", "min", "round", "sum"})
_NO_LISTS = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr)


def _may_be_list(node: ast.expr) -> bool:
    match node:
        case ast.Constant() | ast.Compare() | ast.UnaryOp() | ast.BinOp(op=ast.Sub() | ast.Div() | ast.Pow()):
            return False
        case ast.BinOp(left=left, op=operator, right=right):
            return not isinstance(operator, _NO_LISTS) and _may_be_list(left) and _may_be_list(right)
        case ast.IfExp(body=body, orelse=orelse):
            return _may_be_list(body) or _may_be_list(orelse)
        case ast.Name("C" | "D"):
            return False
        case ast.Call(func=ast.Name(id=name)):
            return not (name in _SCALARS or name.startswith(("math_", "numpy_", "power", "modulo")))
        case ast.Attribute(attr=name):
            return name not in ops.ATTRIBUTES[: ops.N_PARAMETERS + 1]
    return True
