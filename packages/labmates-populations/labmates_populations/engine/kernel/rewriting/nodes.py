"""New nodes of rewritten code, and the error about code outside the subset."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

PREFIX = "v_"
"""Prefix of all variables and attributes of a strategy."""
CONSTANT_TYPES = (bool, int, float, str, type(None))
LOAD = ast.Load()
HERE: dict[str, Any] = {"lineno": 1, "end_lineno": 1, "col_offset": 0, "end_col_offset": 0}
"""A position for new nodes, which `compile` requires."""


_KINDS = {"JoinedStr": "an f-string", "Lambda": "a lambda", "LShift": "the operator <<", "MatMult": "the operator @",
          "Mod": "%", "Pow": "**", "Yield": "a generator", "With": "a with statement"}  # fmt: skip


def kind_of(node: ast.AST) -> str:
    """What a node is, in a reason."""
    name = type(node).__name__
    return _KINDS.get(name, name)


def name_of(name: str) -> ast.Name:
    """A name as a value."""
    return ast.Name(name, LOAD, **HERE)


def call(name: str, arguments: list[ast.expr], keywords: Iterable[ast.keyword] = ()) -> ast.Call:
    """A call of a function by its name."""
    return ast.Call(name_of(name), arguments, [*keywords], **HERE)


def library(name: str) -> ast.Name:
    """The name of a function, type or constant by its full name."""
    return name_of(name.replace(".", "_"))


def assign(name: str, value: ast.expr) -> ast.Assign:
    """The assignment of a constant of the class."""
    return ast.Assign([ast.Name(PREFIX + name, ast.Store(), **HERE)], value, **HERE)


def no_statement() -> ast.Pass:
    """A ``pass`` statement, for an otherwise empty body."""
    return ast.Pass(**HERE)


class UnfitError(Exception):
    """A class is outside the subset."""


def is_constant(node: ast.expr) -> bool:
    """Whether a value is constant, equal for all players, and can be computed without an error."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, CONSTANT_TYPES)
        case ast.Tuple(elts=elements):
            return all(map(is_constant, elements))
    return _is_constant_number(node)


def _is_constant_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
            return _is_constant_number(operand)
        case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=int() | float() as divisor)) if divisor:
            return _is_constant_number(left)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            return _is_constant_number(left) and _is_constant_number(right)
    return False
