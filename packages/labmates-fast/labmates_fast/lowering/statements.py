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
        arguments = plain_arguments(function)
        if not 2 <= len(arguments) <= most + 1 or function.args.defaults:
            raise UnloweredError("other arguments than a strategy has")
        self._self = arguments[0]
        self._scope = Scope(None, None)
        self._scope.variables = {name: Register(LOCAL + at) for at, name in enumerate(arguments[1:])}
        self._locals = 2
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

    def _add_augassign(self, node: ast.AugAssign) -> None:
        match node.target:
            case ast.Name(id=name):
                left = self._variable(name)
            case ast.Attribute(value=thing, attr=name) if self._is_self(thing):
                left = self._attribute(name)
            case _:
                raise UnloweredError("assigns in place to something else")
        operator = OPERATORS.get(type(node.op))
        if operator is None:
            raise UnloweredError("an operator in place")
        before = self._kept(left) if has_effects(node.value) else left
        value = self._expression(node.value)
        if before < LOCAL:
            self._store(node.target, self._made(None, operator, before, value))
            return
        self._emit(operator, before, before, value)
        if before is not left:
            self._store(node.target, before)

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
