"""The subset of Python that strategies may share a process in: no objects, attributes or addresses are in reach of it.

A class that fits the subset is rewritten: each variable and each attribute of its own gets a prefix, so that none can
name anything of the interpreter, and each call goes to a function of `names.CALLS`, to a listed method of values, or to
a function of the class itself. What remains can compute with scalars, texts, lists, tuples, dicts and arrays, and
can neither leave something behind for another player nor reach one. A class that does not fit plays in a process of
its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType

from labmates_populations.engine.kernel.rewriting.functions import Function
from labmates_populations.engine.kernel.rewriting.nodes import (
    HERE,
    PREFIX,
    UnfitError,
    assign,
    call,
    is_constant,
    name_of,
)
from labmates_populations.engine.kernel.rewriting.scopes import ClassScope
from labmates_populations.machine import Machine

_NOBODY = "__player"
"""Replacement for the player in static methods: not a valid variable name."""
_MERGED = {"labmates.strategies": "strategies"} | {
    f"emergent_llm.{part}": "strategies" for part in ("players", "games", "common")
}


@dataclass(frozen=True)
class Compiled:
    """A compiled class of a strategy.

    Attributes
    ----------
    draws
        Whether it draws random numbers.
    program
        The equivalent program for the machine; empty if there is no machine, or it can't execute the class.
    """

    code: CodeType
    draws: bool
    program: bytes


def compile_class(node: ast.ClassDef, imported: Mapping[str, str], machine: Machine | None = None) -> Compiled:
    """The code of a strategy's class, for execution with `names.compiled_names`; the class's tree is changed.

    Parameters
    ----------
    imported
        Meanings of the file's imported names; see `imported_names`.
    machine
        Make a program for this machine.

    Raises
    ------
    UnfitError
        If the class is outside the subset.
    """
    try:
        made = _Class(node, imported)
        rewritten = made.rewritten()
        code: CodeType = compile(ast.Module([rewritten], []), "strategy", "exec", dont_inherit=True)
        program = machine.program(rewritten, made.scope.variables) if machine is not None else b""
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnfitError(str(error)) from error
    return Compiled(code, made.scope.draws, program)


def imported_names(statements: Iterable[ast.stmt]) -> dict[str, str]:
    """The meanings of a file's imported names; UnfitError if it has other statements."""
    found: dict[str, str] = {}
    for statement in statements:
        match statement:
            case ast.Import(names=aliases):
                short = [(one, one.name.partition(".")[0]) for one in aliases]
                found |= {one.asname or first: one.name if one.asname else first for one, first in short}
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                merged = _MERGED.get(module, module)
                found |= {one.asname or one.name: f"{merged}.{one.name}" for one in aliases}
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                raise UnfitError(f"line {statement.lineno}: more than imports beside the strategies")
    return found


class _Class:
    """The rewriting of a class."""

    def __init__(self, node: ast.ClassDef, imported: Mapping[str, str]) -> None:
        self._node = node
        self._functions = [one for one in node.body if isinstance(one, ast.FunctionDef)]
        self.scope = ClassScope(node.name, frozenset(one.name for one in self._functions), imported)

    def rewritten(self) -> ast.ClassDef:
        node = self._node
        if node.decorator_list or node.keywords or len(node.bases) > 1:
            raise UnfitError("the class has decorators or several bases")
        if any(self.scope.meaning(base) != "BaseStrategy" for base in node.bases):
            raise UnfitError("the class has a base of its own")
        body: list[ast.stmt] = [*self._constants(node), *(self._method(one) for one in self._functions)]
        node.name, node.bases, node.body = "Strategy", [name_of("BaseStrategy")], body
        vars(node)["type_params"] = []
        return node

    def _constants(self, node: ast.ClassDef) -> Iterator[ast.stmt]:
        for statement in node.body:
            match statement:
                case ast.FunctionDef() | ast.Expr(value=ast.Constant()) | ast.Pass() | ast.AnnAssign(value=None):
                    pass
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ) if is_constant(value) and not name.startswith("__"):
                    yield assign(name, value)
                case ast.ClassDef(name=name, bases=[base], keywords=[], decorator_list=[], body=body) if (
                    self.scope.meaning(base) == "enum.Enum" and (members := _members(body))
                ):
                    self.scope.enums[name] = frozenset(members)
                    keys: list[ast.expr | None] = [ast.Constant(one, **HERE) for one in members]
                    arguments = [ast.Constant(name, **HERE), ast.Dict(keys, [*members.values()], **HERE)]
                    yield assign(name, call("enumeration", arguments))
                case _:
                    raise UnfitError(f"line {statement.lineno}: a class holds more than functions and constants")

    def _method(self, node: ast.FunctionDef) -> ast.FunctionDef:
        special = node.name in ("__init__", "__call__")
        match node.decorator_list:
            case [ast.Name("staticmethod")] if not special:
                node.args.args.insert(0, ast.arg(_NOBODY, **HERE))
                node.decorator_list = []
        if (node.name.startswith("__") and not special) or node.decorator_list or not node.args.args:
            raise UnfitError(f"line {node.lineno}: a method of this kind can't be compiled")
        if node.args.posonlyargs:  # the player would be one of them, and the next argument have attributes
            raise UnfitError(f"line {node.lineno}: a method of this kind can't be compiled")
        name = node.name
        function = Function(self.scope, None, node).rewritten(node)
        function.name = name if special else PREFIX + name
        return function


def _members(body: Iterable[ast.stmt]) -> dict[str, ast.expr]:
    """The members of an enumeration; none if it has other statements."""
    found: dict[str, ast.expr] = {}
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_constant(value) and not (
                name.startswith("_") or name == "mro"
            ):
                found[name] = value
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                return {}
    return found
