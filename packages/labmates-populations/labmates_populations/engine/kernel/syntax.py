"""What the readers of strategies' syntax share: assignments, constants, and the error about code that does not fit."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

IMPORTS = (ast.Import, ast.ImportFrom)
Known = Mapping[str, ast.expr]
"""Constants by their names."""


class UnfitError(Exception):
    """A class can't be played in some way; the text says where and why."""


def unfit(node: ast.AST, why: str) -> UnfitError:
    """The error about a node."""
    return UnfitError(f"line {getattr(node, 'lineno', 0)}: {why}")


_LEAVES = frozenset({"ctx", "op", "ops"})
_FIELDS = {
    kind: tuple(name for name in kind._fields if name not in _LEAVES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes in a node but for contexts and operators, found faster than by `ast.iter_child_nodes`."""
    found: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        value = getattr(node, name, None)
        if type(value) is list:
            found += [one for one in value if isinstance(one, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def nodes_in(*roots: ast.AST) -> list[ast.AST]:
    """Nodes and all in them."""
    found = [*roots]
    for one in found:
        found += children(one)
    return found


def assignments(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """The names that a statement assigns, and their values; none if it is another statement."""
    match statement:
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            targets = [target]
        case ast.Assign(targets=targets, value=value):
            pass
        case _:
            return []
    found: list[tuple[str, ast.expr]] = []
    for target in targets:
        match target, value:
            case ast.Name(id=name), _:
                found.append((name, value))
            case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                found += [(one.id, each) for one, each in zip(names, values, strict=True) if isinstance(one, ast.Name)]
                if not all(isinstance(one, ast.Name) for one in names):
                    return []
            case _:
                return []
    return found


def is_constant(node: ast.expr, known: Known, listed: Callable[[ast.expr], bool] = lambda _: False) -> bool:
    """Whether a value can't be changed, is the same for all players, and is computed without an error.

    Parameters
    ----------
    listed
        Whether a name or an attribute is a constant of a module.
    """
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (bool, int, float, str, type(None)))
        case ast.Tuple(elts=elements):
            return all(is_constant(one, known, listed) for one in elements)
        case ast.Name(id=name) if name in known:
            return True
        case ast.Name() | ast.Attribute() if listed(node):
            return True
        case ast.UnaryOp(op=ast.USub(), operand=ast.Attribute(attr="e" | "inf" | "pi") as operand) if listed(operand):
            return True
    return _is_number(node, known)


def is_collection(node: ast.expr, known: Known, listed: Callable[[ast.expr], bool]) -> bool:
    """Whether a value is made of lists, tuples, dicts and sets of constants, without an error."""
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return all(is_collection(one, known, listed) for one in elements)
        case ast.Dict(keys=keys, values=values):
            keyed = all(one is not None and is_constant(one, known) for one in keys)
            return keyed and all(is_collection(one, known, listed) for one in values)
        case ast.Set(elts=elements):
            return all(is_constant(one, known) for one in elements)
    return is_constant(node, known, listed)


def _is_number(node: ast.expr, known: Known) -> bool:
    match node:
        case ast.Constant(value=int() | float()):
            return True
        case ast.Name(id=name) if name in known:
            return _is_number(known[name], {})
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
            return _is_number(operand, known)
        case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=int() | float() as divisor)) if divisor:
            return _is_number(left, known)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            return _is_number(left, known) and _is_number(right, known)
    return False
