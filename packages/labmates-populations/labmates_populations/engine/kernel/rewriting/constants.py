"""Constants of a class and of its file: what they are made of, and whether the class could change them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy

from labmates_populations.engine.kernel.names import CONSTANTS
from labmates_populations.engine.kernel.rewriting.nodes import LOAD, call, is_constant, library

_READERS = frozenset({
    "all", "any", "choice", "dict", "enumerate", "len", "list", "max", "min", "range", "reversed", "set", "sorted",
    "sum", "tuple", "zip",
})  # fmt: skip
"""Functions that keep nothing of an argument but its items."""
_READING = frozenset({"copy", "count", "get", "index", "items", "keys", "values"})


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


class _Known(ast.NodeTransformer):
    """Replaces the names of constants by their values."""

    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace a name that is read."""
        return deepcopy(self._known[node.id]) if node.id in self._known and isinstance(node.ctx, ast.Load) else node


def with_known(node: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
    """An expression in which constants stand for their names."""
    replaced: ast.expr = _Known(known).visit(node)
    return replaced


def replace_known(node: ast.ClassDef, known: Mapping[str, ast.expr]) -> None:
    """Replace the names of a file's constants in a class that does not assign them itself."""
    bound = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    bound |= {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    bound |= {one.name for one in ast.walk(node) if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
    _Known({name: value for name, value in known.items() if name not in bound}).visit(node)


def value_of(node: ast.expr, meaning: Callable[[ast.expr], str]) -> ast.expr | None:
    """The rewritten value of a constant; None if it can't be computed without an error, or may differ."""
    match node:
        case ast.Name() | ast.Attribute() if meaning(node) in CONSTANTS:
            return library(meaning(node))
        case ast.UnaryOp(op=ast.USub() as op, operand=ast.Attribute() as inner) if meaning(inner) in (
            "math.inf", "numpy.inf", "math.pi", "math.e",
        ):  # fmt: skip
            return ast.copy_location(ast.UnaryOp(op, library(meaning(inner))), node)
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements) if not is_constant(node):
            items = [value_of(one, meaning) for one in elements]
            if None in items:
                return None
            values = [one for one in items if one is not None]
            if isinstance(node, ast.Set):
                hashed = all(map(_has_hash, elements))
                return call("set", [ast.copy_location(ast.Tuple(values, LOAD), node)]) if hashed else None
            return ast.copy_location(type(node)(values, LOAD), node)
        case ast.Dict(keys=keys, values=elements) if all(key is not None and _has_hash(key) for key in keys):
            values = [one for each in elements if (one := value_of(each, meaning)) is not None]
            names = [one for each in keys if each is not None and (one := value_of(each, meaning)) is not None]
            complete = len(values) == len(names) == len(keys)
            return ast.copy_location(ast.Dict([*names], values), node) if complete else None
    return node if is_constant(node) else None


def _has_hash(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Tuple) and all(map(_has_hash, node.elts)))


def is_fixed(value: ast.expr) -> bool:
    """Whether a constant has no part that can be changed."""
    match value:
        case ast.List() | ast.Dict() | ast.Set() | ast.Call():
            return False
        case ast.Tuple(elts=elements):
            return all(map(is_fixed, elements))
    return True


def is_only_read(node: ast.ClassDef, name: str, value: ast.expr) -> bool:
    """Whether a class, whatever it does, leaves its constant as it is, so that all players may share it."""
    match value:
        case ast.List(elts=items) | ast.Dict(values=items) | ast.Tuple(elts=items) if all(map(is_fixed, items)):
            every = [one for one in ast.walk(node) if _names(one, name)]
            read = {id(one) for outer in ast.walk(node) for one in _read_by(outer)}
            return all(isinstance(one, ast.Attribute) and id(one) in read for one in every)
    return False


def _names(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Attribute(attr=attribute):
            return attribute == name
        case ast.Call(func=ast.Name("getattr" | "hasattr"), args=[_, ast.Constant(value), *_]):
            return bool(value == name)
    return False


def _read_by(node: ast.AST) -> Iterator[ast.expr]:
    """The parts of a node that it can only read."""
    match node:
        case ast.Subscript(value=value, ctx=ast.Load()):
            yield value
        case ast.For(iter=value) | ast.comprehension(iter=value):
            yield value
        case ast.Compare(ops=operators, comparators=values):
            yield from (one for op, one in zip(operators, values, strict=True) if isinstance(op, (ast.In, ast.NotIn)))
        case ast.Call(func=ast.Name(id=name), args=values) if name in _READERS:
            yield from values
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=values):
            if name in _READING:
                yield value
            elif name == "choice":
                yield from values
